package mycodec

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"weir.dev/weir/pkg/rows"
)

const (
	usPerSecond = 1_000_000
	usPerDay    = 86_400 * usPerSecond
)

// civil is a date and a time of day as MySQL keeps them; no calendar need have it.
type civil struct {
	year, month, day     int
	hour, minute, second int
	micros               int
}

// real reports whether a calendar has the date. MySQL keeps others when it is told to: zero dates, zero days, 31 February.
func (v civil) real() bool {
	return v.year > 0 && v.month >= 1 && v.month <= 12 && v.day >= 1 && v.day <= daysIn(v.year, v.month)
}

func (v civil) days() int64 { return rows.DaysOf(int64(v.year), v.month, v.day) }

func (v civil) clock() int64 {
	return int64(v.hour*3600+v.minute*60+v.second)*usPerSecond + int64(v.micros)
}

func (v civil) date() string { return fmt.Sprintf("%04d-%02d-%02d", v.year, v.month, v.day) }

// text is the server's text.
func (v civil) text(frac int) string {
	return v.date() + " " + clockText(v.hour, v.minute, v.second, v.micros, frac)
}

func clockText(hour, minute, second, micros, frac int) string {
	s := fmt.Sprintf("%02d:%02d:%02d", hour, minute, second)
	if frac > 0 {
		s += fmt.Sprintf(".%06d", micros)[:frac+1]
	}
	return s
}

