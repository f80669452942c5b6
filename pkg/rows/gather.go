package rows

import (
	"fmt"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// gatherFor resolves, once per type, how cells are copied by index: by the layout of the buffers, not by the type.
func gatherFor(dt arrow.DataType) func(src arrow.Array, idx []int32) arrow.Array {
	switch t := dt.(type) {
	case *arrow.BooleanType:
		return gatherBits
	case *arrow.StringType, *arrow.BinaryType:
		return gatherVar
	case *arrow.ListType:
		return gatherList(gatherFor(t.Elem()))
	case *arrow.StructType:
		fields := make([]func(arrow.Array, []int32) arrow.Array, t.NumFields())
		for i := range fields {
			fields[i] = gatherFor(t.Field(i).Type)
		}
		return gatherStruct(fields)
	case arrow.FixedWidthDataType:
		switch t.Bytes() {
		case 1:
			return gatherFixed[uint8]
		case 2:
			return gatherFixed[uint16]
		case 4:
			return gatherFixed[uint32]
		case 8:
			return gatherFixed[uint64]
		case 16:
			return gatherFixed[[2]uint64]
		case 32:
			return gatherFixed[[4]uint64]
		}
	}
	panic(fmt.Sprintf("rows: no gather for %v", dt))
}

// view reads b as values of T; a tail shorter than T is left out.
func view[T any](b []byte) []T {
	var zero T
	n := len(b) / int(unsafe.Sizeof(zero))
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n)
}

// rawBytes is the inverse of view.
func rawBytes[T any](v []T) []byte {
	if len(v) == 0 {
		return nil
	}
	var zero T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*int(unsafe.Sizeof(zero)))
}

func bufferOf(data arrow.ArrayData, i int) []byte {
	if b := data.Buffers()[i]; b != nil {
		return b.Bytes()
	}
	return nil
}

func makeArray(dt arrow.DataType, n int, validity []byte, nulls int, children []arrow.ArrayData, buffers ...[]byte) arrow.Array {
	bufs := make([]*memory.Buffer, 1+len(buffers))
	if validity != nil {
		bufs[0] = memory.NewBufferBytes(validity)
	}
	for i, b := range buffers {
		bufs[i+1] = memory.NewBufferBytes(b)
	}
	return array.MakeFromData(array.NewData(dt, n, bufs, children, nulls, 0))
}

func gatherValidity(src arrow.Array, idx []int32) (bitmap []byte, nulls int) {
	if src.NullN() == 0 {
		return nil, 0
	}
	bitmap = make([]byte, bitutil.BytesForBits(int64(len(idx))))
	for to, from := range idx {
		if src.IsNull(int(from)) {
			nulls++
		} else {
			bitutil.SetBit(bitmap, to)
		}
	}
	return bitmap, nulls
}

func gatherFixed[T any](src arrow.Array, idx []int32) arrow.Array {
	data := src.Data()
	in := view[T](bufferOf(data, 1))
	in = in[min(data.Offset(), len(in)):]
	out := make([]T, len(idx))
	for to, from := range idx {
		out[to] = in[from]
	}
	validity, nulls := gatherValidity(src, idx)
	return makeArray(src.DataType(), len(idx), validity, nulls, nil, rawBytes(out))
}

func gatherBits(src arrow.Array, idx []int32) arrow.Array {
	data := src.Data()
	in, off := bufferOf(data, 1), data.Offset()
	out := make([]byte, bitutil.BytesForBits(int64(len(idx))))
	for to, from := range idx {
		if bitutil.BitIsSet(in, off+int(from)) {
			bitutil.SetBit(out, to)
		}
	}
	validity, nulls := gatherValidity(src, idx)
	return makeArray(src.DataType(), len(idx), validity, nulls, nil, out)
}

func gatherVar(src arrow.Array, idx []int32) arrow.Array {
	data := src.Data()
	off := offsetsOf(data)
	in := bufferOf(data, 2)
	ends := make([]int32, len(idx)+1)
	var total int32
	for to, from := range idx {
		total += off[from+1] - off[from]
		ends[to+1] = total
	}
	out := make([]byte, 0, total)
	for _, from := range idx {
		out = append(out, in[off[from]:off[from+1]]...)
	}
	validity, nulls := gatherValidity(src, idx)
	return makeArray(src.DataType(), len(idx), validity, nulls, nil, rawBytes(ends), out)
}

// offsetsOf are the len+1 offsets of a variable-length array, its slicing applied. An empty array may have no buffer.
func offsetsOf(data arrow.ArrayData) []int32 {
	if data.Len() == 0 {
		return []int32{0}
	}
	return view[int32](bufferOf(data, 1))[data.Offset() : data.Offset()+data.Len()+1]
}

func gatherList(elem func(arrow.Array, []int32) arrow.Array) func(arrow.Array, []int32) arrow.Array {
	return func(src arrow.Array, idx []int32) arrow.Array {
		off := offsetsOf(src.Data())
		ends := make([]int32, len(idx)+1)
		var items []int32
		for to, from := range idx {
			for i := off[from]; i < off[from+1]; i++ {
				items = append(items, i)
			}
			ends[to+1] = int32(len(items))
		}
		values := elem(src.(*array.List).ListValues(), items)
		validity, nulls := gatherValidity(src, idx)
		return makeArray(src.DataType(), len(idx), validity, nulls, []arrow.ArrayData{values.Data()}, rawBytes(ends))
	}
}

func gatherStruct(fields []func(arrow.Array, []int32) arrow.Array) func(arrow.Array, []int32) arrow.Array {
	return func(src arrow.Array, idx []int32) arrow.Array {
		s := src.(*array.Struct)
		children := make([]arrow.ArrayData, len(fields))
		for i, gather := range fields {
			children[i] = gather(s.Field(i), idx).Data()
		}
		validity, nulls := gatherValidity(src, idx)
		return makeArray(src.DataType(), len(idx), validity, nulls, children)
	}
}

// fixedWidth is what a cell of dt takes at least: its own bytes, or an offset.
func fixedWidth(dt arrow.DataType) int {
	switch t := dt.(type) {
	case *arrow.BooleanType:
		return 1
	case arrow.FixedWidthDataType:
		return t.Bytes()
	default:
		return 4
	}
}
