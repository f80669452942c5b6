package rows

import (
	"encoding/binary"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
)

func decimal128Codec(t Type) Codec {
	dt := &arrow.Decimal128Type{Precision: int32(t.Precision), Scale: int32(t.Scale)}
	text := func(dst []byte, v decimal.Decimal128) []byte {
		return appendDecimal(dst, words128(v), v.Sign() < 0, int(t.Scale))
	}
	return &scalar[decimal.Decimal128, *array.Decimal128, *array.Decimal128Builder]{
		typ: t, arrow: dt, text: text, json: quoted(text), canonical: canonicalVia(text),
		equal: same[decimal128.Num], gather: gatherFor(dt),
	}
}

func decimal256Codec(t Type) Codec {
	dt := &arrow.Decimal256Type{Precision: int32(t.Precision), Scale: int32(t.Scale)}
	text := func(dst []byte, v decimal.Decimal256) []byte {
		return appendDecimal(dst, words256(v), v.Sign() < 0, int(t.Scale))
	}
	return &scalar[decimal.Decimal256, *array.Decimal256, *array.Decimal256Builder]{
		typ: t, arrow: dt, text: text, json: quoted(text), canonical: canonicalVia(text),
		equal: same[decimal256.Num], gather: gatherFor(dt),
	}
}

func decimalTextCodec() Codec {
	text := func(dst []byte, v string) []byte { return append(dst, v...) }
	return &scalar[string, *array.String, *array.StringBuilder]{
		typ: Of(KindDecimalText), arrow: arrow.BinaryTypes.String, text: text, json: appendJSONString,
		canonical: canonicalVia(text), equal: same[string], gather: gatherFor(arrow.BinaryTypes.String),
	}
}

// canonicalVia writes the number's text without the zeros that do not change its value, its length before it:
// the one form that decimals of every precision, scale and width share.
func canonicalVia[T any](text func([]byte, T) []byte) func([]byte, T) []byte {
	return func(dst []byte, v T) []byte {
		at := len(dst)
		dst = append(dst, 0, 0, 0, 0)
		dst = text(dst, v)
		dst = dst[:at+4+trimDecimal(dst[at+4:])]
		binary.BigEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
		return dst
	}
}

// trimDecimal normalises the plain decimal text s in place and returns its new length.
func trimDecimal(s []byte) int {
	for i, c := range s {
		if c != '.' {
			continue
		}
		n := len(s)
		for n > i+1 && s[n-1] == '0' {
			n--
		}
		if n == i+1 {
			n = i
		}
		s = s[:n]
		break
	}
	if len(s) == 2 && s[0] == '-' && s[1] == '0' {
		s[0] = '0'
		return 1
	}
	return len(s)
}

// magnitude is an unsigned 256-bit number, least word first.
type magnitude [4]uint64

func words128(v decimal128.Num) magnitude {
	if v.Sign() < 0 {
		v = v.Negate()
	}
	return magnitude{v.LowBits(), uint64(v.HighBits())}
}

func words256(v decimal256.Num) magnitude {
	if v.Sign() < 0 {
		v = v.Negate()
	}
	return magnitude(v.Array())
}

const (
	chunkDigits = 19
	chunk       = 10_000_000_000_000_000_000 // 10^19, the largest power of ten in a word
)

// appendDecimal writes m with the point scale digits from the right and at least one digit before it.
func appendDecimal(dst []byte, m magnitude, negative bool, scale int) []byte {
	var digits [80]byte // 2^256 has 78 digits; at least scale+1 are written
	pos := len(digits)
	for m[1]|m[2]|m[3] != 0 {
		var rem uint64
		for i := 3; i >= 0; i-- {
			m[i], rem = bits.Div64(rem, m[i], chunk)
		}
		for range chunkDigits {
			pos--
			digits[pos] = byte('0' + rem%10)
			rem /= 10
		}
	}
	for v := m[0]; v != 0; v /= 10 {
		pos--
		digits[pos] = byte('0' + v%10)
	}
	for pos < len(digits) && digits[pos] == '0' {
		pos++
	}
	for len(digits)-pos < scale+1 {
		pos--
		digits[pos] = '0'
	}
	if negative {
		dst = append(dst, '-')
	}
	point := len(digits) - scale
	dst = append(dst, digits[pos:point]...)
	if scale > 0 {
		dst = append(dst, '.')
		dst = append(dst, digits[point:]...)
	}
	return dst
}
