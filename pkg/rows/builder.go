package rows

import (
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// NoTs stands for an unknown commit time in Meta.
const NoTs int64 = math.MinInt64

// Meta is what a row carries besides its columns.
type Meta struct {
	Op  Op
	Seq uint64 // strictly growing per reader and attempt
	Ts  int64  // commit time at the source, microseconds since 1970 UTC, or NoTs
	Txn uint64 // the transaction: PostgreSQL's commit end LSN; the same on every replay, 0 for snapshot rows
	Xid uint32 // the transaction's number where the source has one
	Ord uint32 // place of the row in the transaction; the same on every replay
}

// Builder collects rows of one schema. For each row set every column once, in any order - through Column's typed
// builder, Null, Absent or Special - then call EndRow.
// A builder is owned by one goroutine.
type Builder struct {
	schema  *Schema
	columns []array.Builder
	dynamic []dataLen // columns whose cells have no fixed width
	texts   []textColumn
	op      []uint8
	seq     []uint64
	ts      []int64
	noTs    int
	txn     []uint64
	xid     []uint32
	ord     []uint32
	special specialList
	absent  absentList
	capRows int
}

type dataLen interface{ DataLen() int }

// maxRoom bounds what a builder holds for texts that may never come: one may have been of many megabytes.
const maxRoom = 1 << 20

// textColumn is a column of texts or bytes, with the room for them that the next batch is given.
type textColumn struct {
	dataReserver
	room int
}

type dataReserver interface {
	dataLen
	ReserveData(bytes int)
}

// listLen sizes the items of a list column.
type listLen struct {
	*array.ListBuilder
	width int
}

// DataLen implements dataLen.
func (l listLen) DataLen() int {
	items := l.ValueBuilder()
	n := items.Len() * l.width
	if d, ok := items.(dataLen); ok {
		n += d.DataLen()
	}
	return n
}

// NewBuilder makes an empty builder.
func NewBuilder(s *Schema) *Builder {
	b := &Builder{schema: s, columns: make([]array.Builder, len(s.columns))}
	for i := range b.columns {
		b.columns[i] = array.NewBuilder(memory.DefaultAllocator, s.codecs[i].Arrow())
		switch c := b.columns[i].(type) {
		case dataReserver:
			b.dynamic, b.texts = append(b.dynamic, c), append(b.texts, textColumn{dataReserver: c})
		case dataLen:
			b.dynamic = append(b.dynamic, c)
		case *array.ListBuilder:
			b.dynamic = append(b.dynamic, listLen{c, fixedWidth(s.codecs[i].Arrow().(*arrow.ListType).Elem())})
		}
	}
	return b
}

// Schema is the schema of the rows.
func (b *Builder) Schema() *Schema { return b.schema }

// Column is the typed Arrow builder of column i. It stays the same for the builder's life, so a decoder binds to it once.
func (b *Builder) Column(i int) array.Builder { return b.columns[i] }

// Null sets column i of the current row to null.
func (b *Builder) Null(i int) { b.columns[i].AppendNull() }

// Absent sets column i of the current row to "not sent by the source", which is neither null nor a value.
func (b *Builder) Absent(i int) {
	b.columns[i].AppendNull()
	b.absent.add(len(b.op), uint16(i))
}

// Special sets column i of the current row to a value its type cannot hold, given as the source's own text.
func (b *Builder) Special(i int, text string) {
	b.columns[i].AppendNull()
	b.special.add(len(b.op), uint16(i), text)
}

// EndRow ends the current row.
func (b *Builder) EndRow(m Meta) {
	b.op = append(b.op, uint8(m.Op))
	b.seq = append(b.seq, m.Seq)
	b.ts = append(b.ts, m.Ts)
	if m.Ts == NoTs {
		b.noTs++
	}
	b.txn = append(b.txn, m.Txn)
	b.xid = append(b.xid, m.Xid)
	b.ord = append(b.ord, m.Ord)
	b.special.endRow(len(b.op))
	b.absent.endRow(len(b.op))
}

// Truncate adds a truncate row: every column null, m.Op ignored.
func (b *Builder) Truncate(m Meta) {
	for _, c := range b.columns {
		c.AppendNull()
	}
	m.Op = OpTruncate
	b.EndRow(m)
}

// Rows counts the rows ended since the last Flush.
func (b *Builder) Rows() int { return len(b.op) }

// Bytes estimates the encoded size of the rows ended since the last Flush, without the schema.
func (b *Builder) Bytes() int {
	n := len(b.op) * b.schema.fixedWidth
	for _, d := range b.dynamic {
		n += d.DataLen()
	}
	return n + b.special.bytes() + b.absent.bytes()
}

// Flush hands the rows over as a batch and starts anew, with room for as many rows again. The batch owns its memory.
// It is an error when a column does not have exactly one value per row, or a row has no valid Op: the decoder that
// filled the builder is wrong, and the builder is of no use after it.
func (b *Builder) Flush() (*Batch, error) {
	n := len(b.op)
	for i, c := range b.columns {
		if c.Len() != n {
			return nil, fmt.Errorf("flush %s: column %q has %d values for %d rows", b.schema.table, b.schema.columns[i].Name, c.Len(), n)
		}
	}
	for i, o := range b.op {
		if !Op(o).Valid() {
			return nil, fmt.Errorf("flush %s: row %d has %v", b.schema.table, i, Op(o))
		}
	}
	for i := range b.texts {
		t := &b.texts[i]
		t.room = min(max(t.DataLen(), less(t.room)), maxRoom)
	}
	out := &Batch{schema: b.schema, n: n, columns: make([]arrow.Array, len(b.columns))}
	for i, c := range b.columns {
		out.columns[i] = c.NewArray()
	}
	out.op = makeArray(arrow.PrimitiveTypes.Uint8, n, nil, 0, nil, b.op).(*array.Uint8)
	out.seq = makeArray(arrow.PrimitiveTypes.Uint64, n, nil, 0, nil, rawBytes(b.seq)).(*array.Uint64)
	out.ts = b.commitTimes()
	out.txn = makeArray(arrow.PrimitiveTypes.Uint64, n, nil, 0, nil, rawBytes(b.txn)).(*array.Uint64)
	out.xid = makeArray(arrow.PrimitiveTypes.Uint32, n, nil, 0, nil, rawBytes(b.xid)).(*array.Uint32)
	out.ord = makeArray(arrow.PrimitiveTypes.Uint32, n, nil, 0, nil, rawBytes(b.ord)).(*array.Uint32)
	out.special = b.special.flush(n)
	out.absent = b.absent.flush(n)
	b.reset(n)
	return out, nil
}

func (b *Builder) commitTimes() *array.Timestamp {
	var validity []byte
	if b.noTs > 0 {
		validity = make([]byte, bitutil.BytesForBits(int64(len(b.ts))))
		for i, t := range b.ts {
			if t != NoTs {
				bitutil.SetBit(validity, i)
			}
		}
	}
	return makeArray(timestampUTC, len(b.ts), validity, b.noTs, nil, rawBytes(b.ts)).(*array.Timestamp)
}

// reset leaves the flushed memory to the batch and makes room for a batch like it.
func (b *Builder) reset(n int) {
	b.capRows = max(n, less(b.capRows))
	b.op = make([]uint8, 0, b.capRows)
	b.seq = make([]uint64, 0, b.capRows)
	b.ts, b.noTs = make([]int64, 0, b.capRows), 0
	b.txn = make([]uint64, 0, b.capRows)
	b.xid = make([]uint32, 0, b.capRows)
	b.ord = make([]uint32, 0, b.capRows)
	for _, c := range b.columns {
		c.Reserve(b.capRows)
	}
	for _, t := range b.texts {
		t.ReserveData(t.room)
	}
}

// less is the room for a batch when the last one did not fill it: the last batch of a run is smaller than those to come.
func less(room int) int { return room - room/8 }
