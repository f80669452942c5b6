package pgcodec

import (
	"bytes"
	"encoding/binary"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
)

// The sign words of a binary numeric.
const (
	signPositive = 0x0000
	signNegative = 0x4000
	signNaN      = 0xC000
	signInf      = 0xD000
	signNegInf   = 0xF000
)

// numeric is a binary numeric taken apart: digits in base 10,000, the first one weighing 10000^weight.
type numeric struct {
	sign   uint16
	weight int
	scale  int // digits after the point that are shown
	digits []byte
}

// readNumeric accepts what the server sends: no leading zero digit, nothing behind the scale, no negative zero.
func readNumeric(cell []byte) (n numeric, ok bool) {
	if len(cell) < 8 {
		return n, false
	}
	count := int(binary.BigEndian.Uint16(cell))
	n.weight = int(int16(binary.BigEndian.Uint16(cell[2:])))
	n.sign = binary.BigEndian.Uint16(cell[4:])
	n.scale = int(binary.BigEndian.Uint16(cell[6:]))
	n.digits = cell[8:]
	if len(n.digits) != 2*count || n.scale > 0x3fff {
		return n, false
	}
	for i := range count {
		if n.digit(i) >= 10_000 {
			return n, false
		}
	}
	switch n.sign {
	case signPositive, signNegative:
		if count == 0 {
			return n, n.sign == signPositive
		}
		return n, n.digit(0) != 0 && !n.hidden(count)
	case signNaN, signInf, signNegInf:
		return n, true
	}
	return n, false
}

// hidden reports whether n has digits beyond its scale; the server cuts them before it sends, and text would not show them.
func (n numeric) hidden(count int) bool {
	for i := count - 1; i >= 0; i-- {
		beyond := 4*(i-n.weight) - n.scale // decimal places of digit i that lie behind the scale
		if beyond <= 0 {
			return false
		}
		unit := [...]uint16{1, 10, 100, 1000, 10_000}[min(beyond, 4)]
		if n.digit(i)%unit != 0 {
			return true
		}
	}
	return false
}

func (n numeric) digit(i int) uint16 { return binary.BigEndian.Uint16(n.digits[2*i:]) }

// finite reports whether n is a number, not one of NaN and the infinities.
func (n numeric) finite() bool { return n.sign == signPositive || n.sign == signNegative }

// appendText writes n as numeric_out does.
func (n numeric) appendText(dst []byte) []byte {
	switch n.sign {
	case signNaN:
		return append(dst, "NaN"...)
	case signInf:
		return append(dst, "Infinity"...)
	case signNegInf:
		return append(dst, "-Infinity"...)
	case signNegative:
		dst = append(dst, '-')
	}
	at := func(i int) uint16 { // the digit that weighs 10000^(weight-i), 0 outside the stored ones
		if i < 0 || 2*i >= len(n.digits) {
			return 0
		}
		return n.digit(i)
	}
	start := len(dst)
	for i := 0; i <= n.weight; i++ {
		dst = append4(dst, at(i))
		if len(dst) == start+4 { // still the first group: no leading zeros
			trimmed := bytes.TrimLeft(dst[start:], "0")
			dst = append(dst[:start], trimmed...)
		}
	}
	if len(dst) == start {
		dst = append(dst, '0')
	}
	if n.scale == 0 {
		return dst
	}
	dst = append(dst, '.')
	start = len(dst)
	for i := n.weight + 1; len(dst)-start < n.scale; i++ {
		dst = append4(dst, at(i))
	}
	return dst[:start+n.scale]
}

func append4(dst []byte, d uint16) []byte {
	return append(dst, byte('0'+d/1000), byte('0'+d/100%10), byte('0'+d/10%10), byte('0'+d%10))
}

// magnitude is an unsigned 256-bit integer, least word first.
type magnitude [4]uint64

// mulAdd is m*f + add; ok is false when it does not fit.
func (m *magnitude) mulAdd(f, add uint64) (ok bool) {
	for i := range m {
		hi, lo := bits.Mul64(m[i], f)
		var c uint64
		m[i], c = bits.Add64(lo, add, 0)
		add = hi + c
	}
	return add == 0
}

func (m *magnitude) less(o *magnitude) bool {
	for i := len(m) - 1; i >= 0; i-- {
		if m[i] != o[i] {
			return m[i] < o[i]
		}
	}
	return false
}

// scaleUp is m * 10^n.
func (m *magnitude) scaleUp(n int) bool {
	for ; n > 0; n -= 19 {
		if !m.mulAdd(pow10(min(n, 19)), 0) {
			return false
		}
	}
	return true
}

// pow10 is 10^n for n up to 19.
func pow10(n int) uint64 {
	f := uint64(1)
	for range n {
		f *= 10
	}
	return f
}

