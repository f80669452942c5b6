package iceberg

import (
	"context"
	"encoding/binary"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
)

// marks are the rows of a file that equality deletes have taken, a bit for each, by their place among those that are read.
type marks []uint64

func (m marks) set(i int) marks {
	for len(m) <= i/64 {
		m = append(m, 0)
	}
	m[i/64] |= 1 << (i % 64)
	return m
}

func (m marks) has(i int) bool { return i/64 < len(m) && m[i/64]&(1<<(i%64)) != 0 }

// without leaves the marked rows out of a batch, which begins at a place.
func (m marks) without(ctx context.Context, b arrow.RecordBatch, at int) (arrow.RecordBatch, error) {
	n := int(b.NumRows())
	living := make([]int32, 0, n)
	for i := range n {
		if !m.has(at + i) {
			living = append(living, int32(i))
		}
	}
	if len(living) == n {
		return b, nil
	}
	defer b.Release()
	return take(ctx, b, living)
}

// keyBatch is how many keys are read at once.
const keyBatch = 1 << 13

// keySize is what a key takes in a map beside its bytes.
const keySize = 64

// takers are keys, each with the newest delete of it: it takes rows of files that are older.
type takers struct {
	newest map[string]int64
	from   map[string]bool // files
	bytes  int
}

func newTakers() *takers {
	return &takers{newest: make(map[string]int64), from: make(map[string]bool)}
}

// gone finds the rows that equality deletes of this sink have taken from files, by the path of each. When the keys of all deletes
// are more than may be held at once, the files' keys are read once for each part of them.
func (r *rewriting) gone(ctx context.Context, tasks []table.FileScanTask) (map[string]marks, error) {
	gone := make(map[string]marks)
	all, read := newTakers(), make(map[string]bool)
	for _, task := range tasks {
		for _, d := range task.EqualityDeleteFiles {
			if !r.ours(task, d) || read[d.FilePath()] {
				continue
			}
			read[d.FilePath()] = true
			seq := r.deletes[d.FilePath()].SequenceNum()
			whole := table.FileScanTask{File: d, Length: d.FileSizeBytes()}
			for b, err := range r.read(ctx, whole, keyBatch, r.key...) {
				if err != nil {
					return nil, err
				}
				all.add(d, b, seq)
				b.Release()
				if all.bytes < r.share.keys {
					continue
				}
				if err := r.mark(ctx, tasks, all, gone); err != nil {
					return nil, err
				}
				all = newTakers()
			}
		}
	}
	return gone, r.mark(ctx, tasks, all, gone)
}

func (t *takers) add(from iceberg.DataFile, b arrow.RecordBatch, seq int64) {
	t.from[from.FilePath()] = true
	var buf []byte
	for i := range int(b.NumRows()) {
		buf = appendKey(buf[:0], b.Columns(), i)
		had, ok := t.newest[string(buf)]
		if !ok {
			t.bytes += keySize + len(buf)
		}
		if !ok || had < seq {
			t.newest[string(buf)] = seq
		}
	}
}

// mark marks the rows of files that takers take.
func (r *rewriting) mark(ctx context.Context, tasks []table.FileScanTask, all *takers, gone map[string]marks) error {
	var buf []byte
	for _, task := range tasks {
		if !r.reached(task, all) {
			continue
		}
		path, at := task.File.FilePath(), 0
		for b, err := range r.read(ctx, task, keyBatch, r.key...) {
			if err != nil {
				return err
			}
			for i := range int(b.NumRows()) {
				buf = appendKey(buf[:0], b.Columns(), i)
				if seq, ok := all.newest[string(buf)]; ok && seq > *task.DataSequenceNumber {
					gone[path] = gone[path].set(at + i)
				}
			}
			at += int(b.NumRows())
			b.Release()
		}
	}
	return nil
}

func (r *rewriting) reached(task table.FileScanTask, all *takers) bool {
	for _, d := range task.EqualityDeleteFiles {
		if all.from[d.FilePath()] && r.ours(task, d) {
			return true
		}
	}
	return false
}

// appendKey adds the key of a row: bytes that are equal for equal keys of the same columns, and for no others.
func appendKey(to []byte, columns []arrow.Array, i int) []byte {
	for _, c := range columns {
		if ext, ok := c.(array.ExtensionArray); ok {
			c = ext.Storage()
		}
		switch a := c.(type) {
		case *array.Int32:
			to = binary.LittleEndian.AppendUint32(to, uint32(a.Value(i)))
		case *array.Int64:
			to = binary.LittleEndian.AppendUint64(to, uint64(a.Value(i)))
		case *array.FixedSizeBinary:
			to = append(to, a.Value(i)...)
		case *array.String:
			to = binary.AppendUvarint(to, uint64(len(a.Value(i))))
			to = append(to, a.Value(i)...)
		default:
			text := c.ValueStr(i)
			to = binary.AppendUvarint(to, uint64(len(text)))
			to = append(to, text...)
		}
	}
	return to
}
