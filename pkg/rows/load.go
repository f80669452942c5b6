package rows

import (
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// The fields of Arrow's Message and RecordBatch tables (format/Message.fbs).
const (
	messageHeaderType = 1
	messageHeader     = 2
	messageBodyLength = 3
	batchLength       = 0
	batchNodes        = 1
	batchBuffers      = 2
	batchCompression  = 3

	headerSchema      = 1
	headerRecordBatch = 3
)

// loader builds arrays over a record batch's body and proves, before any array exists, that no accessor of it can
// leave the body: lengths, offsets and null counts are checked against the buffers.
type loader struct {
	nodes   [][2]int64 // length, null count
	buffers [][2]int64 // offset, length
	body    []byte
}

var errBuffers = errors.New("record batch: fewer nodes or buffers than the schema needs")

func newLoader(header flatTable, body []byte) (*loader, int, error) {
	n, err := header.int64(batchLength)
	if err != nil {
		return nil, 0, err
	}
	if _, compressed, err := header.table(batchCompression); err != nil || compressed {
		return nil, 0, errors.Join(err, errors.New("record batch: compressed"))
	}
	l := &loader{body: body}
	if l.nodes, err = header.pairs(batchNodes); err != nil {
		return nil, 0, err
	}
	if l.buffers, err = header.pairs(batchBuffers); err != nil {
		return nil, 0, err
	}
	if n < 0 || n > int64(len(body)) { // every row takes at least a byte of `_op`
		return nil, 0, fmt.Errorf("record batch: %d rows in %d bytes", n, len(body))
	}
	return l, int(n), nil
}

func (l *loader) node() (n, nulls int, err error) {
	if len(l.nodes) == 0 {
		return 0, 0, errBuffers
	}
	v := l.nodes[0]
	l.nodes = l.nodes[1:]
	// A row may have no more items than the body has bits.
	if v[0] < 0 || v[0] > 8*int64(len(l.body)) || v[1] < 0 || v[1] > v[0] {
		return 0, 0, fmt.Errorf("record batch: node of length %d with %d nulls", v[0], v[1])
	}
	return int(v[0]), int(v[1]), nil
}

func (l *loader) buffer(least int) ([]byte, error) {
	if len(l.buffers) == 0 {
		return nil, errBuffers
	}
	off, n := l.buffers[0][0], l.buffers[0][1]
	l.buffers = l.buffers[1:]
	size := int64(len(l.body))
	if off < 0 || n < 0 || off > size || n > size-off || n < int64(least) {
		return nil, fmt.Errorf("record batch: buffer of %d bytes at %d, %d needed, body has %d", n, off, least, size)
	}
	return l.body[off : off+n : off+n], nil
}

func (l *loader) validity(n, nulls int) (*memory.Buffer, error) {
	least := 0
	if nulls > 0 {
		least = int(bitutil.BytesForBits(int64(n)))
	}
	bits, err := l.buffer(least)
	if err != nil || nulls == 0 {
		return nil, err
	}
	if set := bitutil.CountSetBits(bits, 0, n); set != n-nulls {
		return nil, fmt.Errorf("record batch: null count %d, bitmap has %d", nulls, n-set)
	}
	return memory.NewBufferBytes(bits), nil
}

// load reads the next array; want is its length, or -1 for a list's items.
func (l *loader) load(dt arrow.DataType, want int) (arrow.ArrayData, error) {
	n, nulls, err := l.node()
	if err != nil {
		return nil, err
	}
	if want >= 0 && n != want {
		return nil, fmt.Errorf("record batch: column of %d values, %d rows", n, want)
	}
	validity, err := l.validity(n, nulls)
	if err != nil {
		return nil, err
	}
	bufs := []*memory.Buffer{validity}
	var children []arrow.ArrayData
	add := func(least int) ([]byte, error) {
		b, err := l.buffer(least)
		bufs = append(bufs, memory.NewBufferBytes(b))
		return b, err
	}
	switch t := dt.(type) {
	case *arrow.BooleanType:
		_, err = add(int(bitutil.BytesForBits(int64(n))))
	case *arrow.StringType, *arrow.BinaryType:
		var off, data []byte
		if off, err = add(offsetBytes(n)); err != nil {
			return nil, err
		}
		if data, err = add(0); err == nil {
			err = checkOffsets(off, n, len(data))
		}
	case *arrow.ListType:
		var off []byte
		if off, err = add(offsetBytes(n)); err != nil {
			return nil, err
		}
		var child arrow.ArrayData
		if child, err = l.load(t.Elem(), -1); err == nil {
			children = append(children, child)
			err = checkOffsets(off, n, child.Len())
		}
	case *arrow.StructType:
		for i := range t.NumFields() {
			child, err := l.load(t.Field(i).Type, n)
			if err != nil {
				return nil, err
			}
			children = append(children, child)
		}
	case arrow.FixedWidthDataType:
		_, err = add(n * t.Bytes())
	default:
		err = fmt.Errorf("record batch: no layout for %v", dt)
	}
	if err != nil {
		return nil, err
	}
	return array.NewData(dt, n, bufs, children, nulls, 0), nil
}

// offsetBytes is the least size of n+1 offsets; an empty array may leave the buffer out.
func offsetBytes(n int) int {
	if n == 0 {
		return 0
	}
	return 4 * (n + 1)
}

func checkOffsets(raw []byte, n, limit int) error {
	if n == 0 {
		return nil
	}
	off := view[int32](raw)[:n+1]
	last := int32(0)
	for _, o := range off {
		if o < last {
			return errors.New("record batch: offsets fall")
		}
		last = o
	}
	if int(last) > limit {
		return fmt.Errorf("record batch: offset %d past %d", last, limit)
	}
	return nil
}
