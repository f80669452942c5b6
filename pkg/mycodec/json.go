package mycodec

import (
	"encoding/base64"
	"fmt"
	"math"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow/array"
)

// The types of values in a binary JSON document (json_binary.h).
const (
	jSmallObject = 0x00
	jLargeObject = 0x01
	jSmallArray  = 0x02
	jLargeArray  = 0x03
	jLiteral     = 0x04
	jInt16       = 0x05
	jUint16      = 0x06
	jInt32       = 0x07
	jUint32      = 0x08
	jInt64       = 0x09
	jUint64      = 0x0a
	jDouble      = 0x0b
	jString      = 0x0c
	jOpaque      = 0x0f
)

// maxDepth is how deep the servers let documents nest, with room.
const maxDepth = 128

func (c Codec) json(out *array.StringBuilder, log bool) Decoder {
	if !log {
		return func(cell []byte) error {
			out.BinaryBuilder.Append(cell)
			return nil
		}
	}
	var buf []byte
	return func(cell []byte) error {
		var ok bool
		if buf, ok = appendJSON(buf[:0], cell); !ok {
			return c.bad()
		}
		out.BinaryBuilder.Append(buf)
		return nil
	}
}

// appendJSON writes a binary document as the server writes it in a SELECT.
func appendJSON(dst, doc []byte) ([]byte, bool) {
	if len(doc) == 0 { // what the server makes of a document that was never set
		return append(dst, "null"...), true
	}
	unread := len(doc)
	return jsonValue(dst, doc[0], doc[1:], jsonWalk{maxDepth, &unread})
}

// jsonWalk bounds the work on a document. Each value takes a byte at least, and its text as many as it has; a damaged document
// whose values lie in one another could otherwise be read for ever.
type jsonWalk struct {
	depth  int
	unread *int
}

func (w jsonWalk) take(n int) bool {
	*w.unread -= n
	return *w.unread >= 0
}

func (w jsonWalk) inner() jsonWalk { return jsonWalk{w.depth - 1, w.unread} }

// jsonValue writes a value of a type that begins at the head of data.
func jsonValue(dst []byte, typ byte, data []byte, w jsonWalk) ([]byte, bool) {
	if w.depth == 0 || !w.take(1) {
		return dst, false
	}
	switch typ {
	case jSmallObject, jLargeObject, jSmallArray, jLargeArray:
		return jsonContainer(dst, typ, data, w)
	case jLiteral:
		if len(data) < 1 || data[0] > 2 {
			return dst, false
		}
		return append(dst, [...]string{"null", "true", "false"}[data[0]]...), true
	case jInt16, jUint16, jInt32, jUint32, jInt64, jUint64:
		return jsonInt(dst, typ, data)
	case jDouble:
		if len(data) < 8 {
			return dst, false
		}
		return jsonDouble(dst, math.Float64frombits(little(data[:8]))), true
	case jString:
		s, ok := jsonSized(data)
		if !ok || !w.take(len(s)) {
			return dst, false
		}
		return jsonQuote(dst, s), true
	case jOpaque:
		if len(data) < 1 {
			return dst, false
		}
		s, ok := jsonSized(data[1:])
		if !ok || !w.take(len(s)) {
			return dst, false
		}
		return jsonOpaque(dst, data[0], s)
	}
	return dst, false
}

func jsonInt(dst []byte, typ byte, data []byte) ([]byte, bool) {
	size := 2 << ((typ - jInt16) / 2)
	if len(data) < size {
		return dst, false
	}
	v := little(data[:size])
	if (typ-jInt16)%2 == 1 {
		return strconv.AppendUint(dst, v, 10), true
	}
	unused := 64 - 8*size
	return strconv.AppendInt(dst, int64(v<<unused)>>unused, 10), true
}

// jsonSized reads a length of seven bits a byte, the lowest first, and so many bytes.
func jsonSized(data []byte) (s []byte, ok bool) {
	n := 0
	for i := 0; i < len(data) && i < 5; i++ {
		n |= int(data[i]&0x7f) << (7 * i)
		if data[i]&0x80 == 0 {
			if data = data[i+1:]; n > len(data) {
				return nil, false
			}
			return data[:n], true
		}
	}
	return nil, false
}

// jsonContainer writes an object or array: a count, a size, entries of keys, entries of values, then both. Offsets are from
// the head.
func jsonContainer(dst []byte, typ byte, data []byte, w jsonWalk) ([]byte, bool) {
	word := 2
	if typ == jLargeObject || typ == jLargeArray {
		word = 4
	}
	object := typ == jSmallObject || typ == jLargeObject
	if len(data) < 2*word {
		return dst, false
	}
	count, size := int(little(data[:word])), int(little(data[word:2*word]))
	keyEntry, valueEntry := 0, 1+word
	if object {
		keyEntry = word + 2
	}
	values := 2*word + count*keyEntry
	if size > len(data) || count > size || values+count*valueEntry > size {
		return dst, false
	}
	data = data[:size]
	open, end := byte('['), byte(']')
	if object {
		open, end = '{', '}'
	}
	dst = append(dst, open)
	for i := range count {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		if object {
			at := 2*word + i*keyEntry
			from, n := int(little(data[at:at+word])), int(little(data[at+word:at+word+2]))
			if from > size || n > size-from || !w.take(n) {
				return dst, false
			}
			dst = append(jsonQuote(dst, data[from:from+n]), ": "...)
		}
		entry := data[values+i*valueEntry:][:valueEntry]
		value := entry[1:]
		if !jsonInlined(entry[0], word) {
			from := int(little(entry[1:]))
			if from > size {
				return dst, false
			}
			value = data[from:]
		}
		var ok bool
		if dst, ok = jsonValue(dst, entry[0], value, w.inner()); !ok {
			return dst, false
		}
	}
	return append(dst, end), true
}

