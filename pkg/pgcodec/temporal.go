package pgcodec

import (
	"bytes"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"weir.dev/weir/pkg/rows"
)

const (
	usPerDay = 86_400_000_000
	epochGap = 10_957 // days from 1970-01-01 to 2000-01-01, where PostgreSQL counts from
	// The last day a timestamp in microseconds from 1970 holds, in part: 294247-01-10.
	maxTimestampDays = math.MaxInt64 / usPerDay

	// The server's own limits in days from 2000 (datatype/timestamp.h): nothing is before minDays, no date is at
	// endDate and no timestamp at endTimestamp or later.
	minDays      = -2_451_545
	endDate      = 2_145_031_949
	endTimestamp = 106_751_983
)

const (
	infinity    = "infinity"
	negInfinity = "-infinity"
)

func isInfinity(s []byte) bool { return string(s) == infinity || string(s) == negInfinity }

// moment is a point of the calendar before it is squeezed into a column.
type moment struct {
	days int64 // since 1970-01-01
	us   int64 // since midnight
}

// parseDate reads YYYY-MM-DD at the head of s. Years have four digits or more; bc counts them backwards.
func parseDate(s []byte, bc bool) (days int64, rest []byte, ok bool) {
	var year int64
	i := 0
	for ; i < len(s) && i < 8 && s[i]-'0' <= 9; i++ {
		year = year*10 + int64(s[i]-'0')
	}
	s = s[i:]
	if i < 4 || year == 0 || (i > 4 && year < 10_000) || len(s) < 6 || s[0] != '-' || s[3] != '-' {
		return 0, nil, false
	}
	month, ok1 := two(s[1:])
	day, ok2 := two(s[4:])
	if bc {
		year = 1 - year
	}
	if !ok1 || !ok2 || month < 1 || month > 12 || day < 1 || day > daysIn(year, month) {
		return 0, nil, false
	}
	return rows.DaysOf(year, month, day), s[6:], true
}

func daysIn(year int64, month int) int {
	switch month {
	case 4, 6, 9, 11:
		return 30
	case 2:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	}
	return 31
}

func two(s []byte) (int, bool) {
	if len(s) < 2 {
		return 0, false
	}
	a, b := s[0]-'0', s[1]-'0'
	return int(a)*10 + int(b), a <= 9 && b <= 9
}

// parseClock reads HH:MM:SS with up to six digits of fraction at the head of s; 24:00:00 is a time of day here.
func parseClock(s []byte) (us int64, rest []byte, ok bool) {
	if len(s) < 8 || s[2] != ':' || s[5] != ':' {
		return 0, nil, false
	}
	h, ok1 := two(s)
	m, ok2 := two(s[3:])
	sec, ok3 := two(s[6:])
	if !ok1 || !ok2 || !ok3 || h > 24 || m > 59 || sec > 59 {
		return 0, nil, false
	}
	us = int64(h*3600+m*60+sec) * 1_000_000
	s = s[8:]
	if len(s) > 0 && s[0] == '.' {
		s = s[1:]
		unit := int64(100_000)
		n := 0
		for ; n < len(s) && n < 6 && s[n]-'0' <= 9; n++ {
			us += int64(s[n]-'0') * unit
			unit /= 10
		}
		if n == 0 {
			return 0, nil, false
		}
		s = s[n:]
	}
	return us, s, us <= usPerDay
}

// parseMoment reads a timestamp that is not infinite; zone is what must stand behind the clock.
func parseMoment(s []byte, zone string) (m moment, bc, ok bool) {
	s, bc = bytes.CutSuffix(s, []byte(" BC"))
	s, ok = bytes.CutSuffix(s, []byte(zone))
	if !ok {
		return m, bc, false
	}
	if m.days, s, ok = parseDate(s, bc); !ok || len(s) == 0 || s[0] != ' ' {
		return m, bc, false
	}
	m.us, s, ok = parseClock(s[1:])
	return m, bc, ok && len(s) == 0 && m.us < usPerDay && isTimestamp(m.days)
}

