package pgcodec

import (
	"bytes"
	"encoding/binary"
	"math"
)

// infScale is the scale the server sends with an infinity.
const infScale = 0x20

// putNumeric writes decimal text, NaN or an infinity as a numeric field; ok is false when text is none of them.
func putNumeric(dst, text []byte) (_ []byte, ok bool) {
	header := func(dst []byte, size, digits, weight int, sign uint16, scale int) []byte {
		dst = binary.BigEndian.AppendUint32(dst, uint32(size))
		dst = binary.BigEndian.AppendUint16(dst, uint16(digits))
		dst = binary.BigEndian.AppendUint16(dst, uint16(weight))
		dst = binary.BigEndian.AppendUint16(dst, sign)
		return binary.BigEndian.AppendUint16(dst, uint16(scale))
	}
	switch string(text) {
	case "NaN":
		return header(dst, 8, 0, 0, signNaN, 0), true
	case "Infinity":
		return header(dst, 8, 0, 0, signInf, infScale), true
	case "-Infinity":
		return header(dst, 8, 0, 0, signNegInf, infScale), true
	}
	sign := uint16(signPositive)
	if len(text) > 0 && text[0] == '-' {
		sign, text = signNegative, text[1:]
	}
	whole, fraction := text, []byte(nil)
	if point := bytes.IndexByte(text, '.'); point >= 0 {
		whole, fraction = text[:point], text[point+1:]
	}
	if len(whole)+len(fraction) == 0 || len(fraction) > maxFraction || len(whole) > maxWhole {
		return dst, false
	}
	whole = bytes.TrimLeft(whole, "0")
	groups := (len(whole) + 3) / 4
	at := len(dst)
	out := header(dst, 0, 0, 0, sign, len(fraction))
	// The first group is filled up with zeros on the left, the last one on the right.
	digits, first := 0, -1
	group := func(g uint16, index int) {
		if g == 0 && first < 0 {
			return
		}
		if first < 0 {
			first = index
		}
		out = binary.BigEndian.AppendUint16(out, g)
		digits++
	}
	n, filled := uint16(0), (4-len(whole)%4)%4
	for i, c := range whole {
		if c-'0' > 9 {
			return dst, false
		}
		n = n*10 + uint16(c-'0')
		if (filled+i)%4 == 3 {
			group(n, (filled+i)/4)
			n = 0
		}
	}
	for i := range (len(fraction) + 3) / 4 * 4 {
		d := byte(0)
		if i < len(fraction) {
			if d = fraction[i] - '0'; d > 9 {
				return dst, false
			}
		}
		n = n*10 + uint16(d)
		if i%4 == 3 {
			group(n, groups+i/4)
			n = 0
		}
	}
	for digits > 0 && out[len(out)-1] == 0 && out[len(out)-2] == 0 {
		out, digits = out[:len(out)-2], digits-1
	}
	weight := 0
	if digits > 0 {
		weight = groups - 1 - first
	} else {
		sign = signPositive
	}
	header(out[:at], len(out)-at-4, digits, weight, sign, len(fraction))
	return out, true
}

// putDate writes the server's text of a date a date32 column does not carry.
func putDate(dst, text []byte) ([]byte, bool) {
	switch string(text) {
	case infinity:
		return put4(dst, math.MaxInt32), true
	case negInfinity:
		return put4(dst, 1<<31), true
	}
	s, bc := bytes.CutSuffix(text, []byte(" BC"))
	days, rest, ok := parseDate(s, bc)
	if !ok || len(rest) != 0 || !isDate(days) {
		return dst, false
	}
	return put4(dst, uint32(days-epochGap)), true
}

func putTime(dst, text []byte) ([]byte, bool) {
	us, rest, ok := parseClock(text)
	if !ok || len(rest) != 0 {
		return dst, false
	}
	return put8(dst, uint64(us)), true
}

// putTimestamp writes the server's text of a timestamp; counted from 2000 it fits where it did not from 1970.
func putTimestamp(dst, text []byte, zone string) ([]byte, bool) {
	switch string(text) {
	case infinity:
		return put8(dst, math.MaxInt64), true
	case negInfinity:
		return put8(dst, 1<<63), true
	}
	m, _, ok := parseMoment(text, zone)
	if !ok {
		return dst, false
	}
	return put8(dst, uint64((m.days-epochGap)*usPerDay+m.us)), true
}
