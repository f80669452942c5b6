package mycodec

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow/array"

	"weir.dev/weir/pkg/rows"
)

// ErrCell is in the chain of a Decoder's error: the bytes are not a value of the column's type.
var ErrCell = errors.New("not a value of the column's type")

// Format is the form of a cell.
type Format byte

// The two forms: a cell of a row image, without the length before it, and one of a SELECT of Expr over the text protocol.
const (
	Log  Format = 'l'
	Text Format = 't'
)

// Decoder appends one non-null cell to the column it is bound to. The bytes are copied, not kept.
// A value the column's type cannot hold is recorded as special; see rows.Builder.Special.
type Decoder func(cell []byte) error

func (c Codec) bad() error { return fmt.Errorf("%s: %w", c.source, ErrCell) }

// Decoder binds the codec to column col of b, whose type must be the codec's.
func (c Codec) Decoder(b *rows.Builder, col int, f Format) (Decoder, error) {
	if got := b.Schema().Column(col).Type; got != c.Type() {
		return nil, fmt.Errorf("bind %s to column %q of type %v: it reads as %v", c.source, b.Schema().Column(col).Name, got, c.Type())
	}
	if f != Log && f != Text {
		return nil, fmt.Errorf("bind %s: format %q", c.source, byte(f))
	}
	out, log := b.Column(col), f == Log
	switch c.kind {
	case kInt:
		return c.integers(out, log)
	case kYear:
		out := out.(*array.Int16Builder)
		return c.numbers(log, 1, func(v int64) { out.Append(int16(v)) }), nil
	case kFloat:
		return c.floats(log, 4, func(v float64, bits uint64) {
			if log {
				out.(*array.Float32Builder).Append(math.Float32frombits(uint32(bits)))
				return
			}
			out.(*array.Float32Builder).Append(float32(v))
		}), nil
	case kDouble:
		return c.floats(log, 8, func(v float64, _ uint64) { out.(*array.Float64Builder).Append(v) }), nil
	case kDecimal:
		return c.decimals(out, log), nil
	case kDate:
		return c.dates(b, col, out.(*array.Date32Builder), log), nil
	case kTime, kOldTime:
		return c.times(out.(*array.DurationBuilder), log), nil
	case kDateTime, kTimestamp, kOldDateTime, kOldTimestamp:
		return c.moments(b, col, out.(*array.TimestampBuilder), log), nil
	case kBit, kBytes:
		return c.raw(out.(*array.BinaryBuilder)), nil
	case kText:
		return c.texts(out.(*array.StringBuilder)), nil
	case kEnum, kSet:
		return c.enums(out.(*array.StringBuilder), log), nil
	case kJSON:
		return c.json(out.(*array.StringBuilder), log), nil
	case kVector:
		return c.vectors(out.(*array.ListBuilder)), nil
	case kUUID:
		return c.uuids(out.(*array.FixedSizeBinaryBuilder), log), nil
	case kInet:
		return c.addresses(out.(*array.StringBuilder), log), nil
	}
	return nil, fmt.Errorf("bind %s: %w", c.source, ErrUnknown)
}

// little reads an unsigned number of up to 8 bytes, the lowest first.
func little(cell []byte) (v uint64) {
	for i, b := range cell {
		v |= uint64(b) << (8 * i)
	}
	return v
}

// big reads an unsigned number of up to 8 bytes, the highest first.
func big(cell []byte) (v uint64) {
	for _, b := range cell {
		v = v<<8 | uint64(b)
	}
	return v
}

// integers makes the decoder of whole numbers; the log has them little-endian, in as many bytes as the type.
func (c Codec) integers(out array.Builder, log bool) (Decoder, error) {
	switch out := out.(type) {
	case *array.Int8Builder:
		return c.numbers(log, c.bytes, func(v int64) { out.Append(int8(v)) }), nil
	case *array.Int16Builder:
		return c.numbers(log, c.bytes, func(v int64) { out.Append(int16(v)) }), nil
	case *array.Int32Builder:
		return c.numbers(log, c.bytes, func(v int64) { out.Append(int32(v)) }), nil
	case *array.Int64Builder:
		return c.numbers(log, c.bytes, out.Append), nil
	case *array.Uint8Builder:
		return c.numbers(log, c.bytes, func(v int64) { out.Append(uint8(v)) }), nil
	case *array.Uint16Builder:
		return c.numbers(log, c.bytes, func(v int64) { out.Append(uint16(v)) }), nil
	case *array.Uint32Builder:
		return c.numbers(log, c.bytes, func(v int64) { out.Append(uint32(v)) }), nil
	case *array.Uint64Builder:
		return c.numbers(log, c.bytes, func(v int64) { out.Append(uint64(v)) }), nil
	}
	return nil, fmt.Errorf("bind %s: no builder of integers", c.source)
}