// jsonInlined reports whether a value lies in its entry, where an offset would be.
func jsonInlined(typ byte, word int) bool {
	switch typ {
	case jLiteral, jInt16, jUint16:
		return true
	case jInt32, jUint32:
		return word == 4
	}
	return false
}

// jsonDouble writes a number as the server's my_gcvt does, and so that it is no integer: in plain form with up to 15 digits
// before the point and up to 14 zeros behind it.
func jsonDouble(dst []byte, v float64) []byte {
	if v == 0 {
		if math.Signbit(v) {
			dst = append(dst, '-')
		}
		return append(dst, "0.0"...)
	}
	var buf [32]byte
	e := strconv.AppendFloat(buf[:0], math.Abs(v), 'e', -1, 64) // d.ddde+xx
	at := len(e) - 1
	for e[at] != 'e' {
		at--
	}
	exp, _ := strconv.Atoi(string(e[at+1:])) // written by strconv
	digits := append(e[:1:1], e[min(2, at):at]...)
	if v < 0 {
		dst = append(dst, '-')
	}
	point := exp + 1
	switch {
	case point < -14 || point > 15:
		dst = append(dst, digits[0])
		if len(digits) > 1 {
			dst = append(append(dst, '.'), digits[1:]...)
		}
		return strconv.AppendInt(append(dst, 'e'), int64(exp), 10)
	case point <= 0:
		dst = append(dst, "0."...)
		for range -point {
			dst = append(dst, '0')
		}
		return append(dst, digits...)
	case point < len(digits):
		dst = append(append(dst, digits[:point]...), '.')
		return append(dst, digits[point:]...)
	}
	dst = append(dst, digits...)
	for range point - len(digits) {
		dst = append(dst, '0')
	}
	return append(dst, ".0"...)
}

func jsonQuote(dst, s []byte) []byte {
	dst = append(dst, '"')
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c >= ' ':
			dst = append(dst, c)
		default:
			switch c {
			case '\b':
				dst = append(dst, `\b`...)
			case '\f':
				dst = append(dst, `\f`...)
			case '\n':
				dst = append(dst, `\n`...)
			case '\r':
				dst = append(dst, `\r`...)
			case '\t':
				dst = append(dst, `\t`...)
			default:
				dst = fmt.Appendf(dst, `\u%04x`, c)
			}
		}
	}
	return append(dst, '"')
}

// base64Line is how many bytes the server puts on a line.
const base64Line = 57

// jsonOpaque writes a value of an SQL type that JSON does not have.
func jsonOpaque(dst []byte, typ byte, s []byte) ([]byte, bool) {
	switch typ {
	case tNewDecimal:
		return jsonDecimal(dst, s)
	case tDate, tTime, tDateTime, tTimestamp, tNewDate, tTime2, tDateTime2, tTimestamp2:
		if len(s) != 8 {
			return dst, false
		}
		return jsonMoment(dst, typ, int64(little(s))), true
	}
	dst = fmt.Appendf(dst, `"base64:type%d:`, typ)
	for len(s) > base64Line {
		dst = append(base64.StdEncoding.AppendEncode(dst, s[:base64Line]), `\n`...)
		s = s[base64Line:]
	}
	dst = base64.StdEncoding.AppendEncode(dst, s)
	return append(dst, '"'), true
}

func jsonDecimal(dst, s []byte) ([]byte, bool) {
	if len(s) < 2 {
		return dst, false
	}
	c, err := decimal(int(s[0]), int(s[1]), false)
	if err != nil {
		return dst, false
	}
	m, negative, ok := c.packedDecimal(s[2:])
	if !ok {
		return dst, false
	}
	if negative {
		dst = append(dst, '-')
	}
	return appendDecimal(dst, m, c.scale), true
}

// jsonMoment writes a packed time: 17 bits of years times 13 and months, 5 of days, 5 (of a span 10) of hours, 6 of minutes,
// 6 of seconds, 24 of millionths.
func jsonMoment(dst []byte, typ byte, packed int64) []byte {
	dst = append(dst, '"')
	if packed < 0 {
		dst, packed = append(dst, '-'), -packed
	}
	us, v := int(packed&(1<<24-1)), packed>>24
	if typ == tTime || typ == tTime2 {
		dst = append(dst, clockText(int(v>>12&1023), int(v>>6&63), int(v&63), us, 6)...)
		return append(dst, '"')
	}
	months := int(v >> 22)
	t := civil{months / 13, months % 13, int(v >> 17 & 31), int(v >> 12 & 31), int(v >> 6 & 63), int(v & 63), us}
	if typ == tDate || typ == tNewDate {
		return append(append(dst, t.date()...), '"')
	}
	return append(append(dst, t.text(6)...), '"')
}
