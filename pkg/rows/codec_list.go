package rows

import (
	"encoding/binary"

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

// AppendText writes PostgreSQL's array literal; every element is quoted, which the server reads and never mistakes.
func (c *listCodec) AppendText(dst []byte, col arrow.Array, row int) []byte {
	a := col.(*array.List)
	if a.IsNull(row) {
		return dst
	}
	from, to := a.ValueOffsets(row)
	dst = append(dst, '{')
	var elem []byte
	for i := from; i < to; i++ {
		if i > from {
			dst = append(dst, ',')
		}
		if a.ListValues().IsNull(int(i)) {
			dst = append(dst, "NULL"...)
			continue
		}
		elem = c.elem.AppendText(elem[:0], a.ListValues(), int(i))
		dst = append(dst, '"')
		for _, b := range elem {
			if b == '"' || b == '\\' {
				dst = append(dst, '\\')
			}
			dst = append(dst, b)
		}
		dst = append(dst, '"')
	}
	return append(dst, '}')
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
