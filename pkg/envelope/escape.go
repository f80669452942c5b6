package envelope

import (
	"errors"
	"strings"
)

const hexDigits = "0123456789ABCDEF"

// plain reports whether a byte stands for itself in a header value: everything but blanks, control characters and the
// escape character. Bytes of UTF-8 sequences are plain, so that table names stay readable.
func plain(c byte) bool { return c > ' ' && c != 0x7f && c != '%' }

// escape makes any text safe for one header line and keeps ordinary names as they are.
func escape(s string) string {
	n := 0
	for i := range len(s) {
		if !plain(s[i]) {
			n++
		}
	}
	if n == 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 2*n)
	for i := range len(s) {
		if c := s[i]; plain(c) {
			b.WriteByte(c)
		} else {
			b.WriteByte('%')
			b.WriteByte(hexDigits[c>>4])
			b.WriteByte(hexDigits[c&15])
		}
	}
	return b.String()
}

var errEscape = errors.New("not in canonical escaped form")

// unescape reverses escape and refuses everything escape would not have written.
func unescape(s string) (string, error) {
	if strings.IndexByte(s, '%') < 0 {
		for i := range len(s) {
			if !plain(s[i]) {
				return "", errEscape
			}
		}
		return s, nil
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c != '%' {
			if !plain(c) {
				return "", errEscape
			}
			b = append(b, c)
			continue
		}
		if i+2 >= len(s) {
			return "", errEscape
		}
		hi, lo := strings.IndexByte(hexDigits, s[i+1]), strings.IndexByte(hexDigits, s[i+2])
		if hi < 0 || lo < 0 || plain(byte(hi<<4|lo)) {
			return "", errEscape
		}
		b = append(b, byte(hi<<4|lo))
		i += 2
	}
	return string(b), nil
}
