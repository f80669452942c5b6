package rows

import (
	"encoding/binary"
	"math"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

func same[T comparable](a, b T) bool { return a == b }

// appendCanonicalInt has one width for all integers, so that widening a key column moves no key to another group.
func appendCanonicalInt(dst []byte, v uint64) []byte { return binary.BigEndian.AppendUint64(dst, v) }

func boolCodec() Codec {
	text := func(dst []byte, v bool) []byte { return strconv.AppendBool(dst, v) }
	return &scalar[bool, *array.Boolean, *array.BooleanBuilder]{
		typ: Of(KindBool), arrow: arrow.FixedWidthTypes.Boolean,
		canonical: func(dst []byte, v bool) []byte {
			if v {
				return append(dst, 1)
			}
			return append(dst, 0)
		},
		text: text, json: text, equal: same[bool],
		gather: gatherFor(arrow.FixedWidthTypes.Boolean),
	}
}

func intCodec[T ~int8 | ~int16 | ~int32 | ~int64, A valueArray[T], B builderOf[T]](t Type, dt arrow.DataType) Codec {
	text := func(dst []byte, v T) []byte { return strconv.AppendInt(dst, int64(v), 10) }
	return &scalar[T, A, B]{
		typ: t, arrow: dt,
		canonical: func(dst []byte, v T) []byte { return appendCanonicalInt(dst, uint64(int64(v))) },
		text:      text, json: text, equal: same[T], gather: gatherFor(dt),
	}
}

func uintCodec[T ~uint8 | ~uint16 | ~uint32 | ~uint64, A valueArray[T], B builderOf[T]](t Type, dt arrow.DataType) Codec {
	text := func(dst []byte, v T) []byte { return strconv.AppendUint(dst, uint64(v), 10) }
	return &scalar[T, A, B]{
		typ: t, arrow: dt,
		canonical: func(dst []byte, v T) []byte { return appendCanonicalInt(dst, uint64(v)) },
		text:      text, json: text, equal: same[T], gather: gatherFor(dt),
	}
}

func float32Codec() Codec {
	text := func(dst []byte, v float32) []byte { return appendFloat(dst, float64(v), 32, 1e6) }
	return &scalar[float32, *array.Float32, *array.Float32Builder]{
		typ: Of(KindFloat32), arrow: arrow.PrimitiveTypes.Float32,
		canonical: func(dst []byte, v float32) []byte { return appendCanonicalFloat(dst, float64(v)) },
		text:      text,
		json: func(dst []byte, v float32) []byte {
			return jsonFloat(dst, float64(v), func(dst []byte) []byte { return text(dst, v) })
		},
		equal: func(a, b float32) bool {
			return math.Float32bits(a) == math.Float32bits(b) || (a != a && b != b)
		},
		gather: gatherFor(arrow.PrimitiveTypes.Float32),
	}
}

func float64Codec() Codec {
	text := func(dst []byte, v float64) []byte { return appendFloat(dst, v, 64, 1e15) }
	return &scalar[float64, *array.Float64, *array.Float64Builder]{
		typ: Of(KindFloat64), arrow: arrow.PrimitiveTypes.Float64,
		canonical: appendCanonicalFloat,
		text:      text,
		json: func(dst []byte, v float64) []byte {
			return jsonFloat(dst, v, func(dst []byte) []byte { return text(dst, v) })
		},
		equal: func(a, b float64) bool {
			return math.Float64bits(a) == math.Float64bits(b) || (a != a && b != b)
		},
		gather: gatherFor(arrow.PrimitiveTypes.Float64),
	}
}

// appendCanonicalFloat follows database equality: all NaN are equal, and -0 equals 0.
func appendCanonicalFloat(dst []byte, v float64) []byte {
	switch {
	case v != v:
		v = math.NaN()
	case v == 0:
		v = 0
	}
	return binary.BigEndian.AppendUint64(dst, math.Float64bits(v))
}

// appendFloat writes the shortest digits that read back as v, in the notation PostgreSQL picks:
// plain from 1e-4 up to plainBelow, else with an exponent of at least two digits.
func appendFloat(dst []byte, v float64, bits int, plainBelow float64) []byte {
	abs := math.Abs(v)
	switch {
	case v != v:
		return append(dst, "NaN"...)
	case math.IsInf(v, 1):
		return append(dst, "Infinity"...)
	case math.IsInf(v, -1):
		return append(dst, "-Infinity"...)
	case abs == 0 || (abs < plainBelow && abs >= leastPlain(bits)):
		return strconv.AppendFloat(dst, v, 'f', -1, bits)
	}
	return strconv.AppendFloat(dst, v, 'e', -1, bits)
}

func leastPlain(bits int) float64 {
	if bits == 32 {
		return float64(float32(1e-4))
	}
	return 1e-4
}

// jsonFloat quotes what JSON has no number for.
func jsonFloat(dst []byte, v float64, text func([]byte) []byte) []byte {
	if v != v || math.IsInf(v, 0) {
		return append(text(append(dst, '"')), '"')
	}
	return text(dst)
}
