package pgcodec

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"weir.dev/weir/pkg/rows"
)

// ErrSpecial is in the chain of a Field's error: PostgreSQL's type has no such value either (a zero date from MySQL).
// Nothing was written; the caller decides between failing, null and text.
var ErrSpecial = errors.New("value does not exist in PostgreSQL")

// Field appends one cell as a field of a binary COPY: a length of four bytes, -1 for null, and the value.
// Absent cells are written as null; the caller leaves such columns out.
type Field func(dst []byte, row int) ([]byte, error)

const nullField = "\xff\xff\xff\xff"

// CopyHeader opens a binary COPY stream, CopyTrailer closes it.
const (
	CopyHeader  = "PGCOPY\n\xff\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00"
	CopyTrailer = "\xff\xff"
)

// AppendTuple opens a row of n fields in a binary COPY stream.
func AppendTuple(dst []byte, n int) []byte { return binary.BigEndian.AppendUint16(dst, uint16(n)) }

// BindField makes the Field for column col of b, in the binary form of StageType of the column.
func BindField(b *rows.Batch, col int) Field {
	write, parse := writerOf(b, col)
	column := b.Column(col)
	if !b.HasSpecial() {
		if column.NullN() == 0 {
			return func(dst []byte, row int) ([]byte, error) { return write(dst, row), nil }
		}
		return func(dst []byte, row int) ([]byte, error) {
			if column.IsNull(row) {
				return append(dst, nullField...), nil
			}
			return write(dst, row), nil
		}
	}
	name := b.Schema().Column(col).Name
	return func(dst []byte, row int) ([]byte, error) {
		if column.IsValid(row) {
			return write(dst, row), nil
		}
		text, ok := b.SpecialText(col, row)
		if !ok {
			return append(dst, nullField...), nil
		}
		if out, ok := parse(dst, []byte(text)); ok {
			return out, nil
		}
		return dst, fmt.Errorf("column %q: %w", name, ErrSpecial)
	}
}

// Fields for what a row carries besides its columns, in the binary form of the type named.

// OpField writes `_op` as smallint.
func OpField(b *rows.Batch) Field {
	return func(dst []byte, row int) ([]byte, error) { return put2(dst, uint16(b.Op(row))), nil }
}

// SeqField writes `_seq` as bigint.
func SeqField(b *rows.Batch) Field {
	return func(dst []byte, row int) ([]byte, error) { return put8(dst, b.Seq(row)), nil }
}

// TxnField writes `_txn` as bigint.
func TxnField(b *rows.Batch) Field {
	return func(dst []byte, row int) ([]byte, error) { return put8(dst, b.Txn(row)), nil }
}

// OrdField writes `_ord` as bigint.
func OrdField(b *rows.Batch) Field {
	return func(dst []byte, row int) ([]byte, error) { return put8(dst, uint64(b.Ord(row))), nil }
}

// TsField writes `_ts` as timestamp with time zone.
func TsField(b *rows.Batch) Field {
	return func(dst []byte, row int) ([]byte, error) {
		if ts := b.Ts(row); ts != rows.NoTs {
			return putMicros(dst, ts), nil
		}
		return append(dst, nullField...), nil
	}
}

// Constant writes the same bigint in every row, for example the epoch.
func Constant(v int64) Field {
	return func(dst []byte, _ int) ([]byte, error) { return put8(dst, uint64(v)), nil }
}

func put2(dst []byte, v uint16) []byte {
	return append(dst, 0, 0, 0, 2, byte(v>>8), byte(v))
}

func put4(dst []byte, v uint32) []byte {
	return binary.BigEndian.AppendUint32(append(dst, 0, 0, 0, 4), v)
}

func put8(dst []byte, v uint64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, 0, 0, 0, 8), v)
}

func putSized[T ~string | ~[]byte](dst []byte, v T) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(v)))
	return append(dst, v...)
}

func putMicros(dst []byte, us int64) []byte { return put8(dst, uint64(us-epochGap*usPerDay)) }

type (
	write        func(dst []byte, row int) []byte
	parseSpecial func(dst, text []byte) ([]byte, bool)
)

func noSpecial(dst, _ []byte) ([]byte, bool) { return dst, false }

