package mycodec

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
)

// KeyOrder says how the server orders the values of a column, and so the cells that Key makes of them.
type KeyOrder uint8

// The orders.
const (
	// Unordered columns cannot be searched by ranges: no literal means a value of theirs exactly.
	Unordered KeyOrder = iota
	// ByBytes is the order of the cells' bytes.
	ByBytes
	// ByCollation is one that only the server knows.
	ByCollation
)

// KeyOrder is the order of the column. bytewise says that the column's collation is that of bytes, without padding.
func (c Codec) KeyOrder(bytewise bool) KeyOrder {
	switch c.kind {
	case kInt, kYear, kBit, kEnum, kSet, kDate, kTime, kDateTime, kTimestamp, kOldTime, kOldDateTime, kOldTimestamp:
		return ByBytes
	case kBytes:
		if c.source == "geometry" {
			return Unordered
		}
		return ByBytes
	case kText:
		if bytewise {
			return ByBytes
		}
		return ByCollation
	case kFloat, kDouble, kDecimal, kJSON, kVector, kUUID, kInet:
	}
	return Unordered
}

// Key appends the key cell of a non-null cell: equal values have equal ones, whatever form they came in.
func (c Codec) Key(dst, cell []byte, f Format) ([]byte, error) {
	log := f == Log
	var ok bool
	var n int64
	switch c.kind {
	case kInt, kYear:
		n, ok = c.whole(cell, log)
		if ok && c.unsigned {
			return binary.BigEndian.AppendUint64(dst, uint64(n)), nil
		}
	case kEnum, kSet:
		var v uint64
		if v, ok = c.number(cell, log); ok {
			return binary.BigEndian.AppendUint64(dst, v), nil
		}
	case kBit:
		if ok = len(cell) == c.bytes; ok {
			return binary.BigEndian.AppendUint64(dst, big(cell)), nil
		}
	case kDate:
		var v civil
		v, ok = c.readDate(cell, log)
		n = v.ordinal()
	case kDateTime, kTimestamp, kOldDateTime, kOldTimestamp:
		var v civil
		v, ok = c.moment(cell, log)
		n = v.ordinal()
	case kTime, kOldTime:
		n, ok = c.span(cell, log)
	case kBytes:
		dst = append(dst, cell...)
		if c.padded && len(cell) < c.bytes {
			dst = append(dst, make([]byte, c.bytes-len(cell))...)
		}
		return dst, nil
	case kDecimal, kFloat, kDouble:
		return c.numberKey(dst, cell, log)
	case kUUID, kInet:
		raw, ok := c.address(cell, log)
		if !ok {
			return dst, c.bad()
		}
		return append(dst, raw...), nil
	case kText, kJSON, kVector:
		return append(dst, cell...), nil
	}
	if !ok {
		return dst, c.bad()
	}
	return binary.BigEndian.AppendUint64(dst, uint64(n)^1<<63), nil
}

func (c Codec) whole(cell []byte, log bool) (int64, bool) {
	if !log {
		return c.written(cell)
	}
	if len(cell) != c.Width() {
		return 0, false
	}
	return c.logged(cell), true
}

// numberKey makes the key of a number that has no order here.
func (c Codec) numberKey(dst, cell []byte, log bool) ([]byte, error) {
	if c.kind == kDecimal {
		read := c.plainDecimal
		if log {
			read = c.packedDecimal
		}
		m, negative, ok := read(cell)
		if !ok {
			return dst, c.bad()
		}
		if negative && m != (magnitude{}) {
			dst = append(dst, '-')
		}
		return appendDecimal(dst, m, c.scale), nil
	}
	if !log {
		v, err := strconv.ParseFloat(string(cell), 64)
		if err != nil {
			return dst, c.bad()
		}
		return strconv.AppendFloat(dst, v, 'g', -1, 64), nil
	}
	var out []byte
	err := c.floats(true, c.Width(), func(v float64, bits uint64) {
		if c.kind == kFloat {
			v = float64(math.Float32frombits(uint32(bits)))
		}
		out = strconv.AppendFloat(dst, v, 'g', -1, 64)
	})(cell)
	return out, err
}

// ordinal grows with the date and time, also of those that no calendar has.
func (v civil) ordinal() int64 {
	return int64((v.year*13+v.month)*32+v.day)*usPerDay + v.clock()
}

// civilOf is the inverse of ordinal.
func civilOf(n int64) civil {
	days, us := int(n/usPerDay), n%usPerDay
	s := int(us / usPerSecond)
	return civil{days / 32 / 13, days / 32 % 13, days % 32, s / 3600, s / 60 % 60, s % 60, int(us % usPerSecond)}
}

// Literal appends the SQL for the value of a key cell, to be compared with the column.
func (c Codec) Literal(dst, key []byte) ([]byte, error) {
	if c.kind == kText || c.kind == kBytes {
		if c.kind == kText {
			dst = append(append(dst, '_'), c.charset.name...)
			dst = append(dst, ' ')
		}
		dst = append(dst, "x'"...)
		return append(hex.AppendEncode(dst, key), '\''), nil
	}
	if len(key) != 8 || c.KeyOrder(false) == Unordered {
		return dst, fmt.Errorf("a key of %d bytes for %s: %w", len(key), c.source, ErrCell)
	}
	v := binary.BigEndian.Uint64(key)
	n := int64(v ^ 1<<63)
	switch c.kind {
	case kEnum, kSet, kBit:
		return strconv.AppendUint(dst, v, 10), nil
	case kDate:
		return append(append(append(dst, '\''), civilOf(n).date()...), '\''), nil
	case kDateTime, kTimestamp, kOldDateTime, kOldTimestamp:
		return append(append(append(dst, '\''), civilOf(n).text(6)...), '\''), nil
	case kTime, kOldTime:
		dst = append(dst, '\'')
		if n < 0 {
			dst, n = append(dst, '-'), -n
		}
		s := int(n / usPerSecond)
		dst = append(dst, clockText(s/3600, s/60%60, s%60, int(n%usPerSecond), 6)...)
		return append(dst, '\''), nil
	default:
		if c.unsigned {
			return strconv.AppendUint(dst, v, 10), nil
		}
		return strconv.AppendInt(dst, n, 10), nil
	}
}
