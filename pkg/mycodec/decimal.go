package mycodec

import (
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
)

// Digits lie in groups of nine in four bytes; what is left of them takes fewer.
const groupDigits = 9

// wordDigits always fit into a word.
const wordDigits = 18

func leftBytes(digits int) int { return [...]int{0, 1, 1, 2, 2, 3, 3, 4, 4}[digits] }

func decimalBytes(precision, scale int) int {
	whole := precision - scale
	return whole/groupDigits*4 + leftBytes(whole%groupDigits) + scale/groupDigits*4 + leftBytes(scale%groupDigits)
}

// magnitude is an unsigned 256-bit number, the lowest word first; 65 digits have 216 bits.
type magnitude [4]uint64

// shift multiplies by a power of ten and adds.
func (m *magnitude) shift(digits int, add uint64) {
	power := uint64(1)
	for range digits {
		power *= 10
	}
	carry := add
	for i := range m {
		hi, lo := bits.Mul64(m[i], power)
		var over uint64
		m[i], over = bits.Add64(lo, carry, 0)
		carry = hi + over
	}
}

func (c Codec) decimals(out array.Builder, log bool) Decoder {
	var put func(m magnitude, negative bool)
	switch out := out.(type) {
	case *array.Decimal128Builder:
		put = func(m magnitude, negative bool) {
			v := decimal128.New(int64(m[1]), m[0])
			if negative {
				v = v.Negate()
			}
			out.Append(v)
		}
	case *array.Decimal256Builder:
		put = func(m magnitude, negative bool) {
			v := decimal256.New(m[3], m[2], m[1], m[0])
			if negative {
				v = v.Negate()
			}
			out.Append(v)
		}
	}
	read := c.plainDecimal
	if log {
		read = c.packedDecimal
	}
	return func(cell []byte) error {
		m, negative, ok := read(cell)
		if !ok {
			return c.bad()
		}
		put(m, negative)
		return nil
	}
}

// plainDecimal reads digits with a point.
func (c Codec) plainDecimal(cell []byte) (m magnitude, negative, ok bool) {
	if len(cell) > 0 && cell[0] == '-' {
		negative, cell = true, cell[1:]
	}
	digits, behind, point := 0, 0, false
	word, inWord := uint64(0), 0
	for _, d := range cell {
		switch {
		case d == '.' && !point:
			point = true
			continue
		case d < '0' || d > '9':
			return m, false, false
		}
		if inWord == wordDigits {
			m.shift(inWord, word)
			word, inWord = 0, 0
		}
		word, inWord = 10*word+uint64(d-'0'), inWord+1
		if digits > 0 || d != '0' {
			digits++
		}
		if point {
			behind++
		}
	}
	m.shift(inWord, word)
	return m, negative, len(cell) > 0 && behind == c.scale && digits <= c.prec
}

// packedDecimal reads the log's form: groups of digits, the highest first; the highest bit is set for a positive number, and
// every bit of a negative one is turned.
func (c Codec) packedDecimal(cell []byte) (m magnitude, negative, ok bool) {
	if len(cell) != decimalBytes(c.prec, c.scale) {
		return m, false, false
	}
	negative = cell[0]&0x80 == 0
	flip := byte(0)
	if negative {
		flip = 0xff
	}
	first := true
	group := func(size, digits int) bool {
		var v uint64
		for _, b := range cell[:size] {
			b ^= flip
			if first {
				b, first = b^0x80, false
			}
			v = v<<8 | uint64(b)
		}
		cell = cell[size:]
		m.shift(digits, v)
		limit := uint64(1)
		for range digits {
			limit *= 10
		}
		return v < limit
	}
	ok = true
	whole := c.prec - c.scale
	if n := whole % groupDigits; n > 0 {
		ok = group(leftBytes(n), n)
	}
	for range whole/groupDigits + c.scale/groupDigits {
		ok = group(4, groupDigits) && ok
	}
	if n := c.scale % groupDigits; n > 0 {
		ok = group(leftBytes(n), n) && ok
	}
	return m, negative, ok
}

// appendDecimal writes m with the point scale digits from the right.
func appendDecimal(dst []byte, m magnitude, scale int) []byte {
	var digits [80]byte
	at := len(digits)
	for m != (magnitude{}) || len(digits)-at <= scale {
		var rem uint64
		for i := len(m) - 1; i >= 0; i-- {
			m[i], rem = bits.Div64(rem, m[i], 10)
		}
		at--
		digits[at] = byte('0' + rem)
	}
	point := len(digits) - scale
	dst = append(dst, digits[at:point]...)
	if scale > 0 {
		dst = append(append(dst, '.'), digits[point:]...)
	}
	return dst
}
