package pgcodec

import (
	"errors"
	"fmt"

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

// Codec is the meaning of one server type.
type Codec struct {
	oid    uint32
	typ    rows.Type
	source string
}

// ForOID resolves a type from what pgoutput's Relation message or the catalog says. For a domain pass its base type.
// TypeName is used only for types that are not built in, which travel as the server's text.
func ForOID(oid uint32, typmod int32, typeName string) Codec {
	return Codec{oid: oid, typ: logicalType(oid, typmod), source: sourceType(oid, typmod, typeName)}
}

// Type is the logical type of the column.
func (c Codec) Type() rows.Type { return c.typ }

// SourceType is the type in PostgreSQL's words, for rows.Column.Source: numeric(10,2), character varying(20), integer[].
func (c Codec) SourceType() string { return c.source }

// HasBinary reports whether Decoder knows the type's binary form. A publication may be read with binary 'true' only
// if it is so for every column.
func (c Codec) HasBinary() bool {
	if c.typ.Kind != rows.KindText {
		return true
	}
	switch c.oid {
	case oidText, oidVarchar, oidBpchar, oidName, oidXML:
		return true // their send functions write the text itself
	}
	return false
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
	binary := f == Binary
	switch out := b.Column(col).(type) {
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
		return decodeDecimal(slot{b, col}, int(c.typ.Precision), int(c.typ.Scale), binary, append128(out)), nil
	case *array.Decimal256Builder:
		return decodeDecimal(slot{b, col}, int(c.typ.Precision), int(c.typ.Scale), binary, append256(out)), nil
	case *array.Date32Builder:
		return decodeDate(slot{b, col}, out, binary), nil
	case *array.Time64Builder:
		return decodeTime(slot{b, col}, out, binary), nil
	case *array.TimestampBuilder:
		return decodeTimestamp(slot{b, col}, out, binary, c.typ.Kind == rows.KindTimestampTZ), nil
	case *array.FixedSizeBinaryBuilder:
		return decodeUUID(out, binary), nil
	case *array.BinaryBuilder:
		return decodeBytes(out, binary), nil
	case *array.StringBuilder:
		switch {
		case c.typ.Kind == rows.KindDecimalText:
			return decodeDecimalText(slot{b, col}, out, binary), nil
		case c.oid == oidJSONB && binary:
			return decodeJSONB(out), nil
		}
		return decodeText(out), nil
	}
	return nil, fmt.Errorf("bind %s: no decoder for %v", c.source, c.typ)
}

// slot is where a special value goes.
type slot struct {
	b   *rows.Builder
	col int
}

func (s slot) special(text []byte) { s.b.Special(s.col, string(text)) }
