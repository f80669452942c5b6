package mycodec

import (
	"bytes"
	_ "embed" // exceptions.txt
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
)

// exceptionLines are the characters that the servers read otherwise than the tables of golang.org/x/text, as itest/mytypes has
// found them: a character set, the first of some characters one behind the other, what it is, and how many there are.
//
//go:embed exceptions.txt
var exceptionLines string

// exceptions are the characters of a set by their bytes, as a number.
var exceptions = sync.OnceValue(func() map[string]map[uint32]rune {
	all := make(map[string]map[uint32]rune)
	for line := range strings.Lines(exceptionLines) {
		f := strings.Fields(line)
		first, _ := strconv.ParseUint(f[1], 16, 32) // the file is part of the program, and TestExceptions reads it
		is, _ := strconv.ParseUint(f[2], 16, 32)
		n, _ := strconv.Atoi(f[3])
		if all[f[0]] == nil {
			all[f[0]] = make(map[uint32]rune)
		}
		for i := range n {
			all[f[0]][uint32(first)+uint32(i)] = rune(is) + rune(i)
		}
	}
	return all
})

// legacyOf finds the character sets of which others have made tables.
func legacyOf(name string) *charset {
	var widest int
	var e encoding.Encoding
	length := func([]byte) int { return 1 }
	switch name {
	case "gbk", "gb2312": // the one holds the other
		widest, e, length = 2, simplifiedchinese.GBK, chineseLength
	case "gb18030":
		widest, e, length = 4, simplifiedchinese.GB18030, fourLength
	case "big5":
		widest, e, length = 2, traditionalchinese.Big5, chineseLength
	case "sjis", "cp932":
		widest, e, length = 2, japanese.ShiftJIS, shiftLength
	case "ujis", "eucjpms":
		widest, e, length = 3, japanese.EUCJP, eucLength
	case "euckr":
		widest, e, length = 2, korean.EUCKR, chineseLength
	default:
		widest, e = 1, singleByte(name)
	}
	if e == nil {
		return nil
	}
	l := legacy{e, length, exceptions()[name], name == "gb18030"}
	return &charset{name, widest, l.decode}
}

// legacy is a table with its exceptions.
type legacy struct {
	encoding.Encoding

	length      func(text []byte) int // of the first character
	exceptions  map[uint32]rune
	replacement bool // the set has the character that tables give for what they do not have
}

func (l legacy) decode(dst, text []byte) ([]byte, bool) {
	for at := 0; at < len(text); {
		if text[at] < utf8.RuneSelf {
			at++
			continue
		}
		n := min(l.length(text[at:]), len(text)-at)
		r, ok := l.exceptions[uint32(big(text[at:at+n]))]
		if !ok {
			at += n
			continue
		}
		if dst, ok = l.table(dst, text[:at]); !ok {
			return dst, false
		}
		dst, text, at = utf8.AppendRune(dst, r), text[at+n:], 0
	}
	return l.table(dst, text)
}

// table decodes text without exceptions.
func (l legacy) table(dst, text []byte) ([]byte, bool) {
	if len(text) == 0 {
		return dst, true
	}
	out, err := l.NewDecoder().Bytes(text)
	if err != nil || (!l.replacement && bytes.ContainsRune(out, utf8.RuneError)) {
		return dst, false
	}
	return append(dst, out...), true
}

func chineseLength([]byte) int { return 2 }

func fourLength(text []byte) int {
	if len(text) > 1 && text[1] >= '0' && text[1] <= '9' {
		return 4
	}
	return 2
}

func shiftLength(text []byte) int {
	if c := text[0]; c > 0x80 && c < 0xa0 || c >= 0xe0 {
		return 2
	}
	return 1
}

func eucLength(text []byte) int {
	switch c := text[0]; {
	case c == 0x8f:
		return 3
	case c == 0x8e || c > 0xa0:
		return 2
	}
	return 1
}

func singleByte(name string) encoding.Encoding {
	all := map[string]encoding.Encoding{
		"latin2": charmap.ISO8859_2, "latin5": charmap.ISO8859_9, "latin7": charmap.ISO8859_13, "greek": charmap.ISO8859_7,
		"hebrew": charmap.ISO8859_8, "cp1250": charmap.Windows1250, "cp1251": charmap.Windows1251, "cp1256": charmap.Windows1256,
		"cp1257": charmap.Windows1257, "koi8r": charmap.KOI8R, "koi8u": charmap.KOI8U, "cp850": charmap.CodePage850,
		"cp852": charmap.CodePage852, "cp866": charmap.CodePage866, "macroman": charmap.Macintosh, "tis620": charmap.Windows874,
	}
	return all[name]
}
