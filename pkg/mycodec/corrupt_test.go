package mycodec_test

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weir.dev/weir/pkg/mycodec"
)

// nested is a document of arrays in arrays, each with so many entries that all lie in the one after it.
func nested(depth, entries int) string {
	var b strings.Builder
	b.WriteByte(2)
	head := 4 + 3*entries
	for d := range depth {
		size := head*(depth-d-1) + head
		b.Write([]byte{byte(entries), 0, byte(size), byte(size >> 8)})
		for range entries {
			if d == depth-1 {
				b.Write([]byte{4, 1, 0})
				continue
			}
			b.Write([]byte{2, byte(head), byte(head >> 8)})
		}
	}
	return b.String()
}

// I4, and I2: bytes that are no value of the type are told, in whatever column they are.
func TestCorruptCellsAreRefused(t *testing.T) {
	t.Parallel()
	two := [][]byte{[]byte("a"), []byte("b")}
	for what, c := range map[string]struct {
		column mycodec.LogColumn
		cell   string
	}{
		"enum beyond its members":     {mycodec.LogColumn{Type: 254, Meta: 0xf701, Charset: "latin1", Labels: two}, "\x03"},
		"set beyond its members":      {mycodec.LogColumn{Type: 254, Meta: 0xf801, Charset: "latin1", Labels: two}, "\x04"},
		"enum of no bytes":            {mycodec.LogColumn{Type: 254, Meta: 0xf701, Charset: "latin1", Labels: two}, ""},
		"short integer":               {mycodec.LogColumn{Type: 3}, "\x00\x00\x00"},
		"long binary":                 {mycodec.LogColumn{Type: 254, Meta: 0xfe02, Charset: "binary"}, "abc"},
		"decimal with a group of ten": {mycodec.LogColumn{Type: 246, Meta: 9 << 8}, "\xff\xff\xff\xff"},
		"long uuid":                   {mycodec.LogColumn{Type: 254, Meta: 0xfe10, Charset: "binary", Known: "uuid"}, strings.Repeat("x", 17)},
		"vector of half a number":     {mycodec.LogColumn{Type: 242, Meta: 4}, "\x00\x00"},
		"datetime before its epoch":   {mycodec.LogColumn{Type: 18}, "\x00\x00\x00\x00\x00"},
		"document of a text too long": {mycodec.LogColumn{Type: 245, Meta: 4}, "\x0c\x05ab"},
		"document of an unknown type": {mycodec.LogColumn{Type: 245, Meta: 4}, "\x0e\x00"},
		"document in itself":          {mycodec.LogColumn{Type: 245, Meta: 4}, "\x02\x01\x00\x07\x00\x02\x00\x00"},
		"document that doubles":       {mycodec.LogColumn{Type: 245, Meta: 4}, nested(60, 2)},
		"document too deep":           {mycodec.LogColumn{Type: 245, Meta: 4}, nested(200, 1)},
	} {
		codec, err := mycodec.OfLog(c.column)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if got, err := legacyText(t, codec, mycodec.Log, c.cell); !errors.Is(err, mycodec.ErrCell) {
			t.Errorf("%s: %q, %v", what, got, err)
		}
	}
	deep, err := mycodec.OfLog(mycodec.LogColumn{Type: 245, Meta: 4})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := legacyText(t, deep, mycodec.Log, nested(100, 1)); err != nil || got != strings.Repeat("[", 100)+"true"+strings.Repeat("]", 100) {
		t.Errorf("a document of a hundred arrays: %s, %v", got, err)
	}
}

