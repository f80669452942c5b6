package catalog

import (
	"testing"

	"weir.dev/weir/pkg/pgcodec"
)

// dictionary is what Types would read: two enums of one name, domains over domains and arrays, and what only looks like
// an array.
func dictionary() map[uint32]Type {
	types := make(map[uint32]Type)
	for _, t := range []Type{
		{OID: 23, Name: "integer", Kind: 'b', Delimiter: ','},
		{OID: 22, Name: "int2vector", Kind: 'b', Delimiter: ','},
		{OID: 25, Name: "text", Kind: 'b', Delimiter: ',', Verbatim: true},
		{OID: 1700, Name: "numeric", Kind: 'b', Delimiter: ','},
		{OID: 603, Name: "box", Kind: 'b', Delimiter: ';'},
		{OID: 1007, Name: "integer[]", Kind: 'b', Elem: 23, Delimiter: ','},
		{OID: 1231, Name: "numeric[]", Kind: 'b', Elem: 1700, Delimiter: ','},
		{OID: 1020, Name: "box[]", Kind: 'b', Elem: 603, Delimiter: ';'},
		{OID: 20001, Name: "one.mood", Kind: 'e', Delimiter: ',', Verbatim: true},
		{OID: 20002, Name: "two.mood", Kind: 'e', Delimiter: ',', Verbatim: true},
		{OID: 20003, Name: "two.mood[]", Kind: 'b', Elem: 20002, Delimiter: ','},
		{OID: 20004, Name: "public.price", Kind: 'd', Base: 1700, BaseModifier: 10<<16 + 2 + 4, Delimiter: ','},
		{OID: 20005, Name: "public.offer", Kind: 'd', Base: 20004, BaseModifier: -1, Delimiter: ','},
		{OID: 20006, Name: "public.offer[]", Kind: 'b', Elem: 20005, Delimiter: ','},
		{OID: 20007, Name: "public.ints", Kind: 'd', Base: 1007, BaseModifier: -1, Delimiter: ','},
		{OID: 20008, Name: "public.ints[]", Kind: 'b', Elem: 20007, Delimiter: ','},
		{OID: 20009, Name: "public.grid", Kind: 'd', Base: 1007, BaseModifier: -1, BaseDimensions: 2, Delimiter: ','},
		{OID: 20010, Name: "public.address", Kind: 'c', Delimiter: ','},
		{OID: 20011, Name: "public.address[]", Kind: 'b', Elem: 20010, Delimiter: ','},
		{OID: 20012, Name: "public.span", Kind: 'r', Delimiter: ','},
		{OID: 20013, Name: "gis.geometry", Kind: 'b', Delimiter: ':'},
		{OID: 20014, Name: "gis.geometry[]", Kind: 'b', Elem: 20013, Delimiter: ':'},
		{OID: 20015, Name: "public.citext", Kind: 'b', Delimiter: ',', Verbatim: true},
		{OID: 20016, Name: "public.lost", Kind: 'd', Base: 99999, Delimiter: ','},
		{OID: 20017, Name: "public.lost[]", Kind: 'b', Elem: 99999, Delimiter: ','},
	} {
		types[t.OID] = t
	}
	return types
}

func TestCodecOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		oid         uint32
		modifier    int32
		dimensions  int
		typ, source string
		binary      bool
	}{
		{23, -1, 0, "int32", "integer", true},
		{22, -1, 0, "text", "int2vector", false},
		{1007, -1, 1, "list<int32>", "integer[]", true},
		{1007, -1, 0, "list<int32>", "integer[]", true}, // CREATE TABLE AS does not say how many
		{1007, -1, 2, "text", "integer[]", false},
		{1231, 7<<16 + 1 + 4, 1, "list<decimal(7,1)>", "numeric(7,1)[]", true},
		{1231, 7<<16 + 1 + 4, 3, "text", "numeric(7,1)[]", false},
		{1020, -1, 1, "text", "box[]", false},
		{20001, -1, 0, "text", "one.mood", true},
		{20002, -1, 0, "text", "two.mood", true},
		{20003, -1, 1, "list<text>", "two.mood[]", true},
		{20004, -1, 0, "decimal(10,2)", "numeric(10,2)", true},
		{20005, -1, 0, "decimal(10,2)", "numeric(10,2)", true},
		{20006, -1, 1, "list<decimal(10,2)>", "numeric(10,2)[]", true},
		{20007, -1, 0, "list<int32>", "integer[]", true},
		{20008, -1, 1, "text", "integer[][]", false},
		{20009, -1, 0, "text", "integer[]", false},
		{20010, -1, 0, "text", "public.address", false},
		{20011, -1, 1, "list<text>", "public.address[]", false},
		{20012, -1, 0, "text", "public.span", false},
		{20014, -1, 1, "text", "gis.geometry[]", false},
		{20015, -1, 0, "text", "public.citext", true},
	} {
		codec, ok := CodecOf(dictionary(), c.oid, c.modifier, c.dimensions)
		if !ok || codec.Type().String() != c.typ || codec.SourceType() != c.source || codec.HasBinary() != c.binary {
			t.Errorf("%d: %v from %q, binary %v, known %v; want %+v", c.oid, codec.Type(), codec.SourceType(), codec.HasBinary(), ok, c)
		}
	}
	for _, oid := range []uint32{99999, 20016, 20017} {
		if codec, ok := CodecOf(dictionary(), oid, -1, 0); ok {
			t.Errorf("%d: %v without its type", oid, codec)
		}
	}
	// Two types of one name are two types.
	one, _ := CodecOf(dictionary(), 20001, -1, 0)
	if two, _ := CodecOf(dictionary(), 20002, -1, 0); one == two {
		t.Errorf("%v is both", one)
	}
	if c, _ := CodecOf(dictionary(), 1007, -1, 1); c != pgcodec.ForOID(1007, -1, "") {
		t.Errorf("the catalog's integer[] is %v", c)
	}
}