// unscaled is |n| * 10^scale where that is a whole number of 256 bits.
func (n numeric) unscaled(scale int) (m magnitude, ok bool) {
	count := len(n.digits) / 2
	if last := 4*(n.weight-count+1) + scale; count <= 4 && -4 < last && last < 4 { // nearly all: one word will do
		var v uint64
		for i := range count {
			v = v*10_000 + uint64(n.digit(i))
		}
		shift := [...]uint64{1, 10, 100, 1000}
		if last >= 0 {
			return magnitude{v * shift[last]}, true
		}
		return magnitude{v / shift[-last]}, v%shift[-last] == 0
	}
	for i := range count {
		d := n.digit(i)
		exp := 4*(n.weight-i) + scale // digit i counts d * 10^exp
		factor := uint64(10_000)
		if exp < 0 { // finer than the scale, at least in part
			cut := uint16(pow10(min(-exp, 4)))
			if d%cut != 0 {
				return m, false
			}
			d /= cut
			factor = pow10(max(4+exp, 0))
		}
		if !m.mulAdd(factor, uint64(d)) {
			return m, false
		}
	}
	exp := 4*(n.weight-count+1) + scale
	return m, m == (magnitude{}) || m.scaleUp(max(exp, 0))
}

// The most digits a numeric has before and behind the point.
const (
	maxWhole    = 131_072
	maxFraction = 16_383
)

// parseNumber reads decimal text in the form the server writes it, as a whole number of 10^-scale. ok is false where it
// does not fit, valid where it is no such text: the server writes no needless zeros, no plus sign and no negative zero.
func parseNumber(s []byte, scale int) (m magnitude, negative, ok, valid bool) {
	if len(s) > 0 && s[0] == '-' {
		negative, s = true, s[1:]
	}
	whole, fraction, point := s, []byte(nil), bytes.IndexByte(s, '.')
	if point >= 0 {
		whole, fraction = s[:point], s[point+1:]
		valid = len(fraction) > 0
	} else {
		valid = true
	}
	valid = valid && len(whole) > 0 && (len(whole) == 1 || whole[0] != '0') && len(whole) <= maxWhole && len(fraction) <= maxFraction
	zero := true
	for _, part := range [...][]byte{whole, fraction} {
		for _, c := range part {
			valid = valid && c-'0' <= 9
			zero = zero && c == '0'
		}
	}
	if !valid || (negative && zero) {
		return m, negative, false, false
	}
	ok = m.shift(whole)
	for _, c := range fraction[min(scale, len(fraction)):] { // digits finer than the scale
		ok = ok && c == '0'
	}
	fraction = fraction[:min(scale, len(fraction))]
	ok = ok && m.shift(fraction) && m.scaleUp(scale-len(fraction))
	return m, negative, ok, true
}

// shift appends decimal digits to m.
func (m *magnitude) shift(digits []byte) bool {
	for len(digits) > 0 {
		n := min(len(digits), 19)
		var chunk, factor uint64 = 0, 1
		for _, c := range digits[:n] {
			chunk, factor = chunk*10+uint64(c-'0'), factor*10
		}
		if !m.mulAdd(factor, chunk) {
			return false
		}
		digits = digits[n:]
	}
	return true
}

// isNonFinite reports whether numeric text is one of the values that are not numbers.
func isNonFinite(s []byte) bool {
	return string(s) == "NaN" || string(s) == "Infinity" || string(s) == "-Infinity"
}

func append128(out *array.Decimal128Builder) func(magnitude, bool) {
	return func(m magnitude, negative bool) {
		v := decimal128.New(int64(m[1]), m[0])
		if negative {
			v = v.Negate()
		}
		out.Append(v)
	}
}

func append256(out *array.Decimal256Builder) func(magnitude, bool) {
	return func(m magnitude, negative bool) {
		v := decimal256.New(m[3], m[2], m[1], m[0])
		if negative {
			v = v.Negate()
		}
		out.Append(v)
	}
}

// decodeDecimal reads numeric(precision,scale). What does not fit is special, as are NaN and the infinities.
func decodeDecimal(to slot, precision, scale int, binaryForm bool, put func(magnitude, bool)) Decoder {
	limit := magnitude{1}
	limit.scaleUp(precision) // 10^76 has 253 bits
	if !binaryForm {
		return func(cell []byte) error {
			m, negative, ok, valid := parseNumber(cell, scale)
			switch {
			case valid && ok && m.less(&limit):
				put(m, negative)
			case valid || isNonFinite(cell):
				to.special(cell)
			default:
				return badCell("numeric", cell)
			}
			return nil
		}
	}
	return func(cell []byte) error {
		n, ok := readNumeric(cell)
		if !ok {
			return badCell("numeric", cell)
		}
		if n.finite() {
			if m, ok := n.unscaled(scale); ok && m.less(&limit) {
				put(m, n.sign == signNegative)
				return nil
			}
		}
		to.special(n.appendText(nil))
		return nil
	}
}

func decodeDecimalText(to slot, out *array.StringBuilder, binaryForm bool) Decoder {
	if !binaryForm {
		return func(cell []byte) error {
			if isNonFinite(cell) {
				to.special(cell)
				return nil
			}
			if _, _, _, valid := parseNumber(cell, 0); !valid {
				return badCell("numeric", cell)
			}
			out.BinaryBuilder.Append(cell)
			return nil
		}
	}
	var text []byte
	return func(cell []byte) error {
		n, ok := readNumeric(cell)
		if !ok {
			return badCell("numeric", cell)
		}
		text = n.appendText(text[:0])
		if !n.finite() {
			to.special(text)
			return nil
		}
		out.BinaryBuilder.Append(text)
		return nil
	}
}
