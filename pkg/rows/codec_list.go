package rows

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// listCodec puts the element codec over the items of each list.
type listCodec struct {
	typ    Type
	arrow  arrow.DataType
	elem   Codec
	gather func(src arrow.Array, idx []int32) arrow.Array
}

func newListCodec(t Type) Codec {
	elem := CodecFor(t.ElemType())
	dt := arrow.ListOf(elem.Arrow())
	return &listCodec{typ: t, arrow: dt, elem: elem, gather: gatherFor(dt)}
}

func (c *listCodec) Type() Type            { return c.typ }
func (c *listCodec) Arrow() arrow.DataType { return c.arrow }

func (c *listCodec) AppendCanonical(dst []byte, col arrow.Array, row int) []byte {
	a := col.(*array.List)
	if a.IsNull(row) {
		return append(dst, tagNull)
	}
	from, to := a.ValueOffsets(row)
	dst = binary.BigEndian.AppendUint32(append(dst, tagValue), uint32(to-from))
	for i := from; i < to; i++ {
		dst = c.elem.AppendCanonical(dst, a.ListValues(), int(i))
	}
	return dst
}

// AppendText writes the array as PostgreSQL's array_out does: elements quoted only where they have to be.
func (c *listCodec) AppendText(dst []byte, col arrow.Array, row int) []byte {
	a := col.(*array.List)
	if a.IsNull(row) {
		return dst
	}
	from, to := a.ValueOffsets(row)
	items := a.ListValues()
	dst = append(dst, '{')
	for i := int(from); i < int(to); i++ {
		if i > int(from) {
			dst = append(dst, ',')
		}
		if items.IsNull(i) {
			dst = append(dst, "NULL"...)
			continue
		}
		at := len(dst)
		dst = QuoteElement(c.elem.AppendText(dst, items, i), at)
	}
	return append(dst, '}')
}

// QuoteElement puts the element that stands at the end of dst, from at, into quotes where an array literal of PostgreSQL
// needs them: around what is empty, reads like NULL, or has a character that means something in the literal.
func QuoteElement(dst []byte, at int) []byte {
	elem := dst[at:]
	quotes := len(elem) == 0 || (len(elem) == 4 && bytes.EqualFold(elem, []byte("NULL")))
	escapes := 0
	for _, c := range elem {
		switch c {
		case '"', '\\':
			escapes++
		case '{', '}', ',', ' ', '\t', '\n', '\r', '\v', '\f':
			quotes = true
		}
	}
	if !quotes && escapes == 0 {
		return dst
	}
	// From the end, so that every byte moves once.
	from := len(dst)
	dst = append(slices.Grow(dst, 2+escapes), make([]byte, 2+escapes)...)
	to := len(dst) - 1
	dst[to] = '"'
	for from > at {
		from--
		to--
		c := dst[from]
		dst[to] = c
		if c == '"' || c == '\\' {
			to--
			dst[to] = '\\'
		}
	}
	dst[at] = '"'
	return dst
}

func (c *listCodec) AppendJSON(dst []byte, col arrow.Array, row int) []byte {
	a := col.(*array.List)
	if a.IsNull(row) {
		return append(dst, "null"...)
	}
	from, to := a.ValueOffsets(row)
	dst = append(dst, '[')
	for i := from; i < to; i++ {
		if i > from {
			dst = append(dst, ',')
		}
		dst = c.elem.AppendJSON(dst, a.ListValues(), int(i))
	}
	return append(dst, ']')
}

func (c *listCodec) Equal(a arrow.Array, i int, b arrow.Array, j int) bool {
	x, y := a.(*array.List), b.(*array.List)
	if x.IsNull(i) || y.IsNull(j) {
		return x.IsNull(i) && y.IsNull(j)
	}
	xf, xt := x.ValueOffsets(i)
	yf, yt := y.ValueOffsets(j)
	if xt-xf != yt-yf {
		return false
	}
	for k := range xt - xf {
		if !c.elem.Equal(x.ListValues(), int(xf+k), y.ListValues(), int(yf+k)) {
			return false
		}
	}
	return true
}

func (c *listCodec) Copy(dst array.Builder, src arrow.Array, row int) {
	b, a := dst.(*array.ListBuilder), src.(*array.List)
	if a.IsNull(row) {
		b.AppendNull()
		return
	}
	b.Append(true)
	from, to := a.ValueOffsets(row)
	for i := from; i < to; i++ {
		c.elem.Copy(b.ValueBuilder(), a.ListValues(), int(i))
	}
}

func (c *listCodec) Gather(src arrow.Array, idx []int32) arrow.Array { return c.gather(src, idx) }
