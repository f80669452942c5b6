package pgcodec

import (
	"bytes"
	"encoding/binary"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow/array"

	"weir.dev/weir/pkg/rows"
)

// A column of an array type holds arrays of any number of dimensions, counted from anywhere. A list column holds those of
// one dimension counted from 1, whose elements are all values of the element type; every other array is special, in the
// server's text.

// list is where the arrays of a column go.
type list struct {
	to    slot
	out   *array.ListBuilder
	items array.Builder
	elem  Codec
	put   Decoder // appends an element to items
	// special is set when an element was not appended because its type cannot hold it.
	special *bool

	// The arguments of AppendValues, kept so that an array costs no allocation.
	start [1]int32
	valid [1]bool
}

func (c Codec) decodeList(to slot, out *array.ListBuilder, f Format) (Decoder, error) {
	l := &list{to: to, out: out, items: out.ValueBuilder(), elem: c.element(), special: new(bool), valid: [1]bool{true}}
	var err error
	if l.put, err = l.elem.bind(slot{elem: l.special}, l.items, f); err != nil {
		return nil, err
	}
	if f == Binary {
		return l.binary, nil
	}
	return l.text(), nil
}

// begin is the place of the next array's first item.
func (l *list) begin() int {
	*l.special = false
	return l.items.Len()
}

// end makes the items from start on the next array.
func (l *list) end(start int) {
	l.start[0] = int32(start)
	l.out.AppendValues(l.start[:], l.valid[:])
}

// abandon takes back the items from start on and records the whole array as special.
func (l *list) abandon(start int, text []byte) {
	l.items.Resize(start)
	l.to.special(text)
}

// text reads what array_out writes.
func (l *list) text() Decoder {
	var plain []byte // an element without its escapes
	return func(cell []byte) error {
		if len(cell) < 2 || cell[len(cell)-1] != '}' {
			return badCell("array", cell)
		}
		if cell[0] == '[' || (cell[0] == '{' && cell[1] == '{') {
			l.to.special(cell)
			return nil
		}
		if cell[0] != '{' {
			return badCell("array", cell)
		}
		start := l.begin()
		rest := cell[1:]
		for len(rest) > 1 {
			var elem []byte
			var null, ok bool
			if elem, null, rest, ok = nextElement(rest, &plain); !ok {
				return badCell("array", cell)
			}
			if null {
				l.items.AppendNull()
			} else if err := l.put(elem); err != nil {
				return err
			}
			if *l.special {
				l.abandon(start, cell)
				return nil
			}
			// Behind an element stands a comma and another one, or the brace that ends the cell.
			if rest[0] == ',' {
				if rest = rest[1:]; len(rest) < 2 {
					return badCell("array", cell)
				}
			} else if len(rest) != 1 {
				return badCell("array", cell)
			}
		}
		l.end(start)
		return nil
	}
}

