package rows

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Concat joins batches of one table and schema version, at least one, into one batch in the given order.
func Concat(batches ...*Batch) (*Batch, error) {
	first := batches[0]
	if len(batches) == 1 {
		return first, nil
	}
	out := &Batch{schema: first.schema, columns: make([]arrow.Array, len(first.columns))}
	special, absent := false, false
	for _, b := range batches {
		if !b.schema.Same(first.schema) {
			return nil, fmt.Errorf("join batches of %s version %d: one is of %s version %d",
				first.schema.table, first.schema.version, b.schema.table, b.schema.version)
		}
		out.n += b.n
		special = special || b.special != nil
		absent = absent || b.absent != nil
	}
	j := joiner{batches: batches}
	for c := range out.columns {
		out.columns[c] = j.join(func(b *Batch) arrow.Array { return b.columns[c] })
	}
	out.op = joinAs[*array.Uint8](&j, func(b *Batch) arrow.Array { return b.op })
	out.seq = joinAs[*array.Uint64](&j, func(b *Batch) arrow.Array { return b.seq })
	out.ts = joinAs[*array.Timestamp](&j, func(b *Batch) arrow.Array { return b.ts })
	out.txn = joinAs[*array.Uint64](&j, func(b *Batch) arrow.Array { return b.txn })
	out.xid = joinAs[*array.Uint32](&j, func(b *Batch) arrow.Array { return b.xid })
	out.ord = joinAs[*array.Uint32](&j, func(b *Batch) arrow.Array { return b.ord })
	if special {
		out.special = joinAs[*array.List](&j, func(b *Batch) arrow.Array { return listOrEmpty(b.special, specialType, b.n) })
	}
	if absent {
		out.absent = joinAs[*array.List](&j, func(b *Batch) arrow.Array { return listOrEmpty(b.absent, absentType, b.n) })
	}
	if j.err != nil {
		return nil, fmt.Errorf("join batches of %s: %w", first.schema.table, j.err)
	}
	return out, nil
}

// joiner keeps the first error of many joins.
type joiner struct {
	batches []*Batch
	parts   []arrow.Array
	err     error
}

func (j *joiner) join(of func(*Batch) arrow.Array) arrow.Array {
	if j.err != nil {
		return nil
	}
	j.parts = j.parts[:0]
	for _, b := range j.batches {
		j.parts = append(j.parts, of(b))
	}
	var out arrow.Array
	out, j.err = array.Concatenate(j.parts, memory.DefaultAllocator)
	return out
}

func joinAs[A arrow.Array](j *joiner, of func(*Batch) arrow.Array) A {
	a, _ := j.join(of).(A)
	return a
}

// listOrEmpty stands n empty lists in for a list column a batch does not have.
func listOrEmpty(l *array.List, dt *arrow.ListType, n int) arrow.Array {
	if l != nil {
		return l
	}
	none := array.NewBuilder(memory.DefaultAllocator, dt.Elem()).NewArray()
	return makeArray(dt, n, nil, 0, []arrow.ArrayData{none.Data()}, make([]byte, 4*(n+1)))
}