// micros is m in microseconds since 1970 where that is a number.
func (m moment) micros() (int64, bool) {
	if m.days >= maxTimestampDays {
		return 0, false
	}
	return m.days*usPerDay + m.us, true
}

// momentOf takes PostgreSQL's microseconds since 2000 apart.
func momentOf(v int64) moment {
	days := v / usPerDay
	if v%usPerDay < 0 {
		days--
	}
	return moment{days: days + epochGap, us: v - days*usPerDay}
}

// isDate and isTimestamp report whether the server has the day.
func isDate(days int64) bool {
	return days >= minDays+epochGap && days < endDate+epochGap
}

func isTimestamp(days int64) bool {
	return days >= minDays+epochGap && days < endTimestamp+epochGap
}

// isBC reports whether a day lies before the year 1.
func isBC(days int64) bool { return days < -719_162 }

func zoneOf(withZone bool) string {
	if withZone {
		return "+00"
	}
	return ""
}

func decodeDate(to slot, out *array.Date32Builder, binaryForm bool) Decoder {
	if !binaryForm {
		return func(cell []byte) error {
			if isInfinity(cell) {
				to.special(cell)
				return nil
			}
			s, bc := bytes.CutSuffix(cell, []byte(" BC"))
			days, rest, ok := parseDate(s, bc)
			if !ok || len(rest) != 0 || !isDate(days) {
				return badCell("date", cell)
			}
			if bc {
				to.special(rows.AppendDate(nil, days))
				return nil
			}
			out.Append(arrow.Date32(days))
			return nil
		}
	}
	return func(cell []byte) error {
		v, ok := beInt(cell, 4)
		if !ok {
			return badCell("date", cell)
		}
		days := v + epochGap
		switch {
		case v == math.MaxInt32:
			to.special([]byte(infinity))
		case v == math.MinInt32:
			to.special([]byte(negInfinity))
		case !isDate(days):
			return badCell("date", cell)
		case isBC(days):
			to.special(rows.AppendDate(nil, days))
		default:
			out.Append(arrow.Date32(days))
		}
		return nil
	}
}

// decodeTime makes 24:00:00, which the server has and Arrow has not, a special.
func decodeTime(to slot, out *array.Time64Builder, binaryForm bool) Decoder {
	return func(cell []byte) error {
		var us int64
		var ok bool
		if binaryForm {
			us, ok = beInt(cell, 8)
			ok = ok && us >= 0 && us <= usPerDay
		} else {
			var rest []byte
			us, rest, ok = parseClock(cell)
			ok = ok && len(rest) == 0
		}
		switch {
		case !ok:
			return badCell("time", cell)
		case us == usPerDay:
			to.special([]byte("24:00:00"))
		default:
			out.Append(arrow.Time64(us))
		}
		return nil
	}
}

func decodeTimestamp(to slot, out *array.TimestampBuilder, binaryForm, withZone bool) Decoder {
	zone := zoneOf(withZone)
	if !binaryForm {
		return func(cell []byte) error {
			if isInfinity(cell) {
				to.special(cell)
				return nil
			}
			m, bc, ok := parseMoment(cell, zone)
			if !ok {
				return badCell("timestamp in ISO form and UTC", cell)
			}
			us, fits := m.micros()
			if bc || !fits {
				to.special(rows.AppendDateTime(nil, m.days, m.us, ' ', zone))
				return nil
			}
			out.Append(arrow.Timestamp(us))
			return nil
		}
	}
	return func(cell []byte) error {
		v, ok := beInt(cell, 8)
		if !ok {
			return badCell("timestamp", cell)
		}
		m := momentOf(v)
		us, fits := m.micros()
		switch {
		case v == math.MaxInt64:
			to.special([]byte(infinity))
		case v == math.MinInt64:
			to.special([]byte(negInfinity))
		case !isTimestamp(m.days):
			return badCell("timestamp", cell)
		case isBC(m.days) || !fits:
			to.special(rows.AppendDateTime(nil, m.days, m.us, ' ', zone))
		default:
			out.Append(arrow.Timestamp(us))
		}
		return nil
	}
}
