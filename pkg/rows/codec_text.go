package rows

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// sized writes the length before the bytes, so that no two composite keys share a canonical form.
func sized[T ~string | ~[]byte](dst []byte, v T) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(v)))
	return append(dst, v...)
}

func verbatim(dst []byte, v string) []byte { return append(dst, v...) }

func textCodec() Codec {
	return &scalar[string, *array.String, *array.StringBuilder]{
		typ: Of(KindText), arrow: arrow.BinaryTypes.String, canonical: sized[string], text: verbatim,
		json: appendJSONString, equal: same[string], gather: gatherFor(arrow.BinaryTypes.String),
	}
}

func jsonCodec() Codec {
	return &scalar[string, *array.String, *array.StringBuilder]{
		typ: Of(KindJSON), arrow: arrow.BinaryTypes.String, canonical: sized[string], text: verbatim,
		json: embedJSON, equal: same[string], gather: gatherFor(arrow.BinaryTypes.String),
	}
}

func bytesCodec() Codec {
	return &scalar[[]byte, *array.Binary, *array.BinaryBuilder]{
		typ: Of(KindBytes), arrow: arrow.BinaryTypes.Binary, canonical: sized[[]byte],
		text: func(dst, v []byte) []byte { return hex.AppendEncode(append(dst, `\x`...), v) },
		json: func(dst, v []byte) []byte {
			return append(base64.StdEncoding.AppendEncode(append(dst, '"'), v), '"')
		},
		equal: bytes.Equal, gather: gatherFor(arrow.BinaryTypes.Binary),
	}
}

func uuidCodec() Codec {
	dt := &arrow.FixedSizeBinaryType{ByteWidth: 16}
	return &scalar[[]byte, *array.FixedSizeBinary, *array.FixedSizeBinaryBuilder]{
		typ: Of(KindUUID), arrow: dt,
		canonical: func(dst, v []byte) []byte { return append(dst, v...) },
		text:      appendUUID, json: quoted(appendUUID), equal: bytes.Equal, gather: gatherFor(dt),
	}
}

func appendUUID(dst, v []byte) []byte {
	from := 0
	for i, to := range [...]int{4, 6, 8, 10, 16} {
		if i > 0 {
			dst = append(dst, '-')
		}
		dst = hex.AppendEncode(dst, v[from:to])
		from = to
	}
	return dst
}

// embedJSON puts a document into a line of JSON: as it is when it is valid and on one line, compacted when it has line
// breaks, and as a string when a source sent what is no JSON.
func embedJSON(dst []byte, doc string) []byte {
	raw := []byte(doc)
	if !json.Valid(raw) {
		return appendJSONString(dst, doc)
	}
	if bytes.IndexByte(raw, '\n') < 0 && bytes.IndexByte(raw, '\r') < 0 {
		return append(dst, raw...)
	}
	var line bytes.Buffer
	if err := json.Compact(&line, raw); err != nil {
		return appendJSONString(dst, doc)
	}
	return append(dst, line.Bytes()...)
}

// appendJSONString quotes s; bytes that are not UTF-8 become U+FFFD, as JSON cannot carry them.
func appendJSONString(dst []byte, s string) []byte {
	const digits = "0123456789abcdef"
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				dst = append(dst, s[start:i]...)
				dst = append(dst, `\ufffd`...)
				start = i + 1
			}
			i += size
			continue
		}
		dst = append(dst, s[start:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		}
		i++
		start = i
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}