// writerOf resolves, once per batch and column, how non-null cells and special texts are written.
func writerOf(b *rows.Batch, col int) (write, parseSpecial) {
	c := b.Schema().Column(col)
	switch a := b.Column(col).(type) {
	case *array.Boolean:
		return func(dst []byte, row int) []byte {
			v := byte(0)
			if a.Value(row) {
				v = 1
			}
			return append(dst, 0, 0, 0, 1, v)
		}, noSpecial
	case *array.Int8:
		return func(dst []byte, row int) []byte { return put2(dst, uint16(a.Value(row))) }, noSpecial
	case *array.Int16:
		return func(dst []byte, row int) []byte { return put2(dst, uint16(a.Value(row))) }, noSpecial
	case *array.Int32:
		return func(dst []byte, row int) []byte { return put4(dst, uint32(a.Value(row))) }, noSpecial
	case *array.Int64:
		return func(dst []byte, row int) []byte { return put8(dst, uint64(a.Value(row))) }, noSpecial
	case *array.Uint8:
		return func(dst []byte, row int) []byte { return put2(dst, uint16(a.Value(row))) }, noSpecial
	case *array.Uint16:
		return func(dst []byte, row int) []byte { return put4(dst, uint32(a.Value(row))) }, noSpecial
	case *array.Uint32:
		return func(dst []byte, row int) []byte { return put8(dst, uint64(a.Value(row))) }, noSpecial
	case *array.Float32:
		return func(dst []byte, row int) []byte { return put4(dst, math.Float32bits(a.Value(row))) }, noSpecial
	case *array.Float64:
		return func(dst []byte, row int) []byte { return put8(dst, math.Float64bits(a.Value(row))) }, noSpecial
	case *array.Uint64, *array.Decimal128, *array.Decimal256:
		codec := b.Schema().Codec(col)
		var text []byte
		return func(dst []byte, row int) []byte {
			text = codec.AppendText(text[:0], a, row)
			dst, _ = putNumeric(dst, text) // a codec's number is plain decimal text
			return dst
		}, putNumeric
	case *array.String:
		return stringWriter(a, c)
	case *array.Binary:
		return func(dst []byte, row int) []byte { return putSized(dst, a.Value(row)) }, noSpecial
	case *array.FixedSizeBinary:
		return func(dst []byte, row int) []byte { return putSized(dst, a.Value(row)) }, noSpecial
	case *array.Date32:
		return func(dst []byte, row int) []byte { return put4(dst, uint32(int64(a.Value(row))-epochGap)) }, putDate
	case *array.Time64:
		return func(dst []byte, row int) []byte { return put8(dst, uint64(a.Value(row))) }, putTime
	case *array.Duration: // interval: microseconds, days, months
		return func(dst []byte, row int) []byte {
			dst = binary.BigEndian.AppendUint64(append(dst, 0, 0, 0, 16), uint64(a.Value(row)))
			return append(dst, 0, 0, 0, 0, 0, 0, 0, 0)
		}, noSpecial
	case *array.Timestamp:
		zone := zoneOf(c.Type.Kind == rows.KindTimestampTZ)
		return func(dst []byte, row int) []byte { return putMicros(dst, int64(a.Value(row))) },
			func(dst, text []byte) ([]byte, bool) { return putTimestamp(dst, text, zone) }
	}
	// Lists are staged as the text of an array literal, and so are the arrays no list holds.
	codec, a := b.Schema().Codec(col), b.Column(col)
	return func(dst []byte, row int) []byte { return putText(dst, codec, a, row) },
		func(dst, text []byte) ([]byte, bool) { return putSized(dst, text), true }
}

func putText(dst []byte, codec rows.Codec, a arrow.Array, row int) []byte {
	at := len(dst)
	dst = codec.AppendText(append(dst, nullField...), a, row)
	binary.BigEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
	return dst
}

func stringWriter(a *array.String, c rows.Column) (write, parseSpecial) {
	switch {
	case c.Type.Kind == rows.KindDecimalText:
		return func(dst []byte, row int) []byte {
			if out, ok := putNumeric(dst, []byte(a.Value(row))); ok {
				return out
			}
			return append(dst, nullField...)
		}, putNumeric
	case stageJSONB(c):
		return func(dst []byte, row int) []byte {
			v := a.Value(row)
			dst = binary.BigEndian.AppendUint32(dst, uint32(1+len(v)))
			return append(append(dst, 1), v...)
		}, noSpecial
	}
	return func(dst []byte, row int) []byte { return putSized(dst, a.Value(row)) }, noSpecial
}
