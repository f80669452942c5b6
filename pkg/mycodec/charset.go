package mycodec

import (
	"encoding/binary"
	"unicode/utf16"
	"unicode/utf8"
)

// charset is one of the servers' character sets.
type charset struct {
	name   string
	widest int // bytes of its longest character
	// decode appends the text as UTF-8; ok is false for bytes that are no text.
	decode func(dst, text []byte) (out []byte, ok bool)
}

func decodeUTF8(dst, text []byte) ([]byte, bool) { return append(dst, text...), utf8.Valid(text) }

func decodeASCII(dst, text []byte) ([]byte, bool) {
	for _, c := range text {
		if c >= utf8.RuneSelf {
			return dst, false
		}
	}
	return append(dst, text...), true
}

// charsetOf finds a character set by its name; nil when it is not known here.
func charsetOf(name string) *charset {
	switch name {
	case "utf8mb4":
		return &utf8mb4
	case "utf8", "utf8mb3":
		return &utf8mb3
	case "ascii":
		return &ascii
	case "latin1":
		return &latin1
	case "ucs2":
		return &ucs2
	case "utf16":
		return &utf16be
	case "utf16le":
		return &utf16le
	case "utf32":
		return &utf32
	}
	return legacyOf(name)
}

var (
	utf8mb4 = charset{"utf8mb4", 4, decodeUTF8}
	utf8mb3 = charset{"utf8mb3", 3, decodeUTF8}
	ascii   = charset{"ascii", 1, decodeASCII}
	latin1  = charset{"latin1", 1, decodeLatin1}
	ucs2    = charset{"ucs2", 2, decodeUTF16(binary.BigEndian)}
	utf16be = charset{"utf16", 4, decodeUTF16(binary.BigEndian)}
	utf16le = charset{"utf16le", 4, decodeUTF16(binary.LittleEndian)}
	utf32   = charset{"utf32", 4, decodeUTF32}
)

// decodeLatin1 reads MySQL's latin1: Windows-1252, whose five holes are the control characters of ISO 8859-1.
func decodeLatin1(dst, text []byte) ([]byte, bool) {
	for _, c := range text {
		switch {
		case c < utf8.RuneSelf:
			dst = append(dst, c)
		case c >= 0x80 && c < 0xa0:
			dst = utf8.AppendRune(dst, windows1252[c-0x80])
		default:
			dst = utf8.AppendRune(dst, rune(c))
		}
	}
	return dst, true
}

var windows1252 = [32]rune{
	0x20AC, 0x81, 0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160, 0x2039, 0x0152, 0x8D, 0x017D, 0x8F,
	0x90, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0x9D, 0x017E, 0x0178,
}

func decodeUTF16(order binary.ByteOrder) func(dst, text []byte) ([]byte, bool) {
	return func(dst, text []byte) ([]byte, bool) {
		for len(text) >= 2 {
			r := rune(order.Uint16(text))
			text = text[2:]
			if utf16.IsSurrogate(r) {
				if len(text) < 2 {
					return dst, false
				}
				if r = utf16.DecodeRune(r, rune(order.Uint16(text))); r == utf8.RuneError {
					return dst, false
				}
				text = text[2:]
			}
			dst = utf8.AppendRune(dst, r)
		}
		return dst, len(text) == 0
	}
}

func decodeUTF32(dst, text []byte) ([]byte, bool) {
	for ; len(text) >= 4; text = text[4:] {
		r := binary.BigEndian.Uint32(text)
		if r > utf8.MaxRune || !utf8.ValidRune(rune(r)) {
			return dst, false
		}
		dst = utf8.AppendRune(dst, rune(r))
	}
	return dst, len(text) == 0
}
