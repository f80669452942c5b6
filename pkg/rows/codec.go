package rows

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// Codec is everything that depends on a logical type: its Arrow form and the forms of one value.
// A schema resolves one per column when it is made; nothing asks for a value's type again.
//
// A col passed to a codec has the codec's Arrow type; the codec panics otherwise, as that is a fault of the caller.
type Codec interface {
	// Type is the logical type.
	Type() Type
	// Arrow is the Arrow type of a column.
	Arrow() arrow.DataType
	// AppendCanonical writes the value for keys and hashing: self-delimiting, null included, and equal exactly for values
	// a database calls equal. Widening an integer or a decimal does not change it; 1.0 and 1.00 are one number; -0 is 0.
	AppendCanonical(dst []byte, col arrow.Array, row int) []byte
	// AppendText writes the value as SQL text in PostgreSQL's spelling, exact to the last digit. Null writes nothing:
	// the caller tells null from empty.
	AppendText(dst []byte, col arrow.Array, row int) []byte
	// AppendJSON writes the value as one JSON value: numbers as numbers except decimals, which are strings because
	// readers would round them; bytes as base64; null as null.
	AppendJSON(dst []byte, col arrow.Array, row int) []byte
	// Equal reports whether two cells are the same stored value: floats bit by bit (any NaN is NaN), null equals null.
	Equal(a arrow.Array, i int, b arrow.Array, j int) bool
	// Copy appends the cell to a builder made for the same type.
	Copy(dst array.Builder, src arrow.Array, row int)
	// Gather copies the cells idx of src, in that order, into a new array.
	Gather(src arrow.Array, idx []int32) arrow.Array
}

// The tags that open a canonical cell.
const (
	tagNull    = 0
	tagValue   = 1
	tagSpecial = 2 // of a key only: the text of a value that the column's type cannot hold
)

// CodecFor resolves the codec of a valid type. It panics on an invalid one: Schema constructors validate first.
func CodecFor(t Type) Codec {
	switch t.Kind {
	case KindBool:
		return boolCodec()
	case KindInt8:
		return intCodec[int8, *array.Int8, *array.Int8Builder](t, arrow.PrimitiveTypes.Int8)
	case KindInt16:
		return intCodec[int16, *array.Int16, *array.Int16Builder](t, arrow.PrimitiveTypes.Int16)
	case KindInt32:
		return intCodec[int32, *array.Int32, *array.Int32Builder](t, arrow.PrimitiveTypes.Int32)
	case KindInt64:
		return intCodec[int64, *array.Int64, *array.Int64Builder](t, arrow.PrimitiveTypes.Int64)
	case KindUint8:
		return uintCodec[uint8, *array.Uint8, *array.Uint8Builder](t, arrow.PrimitiveTypes.Uint8)
	case KindUint16:
		return uintCodec[uint16, *array.Uint16, *array.Uint16Builder](t, arrow.PrimitiveTypes.Uint16)
	case KindUint32:
		return uintCodec[uint32, *array.Uint32, *array.Uint32Builder](t, arrow.PrimitiveTypes.Uint32)
	case KindUint64:
		return uintCodec[uint64, *array.Uint64, *array.Uint64Builder](t, arrow.PrimitiveTypes.Uint64)
	case KindFloat32:
		return float32Codec()
	case KindFloat64:
		return float64Codec()
	case KindDecimal:
		if t.Precision <= 38 {
			return decimal128Codec(t)
		}
		return decimal256Codec(t)
	case KindDecimalText:
		return decimalTextCodec()
	case KindText:
		return textCodec()
	case KindJSON:
		return jsonCodec()
	case KindBytes:
		return bytesCodec()
	case KindUUID:
		return uuidCodec()
	case KindDate:
		return dateCodec()
	case KindTime:
		return timeCodec()
	case KindDuration:
		return durationCodec()
	case KindTimestamp:
		return timestampCodec(t, &arrow.TimestampType{Unit: arrow.Microsecond}, "", "")
	case KindTimestampTZ:
		return timestampCodec(t, timestampUTC, "+00", "Z")
	case KindList:
		return newListCodec(t)
	}
	panic(fmt.Sprintf("rows: no codec for %v", t))
}

// valueArray is an Arrow array with a typed accessor, builderOf its builder.
type valueArray[T any] interface {
	arrow.Array
	Value(int) T
}

type builderOf[T any] interface {
	array.Builder
	Append(T)
}

// scalar is the codec of every type but lists: the forms of one non-null value, over a typed array and builder.
type scalar[T any, A valueArray[T], B builderOf[T]] struct {
	typ       Type
	arrow     arrow.DataType
	canonical func([]byte, T) []byte
	text      func([]byte, T) []byte
	json      func([]byte, T) []byte
	equal     func(a, b T) bool
	gather    func(src arrow.Array, idx []int32) arrow.Array
}

func (c *scalar[T, A, B]) Type() Type            { return c.typ }
func (c *scalar[T, A, B]) Arrow() arrow.DataType { return c.arrow }

func (c *scalar[T, A, B]) AppendCanonical(dst []byte, col arrow.Array, row int) []byte {
	a := col.(A)
	if a.IsNull(row) {
		return append(dst, tagNull)
	}
	return c.canonical(append(dst, tagValue), a.Value(row))
}

func (c *scalar[T, A, B]) AppendText(dst []byte, col arrow.Array, row int) []byte {
	a := col.(A)
	if a.IsNull(row) {
		return dst
	}
	return c.text(dst, a.Value(row))
}

func (c *scalar[T, A, B]) AppendJSON(dst []byte, col arrow.Array, row int) []byte {
	a := col.(A)
	if a.IsNull(row) {
		return append(dst, "null"...)
	}
	return c.json(dst, a.Value(row))
}

func (c *scalar[T, A, B]) Equal(a arrow.Array, i int, b arrow.Array, j int) bool {
	x, y := a.(A), b.(A)
	if x.IsNull(i) || y.IsNull(j) {
		return x.IsNull(i) && y.IsNull(j)
	}
	return c.equal(x.Value(i), y.Value(j))
}

func (c *scalar[T, A, B]) Copy(dst array.Builder, src arrow.Array, row int) {
	b, a := dst.(B), src.(A)
	if a.IsNull(row) {
		b.AppendNull()
		return
	}
	b.Append(a.Value(row))
}

func (c *scalar[T, A, B]) Gather(src arrow.Array, idx []int32) arrow.Array { return c.gather(src, idx) }

// quoted makes the JSON form of a type whose text needs no escaping.
func quoted[T any](text func([]byte, T) []byte) func([]byte, T) []byte {
	return func(dst []byte, v T) []byte { return append(text(append(dst, '"'), v), '"') }
}