// MariaDB's addresses as it writes them, from the bytes that its log has: without zeros at the end.
func TestAddressesAgree(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ word, cell, text string }{
		{"inet6", "", "::"},
		{"inet6", "20010db8", "2001:db8::"},
		{"inet6", "00000000000000000000ffffc0000201", "::ffff:192.0.2.1"},
		{"inet6", "00000000000000000000000001020304", "::1.2.3.4"},
		{"inet6", "00000000000000000000000000000001", "::1"},
		{"inet6", "0001000000000002", "1:0:0:2::"},
		{"inet6", "00010000000200030000000400050006", "1::2:3:0:4:5:6"},
		{"inet4", "", "0.0.0.0"},
		{"inet4", "c00002", "192.0.2.0"},
		{"inet4", "ffffffff", "255.255.255.255"},
		{"uuid", "00112233445516778899aabbccddee", "00112233-4455-1677-8899-aabbccddee00"},
		{"uuid", "", "00000000-0000-0000-0000-000000000000"},
	} {
		length := uint16(16)
		if c.word == "inet4" {
			length = 4
		}
		fromLog, err := mycodec.OfLog(mycodec.LogColumn{Type: 254, Meta: 0xfe00 | length, Charset: "binary", Known: c.word})
		if err != nil {
			t.Fatal(err)
		}
		fromCatalog, err := mycodec.OfCatalog(mycodec.CatalogColumn{DataType: c.word, ColumnType: c.word})
		if err != nil || fromLog != fromCatalog {
			t.Fatalf("%s: %+v, %+v, %v", c.word, fromLog, fromCatalog, err)
		}
		cell := unhex(t, c.cell)
		a, b := read(t, fromLog, mycodec.Log, cell)[0], read(t, fromCatalog, mycodec.Text, c.text)[0]
		if a != c.text || b != c.text {
			t.Errorf("%s: %s by the log, %s by a SELECT, want %s", c.word, a, b, c.text)
		}
		k1, err1 := fromLog.Key(nil, []byte(cell), mycodec.Log)
		k2, err2 := fromCatalog.Key(nil, []byte(c.text), mycodec.Text)
		if err1 != nil || err2 != nil || string(k1) != string(k2) {
			t.Errorf("%s %s: keys %x (%v) and %x (%v)", c.word, c.text, k1, err1, k2, err2)
		}
	}
	fixed, err := mycodec.OfLog(mycodec.LogColumn{Type: 254, Meta: 0xfe08, Charset: "binary", Known: "uuid"})
	if err != nil || fixed.SourceType() != "binary(8)" {
		t.Errorf("a column that is no UUID any more is %s, %v", fixed.SourceType(), err)
	}
}

// The catalog writes members as SQL does, and escapes some of their characters; the log has them as they are.
func TestMembersOfTheCatalog(t *testing.T) {
	t.Parallel()
	for listed, label := range map[string]string{
		`it''s`: "it's", `back\\slash`: `back\slash`, `\\''`: `\'`, `a\nb\r\0`: "a\nb\r\x00", `''''`: "''", `a)b`: "a)b", `a, b`: "a, b", ``: "",
	} {
		fromLog, err := mycodec.OfLog(mycodec.LogColumn{Type: 254, Meta: 0xf701, Charset: "utf8mb4", Labels: [][]byte{[]byte(label), []byte("z")}})
		if err != nil {
			t.Fatal(err)
		}
		fromCatalog, err := mycodec.OfCatalog(mycodec.CatalogColumn{DataType: "enum", ColumnType: "enum('" + listed + "','z')", Charset: "utf8mb4"})
		if err != nil || fromLog != fromCatalog {
			t.Errorf("enum('%s','z'): %s of the log, %s of the catalog, %v", listed, fromLog.SourceType(), fromCatalog.SourceType(), err)
		}
	}
}

// Whatever text of a TIME or DATETIME a server can write is read, and its key too, as what it is.
func TestMomentsComeBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		us := rapid.Int64Range(-(838*3600+59*60+59)*1_000_000, (838*3600+59*60+59)*1_000_000).Draw(r, "us")
		packed := us
		if us < 0 {
			packed = -us
		}
		s := packed / 1_000_000
		v := (s/3600<<12|s/60%60<<6|s%60)<<24 | packed%1_000_000
		if us < 0 {
			v = -v
		}
		v += 1 << 47
		cell := string([]byte{byte(v >> 40), byte(v >> 32), byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)})
		codec, err := mycodec.OfLog(mycodec.LogColumn{Type: 19, Meta: 6})
		if err != nil {
			r.Fatal(err)
		}
		text := read(t, codec, mycodec.Log, cell)[0]
		if again := read(t, codec, mycodec.Text, text)[0]; again != text {
			r.Fatalf("%x is %s by the log and %s by a SELECT", cell, text, again)
		}
		a, err1 := codec.Key(nil, []byte(cell), mycodec.Log)
		b, err2 := codec.Key(nil, []byte(text), mycodec.Text)
		if err1 != nil || err2 != nil || string(a) != string(b) {
			r.Fatalf("%s: keys %x (%v) and %x (%v)", text, a, err1, b, err2)
		}
	})
}