func (c Codec) numbers(log bool, bytes int, put func(int64)) Decoder {
	if log {
		return func(cell []byte) error {
			if len(cell) != bytes {
				return c.bad()
			}
			put(c.logged(cell))
			return nil
		}
	}
	return func(cell []byte) error {
		v, ok := c.written(cell)
		if !ok {
			return c.bad()
		}
		put(v)
		return nil
	}
}

// logged is the number in a cell of the log; an unsigned one in its bits.
func (c Codec) logged(cell []byte) int64 {
	v := little(cell)
	switch {
	case c.kind == kYear && v > 0:
		return int64(v) + 1900
	case c.unsigned || c.kind == kYear:
		return int64(v)
	}
	unused := 64 - 8*len(cell)
	return int64(v<<unused) >> unused
}

// written is the number in a cell of text.
func (c Codec) written(cell []byte) (int64, bool) {
	if c.unsigned {
		v, err := strconv.ParseUint(string(cell), 10, 8*c.bytes)
		return int64(v), err == nil
	}
	if c.kind == kYear {
		v, err := strconv.ParseUint(string(cell), 10, 15)
		return int64(v), err == nil
	}
	v, err := strconv.ParseInt(string(cell), 10, 8*c.bytes)
	return v, err == nil
}

func (c Codec) floats(log bool, bytes int, put func(v float64, bits uint64)) Decoder {
	if log {
		return func(cell []byte) error {
			if len(cell) != bytes {
				return c.bad()
			}
			bits := little(cell)
			put(math.Float64frombits(bits), bits)
			return nil
		}
	}
	return func(cell []byte) error {
		v, err := strconv.ParseFloat(string(cell), 64)
		if err != nil {
			return c.bad()
		}
		put(v, 0)
		return nil
	}
}

// raw makes the decoder of bytes, which have one form; the log leaves out the zeros that fill a BINARY.
func (c Codec) raw(out *array.BinaryBuilder) Decoder {
	if !c.padded {
		return func(cell []byte) error {
			out.Append(cell)
			return nil
		}
	}
	var full []byte
	return func(cell []byte) error {
		if len(cell) > c.bytes {
			return c.bad()
		}
		if len(cell) == c.bytes {
			out.Append(cell)
			return nil
		}
		full = append(append(full[:0], cell...), make([]byte, c.bytes-len(cell))...)
		out.Append(full)
		return nil
	}
}

func (c Codec) texts(out *array.StringBuilder) Decoder {
	if c.charset == &utf8mb4 || c.charset == &utf8mb3 {
		return func(cell []byte) error {
			out.BinaryBuilder.Append(cell) // servers accept no other bytes
			return nil
		}
	}
	var buf []byte
	return func(cell []byte) error {
		var ok bool
		if buf, ok = c.charset.decode(buf[:0], cell); !ok {
			return c.bad()
		}
		out.BinaryBuilder.Append(buf)
		return nil
	}
}

// enums makes the decoder of ENUM and SET, whose cells are numbers in both forms: the place of a member, 0 for the invalid
// value that shows as the empty text, or one bit for each.
func (c Codec) enums(out *array.StringBuilder, log bool) Decoder {
	labels := c.members()
	var buf []byte
	put := func(v uint64) error {
		if c.kind == kEnum {
			switch {
			case v == 0:
				out.Append("")
			case v > uint64(len(labels)):
				return c.bad()
			default:
				out.Append(labels[v-1])
			}
			return nil
		}
		buf = buf[:0]
		for i, l := range labels {
			if v&(1<<i) == 0 {
				continue
			}
			if len(buf) > 0 {
				buf = append(buf, ',')
			}
			buf = append(buf, l...)
		}
		if len(labels) < 64 && v>>len(labels) != 0 {
			return c.bad()
		}
		out.BinaryBuilder.Append(buf)
		return nil
	}
	return func(cell []byte) error {
		v, ok := c.number(cell, log)
		if !ok {
			return c.bad()
		}
		return put(v)
	}
}

// number is the number of an ENUM or SET.
func (c Codec) number(cell []byte, log bool) (uint64, bool) {
	if log {
		return little(cell), len(cell) == c.bytes
	}
	v, err := strconv.ParseUint(string(cell), 10, 64)
	return v, err == nil
}

// vectors makes the decoder of VECTOR: floats of four bytes, in both forms.
func (c Codec) vectors(out *array.ListBuilder) Decoder {
	items := out.ValueBuilder().(*array.Float32Builder)
	return func(cell []byte) error {
		if len(cell)%4 != 0 {
			return c.bad()
		}
		out.Append(true)
		for ; len(cell) > 0; cell = cell[4:] {
			items.Append(math.Float32frombits(uint32(little(cell[:4]))))
		}
		return nil
	}
}