// nextElement reads the element at the head of s, which ends with the closing brace. The element may lie in *plain.
func nextElement(s []byte, plain *[]byte) (elem []byte, null bool, rest []byte, ok bool) {
	if s[0] != '"' {
		n := bytes.IndexAny(s, `,}{"\`)
		if n < 1 || (s[n] != ',' && s[n] != '}') {
			return nil, false, nil, false
		}
		return s[:n], string(s[:n]) == "NULL", s[n:], true
	}
	s = s[1:]
	n := bytes.IndexAny(s, `"\`)
	if n < 0 || n == len(s)-1 {
		return nil, false, nil, false
	}
	if s[n] == '"' {
		return s[:n], false, s[n+1:], true
	}
	*plain = (*plain)[:0]
	for {
		*plain = append(*plain, s[:n]...)
		if s[n] == '"' {
			return *plain, false, s[n+1:], len(s) > n+1
		}
		if len(s) < n+2 {
			return nil, false, nil, false
		}
		*plain = append(*plain, s[n+1])
		s = s[n+2:]
		if n = bytes.IndexAny(s, `"\`); n < 0 {
			return nil, false, nil, false
		}
	}
}

// maxDims is the server's limit (MAXDIM).
const maxDims = 6

// shape is the head of a binary array.
type shape struct {
	dims   []dim
	nulls  bool
	values []byte
}

type dim struct{ length, from int32 }

func readShape(cell []byte) (s shape, ok bool) {
	if len(cell) < 12 {
		return s, false
	}
	n, flags := binary.BigEndian.Uint32(cell), binary.BigEndian.Uint32(cell[4:])
	if n > maxDims || flags > 1 || len(cell) < 12+8*int(n) {
		return s, false
	}
	s.nulls = flags == 1
	s.dims = make([]dim, 0, maxDims)
	for i := range int(n) {
		at := cell[12+8*i:]
		d := dim{int32(binary.BigEndian.Uint32(at)), int32(binary.BigEndian.Uint32(at[4:]))}
		if d.length < 1 {
			return s, false
		}
		s.dims = append(s.dims, d)
	}
	s.values = cell[12+8*n:]
	return s, true
}

// next takes the next element; nil is null.
func (s *shape) next() (elem []byte, ok bool) {
	if len(s.values) < 4 {
		return nil, false
	}
	n := int32(binary.BigEndian.Uint32(s.values))
	s.values = s.values[4:]
	if n == -1 {
		return nil, s.nulls
	}
	if n < 0 || int(n) > len(s.values) {
		return nil, false
	}
	elem, s.values = s.values[:n:n], s.values[n:]
	return elem, true
}

// binary reads what array_send writes.
func (l *list) binary(cell []byte) error {
	s, ok := readShape(cell)
	if !ok {
		return badCell("array", cell)
	}
	switch {
	case len(s.dims) == 0:
		if len(s.values) != 0 {
			return badCell("array", cell)
		}
		l.end(l.begin())
		return nil
	case len(s.dims) > 1 || s.dims[0].from != 1:
		return l.other(cell, s)
	}
	start := l.begin()
	whole := s
	for range s.dims[0].length {
		elem, ok := s.next()
		if !ok {
			return badCell("array", cell)
		}
		if elem == nil {
			l.items.AppendNull()
		} else if err := l.put(elem); err != nil {
			return err
		}
		if *l.special {
			l.items.Resize(start)
			return l.other(cell, whole)
		}
	}
	if len(s.values) != 0 {
		return badCell("array", cell)
	}
	l.end(start)
	return nil
}

// other records an array that the column cannot hold in the text that array_out would write.
func (l *list) other(cell []byte, s shape) error {
	schema, err := rows.NewSchema("element", 1, Origin, []rows.Column{{Name: "v", Type: l.elem.typ, Nullable: true}})
	if err != nil {
		return err
	}
	one := rows.NewBuilder(schema)
	put, err := l.elem.Decoder(one, 0, Binary)
	if err != nil {
		return err
	}
	count := int64(1)
	for _, d := range s.dims {
		count *= int64(d.length)
		if count > int64(len(cell)) {
			return badCell("array", cell)
		}
	}
	for range count {
		elem, ok := s.next()
		if !ok {
			return badCell("array", cell)
		}
		if elem == nil {
			one.Null(0)
		} else if err := put(elem); err != nil {
			return err
		}
		one.EndRow(rows.Meta{Op: rows.OpRead})
	}
	if len(s.values) != 0 {
		return badCell("array", cell)
	}
	items, err := one.Flush()
	if err != nil {
		return err
	}
	l.to.special(appendArray(nil, s.dims, items))
	return nil
}

// appendBounds writes [from:to] of every dimension.
func appendBounds(dst []byte, dims []dim) []byte {
	for _, d := range dims {
		dst = strconv.AppendInt(append(dst, '['), int64(d.from), 10)
		dst = strconv.AppendInt(append(dst, ':'), int64(d.from)+int64(d.length)-1, 10)
		dst = append(dst, ']')
	}
	return append(dst, '=')
}

// appendArray writes items, in order, as an array of the given dimensions.
func appendArray(dst []byte, dims []dim, items *rows.Batch) []byte {
	for _, d := range dims {
		if d.from != 1 {
			dst = appendBounds(dst, dims)
			break
		}
	}
	item := 0
	var level func(n int)
	level = func(n int) {
		if n == len(dims) {
			at := len(dst)
			text, ok := items.AppendText(dst, 0, item)
			switch {
			case !ok:
				dst = append(dst, "NULL"...)
			case items.Schema().Column(0).Type.Kind == rows.KindBool:
				dst = text[:at+1] // the server writes t and f
			default:
				dst = rows.QuoteElement(text, at)
			}
			item++
			return
		}
		dst = append(dst, '{')
		for i := range dims[n].length {
			if i > 0 {
				dst = append(dst, ',')
			}
			level(n + 1)
		}
		dst = append(dst, '}')
	}
	level(0)
	return dst
}
