package rows

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// Batch is an immutable run of rows of one table in one schema version. It is safe for concurrent reads.
// A decoded batch shares memory with the message it came from; batches made from a batch share its memory too.
type Batch struct {
	schema  *Schema
	n       int
	columns []arrow.Array
	op      *array.Uint8
	seq     *array.Uint64
	ts      *array.Timestamp
	txn     *array.Uint64
	xid     *array.Uint32
	ord     *array.Uint32
	special *array.List // nil when no row has one
	absent  *array.List // nil when no row has one
}

// Schema is the schema of the rows.
func (b *Batch) Schema() *Schema { return b.schema }

// NumRows counts the rows.
func (b *Batch) NumRows() int { return b.n }

// Column is the Arrow array of the table's own column i.
func (b *Batch) Column(i int) arrow.Array { return b.columns[i] }

// Op says what happened to row i.
func (b *Batch) Op(i int) Op { return Op(b.op.Value(i)) }

// Seq orders row i within its source.
func (b *Batch) Seq(i int) uint64 { return b.seq.Value(i) }

// Ts is the commit time of row i at the source, in microseconds since 1970 UTC, or NoTs.
func (b *Batch) Ts(i int) int64 {
	if b.ts.IsNull(i) {
		return NoTs
	}
	return int64(b.ts.Value(i))
}

// Txn identifies the transaction of row i, see Meta.
func (b *Batch) Txn(i int) uint64 { return b.txn.Value(i) }

// Xid is the transaction's number at the source, 0 where there is none.
func (b *Batch) Xid(i int) uint32 { return b.xid.Value(i) }

// Ord is the place of row i in its transaction.
func (b *Batch) Ord(i int) uint32 { return b.ord.Value(i) }

// Meta gathers what row i carries besides its columns.
func (b *Batch) Meta(i int) Meta {
	return Meta{Op: b.Op(i), Seq: b.Seq(i), Ts: b.Ts(i), Txn: b.Txn(i), Xid: b.Xid(i), Ord: b.Ord(i)}
}

// Absent lists the columns of row i that the source did not send. Do not modify.
func (b *Batch) Absent(i int) []uint16 {
	if b.absent == nil {
		return nil
	}
	from, to := b.absent.ValueOffsets(i)
	return b.absent.ListValues().(*array.Uint16).Uint16Values()[from:to]
}

// HasAbsent reports whether any row may have absent columns; false lets a caller skip the question per row.
func (b *Batch) HasAbsent() bool { return b.absent != nil }

// HasSpecial reports whether any row may have special values; false lets a caller skip the question per row.
func (b *Batch) HasSpecial() bool { return b.special != nil }

// Special lists the special values of row i; nil for nearly every row.
func (b *Batch) Special(i int) []Special {
	if b.special == nil {
		return nil
	}
	from, to := b.special.ValueOffsets(i)
	if from == to {
		return nil
	}
	columns, texts := b.specialItems()
	out := make([]Special, 0, to-from)
	for k := from; k < to; k++ {
		out = append(out, Special{Column: int(columns.Value(int(k))), Text: texts.Value(int(k))})
	}
	return out
}

// SpecialText is the special value of one cell, if it has one.
func (b *Batch) SpecialText(column, i int) (text string, ok bool) {
	if b.special == nil {
		return "", false
	}
	from, to := b.special.ValueOffsets(i)
	for k := from; k < to; k++ {
		if columns, texts := b.specialItems(); int(columns.Value(int(k))) == column {
			return texts.Value(int(k)), true
		}
	}
	return "", false
}

func (b *Batch) specialItems() (*array.Uint16, *array.String) {
	pairs := b.special.ListValues().(*array.Struct)
	return pairs.Field(0).(*array.Uint16), pairs.Field(1).(*array.String)
}

// AppendText writes a cell as SQL text, a special value included; ok is false for null and absent cells.
func (b *Batch) AppendText(dst []byte, column, i int) (_ []byte, ok bool) {
	col := b.columns[column]
	if col.IsNull(i) {
		text, special := b.SpecialText(column, i)
		return append(dst, text...), special
	}
	return b.schema.codecs[column].AppendText(dst, col, i), true
}

// Slice is the rows [from, to), sharing memory.
func (b *Batch) Slice(from, to int) *Batch {
	if from == 0 && to == b.n {
		return b
	}
	out := &Batch{schema: b.schema, n: to - from, columns: make([]arrow.Array, len(b.columns))}
	for i, c := range b.columns {
		out.columns[i] = slice(c, from, to)
	}
	out.op, out.seq, out.ts = slice(b.op, from, to), slice(b.seq, from, to), slice(b.ts, from, to)
	out.txn, out.xid, out.ord = slice(b.txn, from, to), slice(b.xid, from, to), slice(b.ord, from, to)
	if b.special != nil {
		out.special = slice(b.special, from, to)
	}
	if b.absent != nil {
		out.absent = slice(b.absent, from, to)
	}
	return out.trim()
}

func slice[A arrow.Array](a A, from, to int) A {
	return array.NewSlice(a, int64(from), int64(to)).(A)
}

// Gather copies the rows idx, in that order; an index may occur more than once.
func (b *Batch) Gather(idx []int32) *Batch {
	out := &Batch{schema: b.schema, n: len(idx), columns: make([]arrow.Array, len(b.columns))}
	for i, c := range b.columns {
		out.columns[i] = b.schema.codecs[i].Gather(c, idx)
	}
	out.op = gatherFixed[uint8](b.op, idx).(*array.Uint8)
	out.seq = gatherFixed[uint64](b.seq, idx).(*array.Uint64)
	out.ts = gatherFixed[uint64](b.ts, idx).(*array.Timestamp)
	out.txn = gatherFixed[uint64](b.txn, idx).(*array.Uint64)
	out.xid = gatherFixed[uint32](b.xid, idx).(*array.Uint32)
	out.ord = gatherFixed[uint32](b.ord, idx).(*array.Uint32)
	if b.special != nil {
		out.special = gatherFor(specialType)(b.special, idx).(*array.List)
	}
	if b.absent != nil {
		out.absent = gatherFor(absentType)(b.absent, idx).(*array.List)
	}
	return out.trim()
}

// trim drops list columns that have become empty, so that "only when needed" holds for parts of a batch.
func (b *Batch) trim() *Batch {
	if b.special != nil && items(b.special) == 0 {
		b.special = nil
	}
	if b.absent != nil && items(b.absent) == 0 {
		b.absent = nil
	}
	return b
}

func items(l *array.List) int64 {
	if l.Len() == 0 {
		return 0
	}
	from, _ := l.ValueOffsets(0)
	_, to := l.ValueOffsets(l.Len() - 1)
	return to - from
}

func (b *Batch) layout() layout {
	var l layout
	if b.special != nil {
		l |= withSpecial
	}
	if b.absent != nil {
		l |= withAbsent
	}
	return l
}

// Arrow is the batch as an Arrow record, system columns after the table's own.
func (b *Batch) Arrow() arrow.RecordBatch {
	columns := make([]arrow.Array, 0, len(b.columns)+len(systemFields)+2)
	columns = append(columns, b.columns...)
	columns = append(columns, b.op, b.seq, b.ts, b.txn, b.xid, b.ord)
	if b.special != nil {
		columns = append(columns, b.special)
	}
	if b.absent != nil {
		columns = append(columns, b.absent)
	}
	return array.NewRecordBatch(b.schema.arrow[b.layout()], columns, int64(b.n))
}
