package pgcodec

import (
	"errors"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/array"

	"weir.dev/weir/pkg/rows"
)

// ErrCell is in the chain of a Decoder's error: the bytes are not a value of the column's type.
var ErrCell = errors.New("not a value of the column's type")

// Format is the form of a cell; the values are those of pgoutput's tuple data.
type Format byte

// The two forms.
const (
	Text   Format = 't'
	Binary Format = 'b'
)

// Decoder appends one non-null cell to the column it is bound to. The bytes are copied, not kept.
// A value the column's type cannot hold is recorded as special; see rows.Builder.Special.
type Decoder func(cell []byte) error

// Codec is the meaning of one server type. Two equal codecs read the same cells alike.
type Codec struct {
	oid uint32 // of a list, its elements' type
	typ rows.Type
	// source is the type in the server's words.
	source string
	// verbatim says that the type's binary form is its text.
	verbatim bool
}

// ForOID resolves a built-in type, or an array of one, from what pgoutput's Relation message or the catalog says. For a
// domain pass its base type. Any other type is as Opaque reads it, under typeName.
func ForOID(oid uint32, typmod int32, typeName string) Codec {
	if elem, ok := arrayOf[oid]; ok {
		return ArrayOf(ForOID(elem, typmod, typeName))
	}
	c := Codec{oid: oid, typ: logicalType(oid, typmod), source: sourceType(oid, typmod, typeName)}
	switch oid {
	case oidText, oidVarchar, oidBpchar, oidName, oidXML, oidJSON, oidRefcursor:
		c.verbatim = true // their send functions write the text itself
	}
	return c
}

// ArrayOf is the codec of the arrays of a type. A type that a list cannot have as an element (another list, a type that
// separates elements by something else than a comma) makes the array opaque.
func ArrayOf(elem Codec) Codec {
	if elem.typ.Kind == rows.KindList || elem.oid == oidBox {
		return Opaque(elem.source + "[]")
	}
	return Codec{oid: elem.oid, typ: rows.List(elem.typ), source: elem.source + "[]", verbatim: elem.verbatim}
}

// Opaque is the codec of a type that travels as the server's text, known only by its name: composites, ranges of a
// user's, what an extension brings.
func Opaque(typeName string) Codec {
	return Codec{typ: rows.Of(rows.KindText), source: typeName}
}

// Verbatim is Opaque for a type whose binary form is its text too: enums, citext.
func Verbatim(typeName string) Codec {
	return Codec{typ: rows.Of(rows.KindText), source: typeName, verbatim: true}
}

// element is the codec of a list's elements.
func (c Codec) element() Codec {
	return Codec{oid: c.oid, typ: c.typ.ElemType(), source: strings.TrimSuffix(c.source, "[]"), verbatim: c.verbatim}
}

// Type is the logical type of the column.
func (c Codec) Type() rows.Type { return c.typ }

// SourceType is the type in PostgreSQL's words, for rows.Column.Source: numeric(10,2), character varying(20), integer[].
func (c Codec) SourceType() string { return c.source }

// HasBinary reports whether Decoder knows the type's binary form. A publication may be read with binary 'true' only
// if it is so for every column.
func (c Codec) HasBinary() bool {
	if c.typ.Kind == rows.KindList {
		return c.element().HasBinary()
	}
	return c.typ.Kind != rows.KindText || c.verbatim
}

// Decoder binds the codec to column col of b, whose type must be the codec's.
func (c Codec) Decoder(b *rows.Builder, col int, f Format) (Decoder, error) {
	if got := b.Schema().Column(col).Type; got != c.typ {
		return nil, fmt.Errorf("bind %s to column %q of type %v: it reads as %v", c.source, b.Schema().Column(col).Name, got, c.typ)
	}
	if f != Text && f != Binary {
		return nil, fmt.Errorf("bind %s: format %q", c.source, byte(f))
	}
	if f == Binary && !c.HasBinary() {
		return nil, fmt.Errorf("bind %s: no binary form known", c.source)
	}
	return c.bind(slot{b: b, col: col}, b.Column(col), f)
}

// bind makes the decoder into a builder of the codec's type; to is where specials go.
func (c Codec) bind(to slot, out array.Builder, f Format) (Decoder, error) {
	binary := f == Binary
	switch out := out.(type) {
	case *array.BooleanBuilder:
		return decodeBool(out, binary), nil
	case *array.Int16Builder:
		return decodeInt(out, binary, 2), nil
	case *array.Int32Builder:
		return decodeInt(out, binary, 4), nil
	case *array.Int64Builder:
		return decodeInt(out, binary, 8), nil
	case *array.Uint32Builder:
		return decodeOID(out, binary), nil
	case *array.Float32Builder:
		return decodeFloat32(out, binary), nil
	case *array.Float64Builder:
		return decodeFloat64(out, binary), nil
	case *array.Decimal128Builder:
		return decodeDecimal(to, int(c.typ.Precision), int(c.typ.Scale), binary, append128(out)), nil
	case *array.Decimal256Builder:
		return decodeDecimal(to, int(c.typ.Precision), int(c.typ.Scale), binary, append256(out)), nil
	case *array.Date32Builder:
		return decodeDate(to, out, binary), nil
	case *array.Time64Builder:
		return decodeTime(to, out, binary), nil
	case *array.TimestampBuilder:
		return decodeTimestamp(to, out, binary, c.typ.Kind == rows.KindTimestampTZ), nil
	case *array.FixedSizeBinaryBuilder:
		return decodeUUID(out, binary), nil
	case *array.BinaryBuilder:
		return decodeBytes(out, binary), nil
	case *array.StringBuilder:
		switch {
		case c.typ.Kind == rows.KindDecimalText:
			return decodeDecimalText(to, out, binary), nil
		case c.oid == oidJSONB && binary:
			return decodeJSONB(out), nil
		}
		return decodeText(out), nil
	case *array.ListBuilder:
		return c.decodeList(to, out, f)
	}
	return nil, fmt.Errorf("bind %s: no decoder for %v", c.source, c.typ)
}

// slot is where a special value goes: into its column, or for an element of a list to whoever reads the list.
type slot struct {
	b    *rows.Builder
	col  int
	elem *bool
}

func (s slot) special(text []byte) {
	if s.elem != nil {
		*s.elem = true
		return
	}
	s.b.Special(s.col, string(text))
}