func daysIn(year, month int) int {
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

// digits reads a number of n digits at the head of s.
func digits(s []byte, n int) (v int, rest []byte, ok bool) {
	if len(s) < n {
		return 0, nil, false
	}
	for _, d := range s[:n] {
		if d < '0' || d > '9' {
			return 0, nil, false
		}
		v = v*10 + int(d-'0')
	}
	return v, s[n:], true
}

// fields reads numbers of two digits, each behind its separator.
func fields(s []byte, seps string, to ...*int) (rest []byte, ok bool) {
	for i, v := range to {
		if len(s) == 0 || s[0] != seps[i] {
			return nil, false
		}
		if *v, s, ok = digits(s[1:], 2); !ok {
			return nil, false
		}
	}
	return s, true
}

func readDate(s []byte) (v civil, rest []byte, ok bool) {
	if v.year, s, ok = digits(s, 4); !ok {
		return v, nil, false
	}
	rest, ok = fields(s, "--", &v.month, &v.day)
	return v, rest, ok
}

// readMoment reads the text of a DATETIME or TIMESTAMP.
func readMoment(s []byte) (v civil, ok bool) {
	v, s, ok = readDate(s)
	if !ok {
		return v, false
	}
	if s, ok = fields(s, " ::", &v.hour, &v.minute, &v.second); !ok {
		return v, false
	}
	v.micros, ok = micros(s)
	return v, ok
}

// micros reads what is behind the seconds, as millionths: nothing, or a point and up to six digits.
func micros(s []byte) (v int, ok bool) {
	if len(s) == 0 {
		return 0, true
	}
	n := len(s) - 1
	if s[0] != '.' || n < 1 || n > 6 {
		return 0, false
	}
	v, _, ok = digits(s[1:], n)
	for ; n < 6; n++ {
		v *= 10
	}
	return v, ok
}

// loggedFraction reads the log's form of a fraction: so many bytes as the digits need, in hundredths of their kind.
func (c Codec) loggedFraction(cell []byte) int {
	v := int(big(cell))
	switch len(cell) {
	case 1:
		return v * 10_000
	case 2:
		return v * 100
	}
	return v
}

func dateOf(v uint64) civil {
	return civil{year: int(v >> 9), month: int(v >> 5 & 15), day: int(v & 31)}
}

func (c Codec) dates(b *rows.Builder, col int, out *array.Date32Builder, log bool) Decoder {
	return func(cell []byte) error {
		v, ok := c.readDate(cell, log)
		switch {
		case !ok:
			return c.bad()
		case v.real():
			out.Append(arrow.Date32(v.days()))
		default:
			b.Special(col, v.date())
		}
		return nil
	}
}

func (c Codec) readDate(cell []byte, log bool) (civil, bool) {
	if log {
		return dateOf(little(cell)), len(cell) == 3
	}
	v, rest, ok := readDate(cell)
	return v, ok && len(rest) == 0
}

func (c Codec) moments(b *rows.Builder, col int, out *array.TimestampBuilder, log bool) Decoder {
	return func(cell []byte) error {
		v, ok := c.moment(cell, log)
		switch {
		case !ok:
			return c.bad()
		case v.real():
			out.Append(arrow.Timestamp(v.days()*usPerDay + v.clock()))
		default:
			b.Special(col, v.text(c.frac))
		}
		return nil
	}
}

// moment reads a DATETIME, or a TIMESTAMP as UTC has it.
func (c Codec) moment(cell []byte, log bool) (civil, bool) {
	if !log {
		v, ok := readMoment(cell)
		return v, ok
	}
	if len(cell) != c.Width() {
		return civil{}, false
	}
	switch c.kind {
	case kDateTime:
		// A sign, 17 bits of years times 13 and months, 5 of days, 5 of hours, 6 of minutes, 6 of seconds.
		v := big(cell[:5]) - 1<<39
		months := int(v >> 22)
		return civil{
			months / 13, months % 13, int(v >> 17 & 31), int(v >> 12 & 31), int(v >> 6 & 63), int(v & 63), c.loggedFraction(cell[5:]),
		}, v>>39 == 0
	case kOldDateTime:
		v := little(cell)
		d, t := v/1_000_000, int(v%1_000_000)
		return civil{int(d / 10_000), int(d / 100 % 100), int(d % 100), t / 10_000, t / 100 % 100, t % 100, 0}, d < 100_000_000
	case kOldTimestamp:
		return instant(little(cell), 0), true
	default:
		return instant(big(cell[:4]), c.loggedFraction(cell[4:])), true
	}
}

// instant is a TIMESTAMP of so many seconds since 1970; 0 is the zero date, which the type has instead of that second.
func instant(seconds uint64, micros int) civil {
	if seconds == 0 && micros == 0 {
		return civil{}
	}
	y, m, d := rows.Civil(int64(seconds / 86_400))
	t := int(seconds % 86_400)
	return civil{int(y), m, d, t / 3600, t / 60 % 60, t % 60, micros}
}

func (c Codec) times(out *array.DurationBuilder, log bool) Decoder {
	return func(cell []byte) error {
		us, ok := c.span(cell, log)
		if !ok {
			return c.bad()
		}
		out.Append(arrow.Duration(us))
		return nil
	}
}

// span reads a TIME in microseconds.
func (c Codec) span(cell []byte, log bool) (us int64, ok bool) {
	switch {
	case !log:
		return readSpan(cell)
	case len(cell) != c.Width():
		return 0, false
	case c.kind == kOldTime:
		v := int64(int32(little(cell)<<8)) >> 8 // hours, minutes and seconds as decimal digits
		sign := int64(1)
		if v < 0 {
			sign, v = -1, -v
		}
		return sign * (v/10_000*3600 + v/100%100*60 + v%100) * usPerSecond, true
	}
	// The number is one of 24 bits and a fraction behind it, moved up by half its range: a negative one counts back from
	// there, its fraction too.
	unused := 8 * (3 - len(cell[3:]))
	v := int64(big(cell))<<unused - 1<<47
	sign := int64(1)
	if v < 0 {
		sign, v = -1, -v
	}
	whole, part := v>>24, int(v&(1<<24-1))>>unused
	switch len(cell[3:]) {
	case 1:
		part *= 10_000
	case 2:
		part *= 100
	}
	clock := civil{hour: int(whole >> 12 & 1023), minute: int(whole >> 6 & 63), second: int(whole & 63), micros: part}
	return sign * clock.clock(), true
}

// readSpan reads [-]H..H:MM:SS with a fraction.
func readSpan(s []byte) (us int64, ok bool) {
	sign := int64(1)
	if len(s) > 0 && s[0] == '-' {
		sign, s = -1, s[1:]
	}
	n := 0
	for n < len(s) && n < 4 && s[n] != ':' {
		n++
	}
	var v civil
	if v.hour, s, ok = digits(s, n); !ok || n < 2 {
		return 0, false
	}
	if s, ok = fields(s, "::", &v.minute, &v.second); !ok {
		return 0, false
	}
	v.micros, ok = micros(s)
	return sign * v.clock(), ok
}
