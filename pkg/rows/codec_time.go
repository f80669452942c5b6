package rows

import (
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

func canonicalTime[T ~int32 | ~int64](dst []byte, v T) []byte {
	return appendCanonicalInt(dst, uint64(int64(v)))
}

func dateCodec() Codec {
	text := func(dst []byte, v arrow.Date32) []byte { return AppendDate(dst, int64(v)) }
	return &scalar[arrow.Date32, *array.Date32, *array.Date32Builder]{
		typ: Of(KindDate), arrow: arrow.FixedWidthTypes.Date32, canonical: canonicalTime[arrow.Date32],
		text: text, json: quoted(text), equal: same[arrow.Date32], gather: gatherFor(arrow.FixedWidthTypes.Date32),
	}
}

func timeCodec() Codec {
	text := func(dst []byte, v arrow.Time64) []byte { return appendSpan(dst, int64(v)) }
	return &scalar[arrow.Time64, *array.Time64, *array.Time64Builder]{
		typ: Of(KindTime), arrow: arrow.FixedWidthTypes.Time64us, canonical: canonicalTime[arrow.Time64],
		text: text, json: quoted(text), equal: same[arrow.Time64], gather: gatherFor(arrow.FixedWidthTypes.Time64us),
	}
}

func durationCodec() Codec {
	text := func(dst []byte, v arrow.Duration) []byte { return appendSpan(dst, int64(v)) }
	return &scalar[arrow.Duration, *array.Duration, *array.DurationBuilder]{
		typ: Of(KindDuration), arrow: arrow.FixedWidthTypes.Duration_us, canonical: canonicalTime[arrow.Duration],
		text: text, json: quoted(text), equal: same[arrow.Duration], gather: gatherFor(arrow.FixedWidthTypes.Duration_us),
	}
}

// appendSpan is AppendClock with a sign.
func appendSpan(dst []byte, us int64) []byte {
	if us >= 0 {
		return AppendClock(dst, us)
	}
	dst = append(dst, '-')
	if us == math.MinInt64 {
		us++ // its negative does not exist; a microsecond in 292,471 years
	}
	return AppendClock(dst, -us)
}

func timestampCodec(t Type, dt arrow.DataType, textZone, jsonZone string) Codec {
	return &scalar[arrow.Timestamp, *array.Timestamp, *array.TimestampBuilder]{
		typ: t, arrow: dt, canonical: canonicalTime[arrow.Timestamp],
		text: func(dst []byte, v arrow.Timestamp) []byte { return appendMicros(dst, int64(v), ' ', textZone) },
		json: func(dst []byte, v arrow.Timestamp) []byte {
			return append(appendMicros(append(dst, '"'), int64(v), 'T', jsonZone), '"')
		},
		equal: same[arrow.Timestamp], gather: gatherFor(dt),
	}
}
