package rows

import "strconv"

const (
	microsPerSecond = 1_000_000
	microsPerDay    = 86_400 * microsPerSecond
)

// Civil turns days since 1970-01-01 into a date of the proleptic Gregorian calendar. Year 0 is 1 BC.
// The year is counted from March inside, which puts the leap day last and makes the arithmetic closed.
func Civil(days int64) (year int64, month, day int) {
	z := days + 719468
	era := floorDiv(z, 146097)
	doe := z - era*146097
	yoe := (doe - doe/1460 + doe/36524 - doe/146096) / 365
	doy := doe - (365*yoe + yoe/4 - yoe/100)
	mp := (5*doy + 2) / 153
	day = int(doy - (153*mp+2)/5 + 1)
	month = int(mp + 3)
	year = yoe + era*400
	if month > 12 {
		month -= 12
		year++
	}
	return year, month, day
}

// DaysOf is the inverse of Civil. Month and day must be in range; it does not check.
func DaysOf(year int64, month, day int) int64 {
	m := int64(month) - 3
	if m < 0 {
		m += 12
		year--
	}
	era := floorDiv(year, 400)
	yoe := year - era*400
	doy := (153*m+2)/5 + int64(day) - 1
	doe := yoe*365 + yoe/4 - yoe/100 + doy
	return era*146097 + doe - 719468
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

func append2(dst []byte, n int64) []byte {
	return append(dst, byte('0'+n/10), byte('0'+n%10))
}

// AppendDate writes YYYY-MM-DD, years wider than four digits as they are, and " BC" after years before 1.
func AppendDate(dst []byte, days int64) []byte {
	dst, bc := appendYMD(dst, days)
	if bc {
		dst = append(dst, " BC"...)
	}
	return dst
}

func appendYMD(dst []byte, days int64) (_ []byte, bc bool) {
	y, m, d := Civil(days)
	if y <= 0 {
		y, bc = 1-y, true
	}
	if y < 1000 {
		dst = append(dst, '0')
		if y < 100 {
			dst = append(dst, '0')
			if y < 10 {
				dst = append(dst, '0')
			}
		}
	}
	dst = strconv.AppendInt(dst, y, 10)
	dst = append(dst, '-')
	dst = append2(dst, int64(m))
	dst = append(dst, '-')
	return append2(dst, int64(d)), bc
}

// AppendClock writes HH:MM:SS and a fraction without trailing zeros; us is microseconds and not negative.
func AppendClock(dst []byte, us int64) []byte {
	sec := us / microsPerSecond
	frac := us % microsPerSecond
	hours := sec / 3600
	if hours > 99 {
		dst = strconv.AppendInt(dst, hours, 10)
	} else {
		dst = append2(dst, hours)
	}
	dst = append(dst, ':')
	dst = append2(dst, sec/60%60)
	dst = append(dst, ':')
	dst = append2(dst, sec%60)
	if frac == 0 {
		return dst
	}
	dst = append(dst, '.')
	for div := int64(100_000); frac > 0; div /= 10 {
		dst = append(dst, byte('0'+frac/div))
		frac %= div
	}
	return dst
}

// AppendDateTime writes the date, sep, the clock and zone, then " BC" where it applies: the order PostgreSQL uses.
// Days count from 1970-01-01, us from midnight.
func AppendDateTime(dst []byte, days, us int64, sep byte, zone string) []byte {
	dst, bc := appendYMD(dst, days)
	dst = append(dst, sep)
	dst = AppendClock(dst, us)
	dst = append(dst, zone...)
	if bc {
		dst = append(dst, " BC"...)
	}
	return dst
}

func appendMicros(dst []byte, us int64, sep byte, zone string) []byte {
	days := floorDiv(us, microsPerDay)
	return AppendDateTime(dst, days, us-days*microsPerDay, sep, zone)
}
