package rows

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
)

// Collapsed is the net effect of an epoch on one table. No key occurs in more than one of its rows, so after the
// truncate, and after Moves have read what they lack, the parts may be applied in any order. Rows of each batch are in
// `_seq` order.
type Collapsed struct {
	// Truncated: the table was emptied within the epoch; everything here came after.
	Truncated bool
	// Deletes are keys to remove, whether or not the target has them.
	Deletes []*Batch
	// Upserts are whole rows: replace the row of the key, or insert it.
	Upserts []*Batch
	// Partials may only update an existing row. All rows of a batch have the same absent columns.
	Partials []*Batch
	// Moves are rows whose key changed while columns were not sent: their schema is [MoveSchema]. The absent columns, the
	// same ones for all rows of a batch, are those of the row that the target had under the old key before this epoch;
	// then they are whole rows like Upserts.
	Moves []*Batch
}

// ErrOrphan is in the chain of a Collapser's error about a row that lacks columns and whose old key it has not seen: the
// key changed, and the row with the old key went to another collapser.
var ErrOrphan = fmt.Errorf("%w: key changed and columns not sent", ErrInconsistent)

// ErrInconsistent is in the chain of a Collapser's error about rows that no source can have written in this order.
var ErrInconsistent = errors.New("inconsistent rows")

// Collapser keeps the last change of every key of one table and schema version within an epoch. It refers to the batches
// it is given until Finish. It is owned by one goroutine.
type Collapser struct {
	keyer     *Keyer
	table     keyTable
	rows      []winner // by key, as numbered by table
	batches   []pending
	truncated bool
	gone      deleted
}

// ref is one row of one added batch.
type ref struct{ batch, row int32 }

// winner is where the state of a key is: a row, or for a row that was put together from several, its columns' origins.
type winner struct {
	ref
	merged *mergedRow
}

type mergedRow struct {
	columns []ref // per column; noRef when no row of the epoch sent it
	// from is the row with the key under which the target has the columns that no row sent; noRef for the row's own key.
	from ref
}

// deleted is the newest delete, with what the epoch knew of its key before. A key change without all columns needs it: it
// comes as a delete and an insert with consecutive `_seq`.
type deleted struct {
	valid bool
	seq   uint64
	at    ref
	known bool // the epoch had a row of the key
	last  fate
	was   winner
}

var noRef = ref{-1, -1}

// fate says what a row of an added batch is to the result.
type fate uint8

const (
	fateGone fate = iota
	fateUpsert
	fatePartial
	fateDelete
	fateMerged
)

type pending struct {
	*Batch
	fates []fate
}

// NewCollapser makes a collapser for the rows of s, which must have a key.
func NewCollapser(s *Schema) (*Collapser, error) {
	if len(s.key) == 0 {
		return nil, fmt.Errorf("collapse %s: the table has no key", s.table)
	}
	return &Collapser{keyer: NewKeyer(s)}, nil
}

// Collapse is the whole of it for batches that are at hand: all of one table and schema version, in order.
func Collapse(batches ...*Batch) (Collapsed, error) {
	if len(batches) == 0 {
		return Collapsed{}, nil
	}
	c, err := NewCollapser(batches[0].schema)
	if err != nil {
		return Collapsed{}, err
	}
	for _, b := range batches {
		if err := c.Add(b); err != nil {
			return Collapsed{}, err
		}
	}
	return c.Finish()
}

// Add takes the next batch. Its schema must be the collapser's: a schema change ends a run of rows,
// because it has to reach the target between them.
func (c *Collapser) Add(b *Batch) error {
	s := c.keyer.schema
	if !b.schema.Same(s) {
		return fmt.Errorf("collapse %s version %d: batch of %s version %d", s.table, s.version, b.schema.table, b.schema.version)
	}
	c.batches = append(c.batches, pending{Batch: b, fates: make([]fate, b.n)})
	var key []byte
	for i := range b.n {
		op := b.Op(i)
		if op == OpUpdateBefore {
			continue
		}
		if op == OpTruncate {
			c.truncate()
			continue
		}
		key = c.keyer.Append(key[:0], b, i)
		if err := c.put(key, ref{int32(len(c.batches) - 1), int32(i)}, op); err != nil {
			return fmt.Errorf("collapse %s: row with _seq %d: %w", s.table, b.Seq(i), err)
		}
	}
	return nil
}

func (c *Collapser) truncate() {
	c.truncated = true
	c.table = keyTable{}
	c.rows = c.rows[:0]
	c.gone = deleted{}
	for _, p := range c.batches {
		clear(p.fates)
	}
}

func (c *Collapser) fateOf(r ref) *fate { return &c.batches[r.batch].fates[r.row] }

// put makes r the state of its key.
func (c *Collapser) put(key []byte, r ref, op Op) error {
	absent := c.batches[r.batch].Absent(int(r.row))
	next := fateUpsert
	switch {
	case op == OpDelete:
		next, absent = fateDelete, nil
	case len(absent) > 0 && op == OpInsert:
		return c.move(key, r, absent)
	case len(absent) > 0 && op != OpUpdateAfter:
		return fmt.Errorf("%w: %v with absent columns", ErrInconsistent, op)
	case len(absent) > 0:
		next = fatePartial
	}
	id, found := c.table.place(HashKey(key), key)
	if next == fateDelete {
		c.gone = deleted{valid: true, seq: c.batches[r.batch].Seq(int(r.row)), at: r, known: found}
	}
	if !found {
		c.rows = append(c.rows, winner{ref: r})
		*c.fateOf(r) = next
		return nil
	}
	w := &c.rows[id]
	last := c.fateOf(w.ref)
	if next == fateDelete {
		c.gone.was, c.gone.last = *w, *last
	}
	if next == fatePartial {
		if *last == fateDelete {
			return fmt.Errorf("%w: partial update of a deleted key", ErrInconsistent)
		}
		c.merge(w, r, absent)
		next = fateMerged
	} else {
		w.merged = nil
	}
	*last = fateGone
	w.ref = r
	*c.fateOf(r) = next
	return nil
}

// merge lays the columns that r has over what the key's earlier rows of the epoch gave.
func (c *Collapser) merge(w *winner, r ref, absent []uint16) {
	if w.merged == nil {
		m := &mergedRow{columns: make([]ref, len(c.keyer.schema.columns)), from: noRef}
		for i := range m.columns {
			m.columns[i] = w.ref
		}
		for _, a := range c.batches[w.batch].Absent(int(w.row)) {
			m.columns[a] = noRef
		}
		w.merged = m
	}
	for i := range w.merged.columns {
		if !slices.Contains(absent, uint16(i)) {
			w.merged.columns[i] = r
		}
	}
}

// Finish gives the net effect of all rows added. The collapser is of no use after it.
func (c *Collapser) Finish() (Collapsed, error) {
	out := Collapsed{Truncated: c.truncated}
	var partials patterns
	for _, p := range c.batches {
		if part := p.pick(fateDelete); part != nil {
			out.Deletes = append(out.Deletes, part)
		}
		if part := p.pick(fateUpsert); part != nil {
			out.Upserts = append(out.Upserts, part)
		}
		if part := p.pick(fatePartial); part != nil {
			partials.add(part)
		}
	}
	whole, partial, moved, err := c.build()
	if err != nil {
		return Collapsed{}, err
	}
	if whole.n > 0 {
		out.Upserts = append(out.Upserts, whole)
	}
	partials.add(partial)
	out.Partials = partials.batches
	if moved != nil {
		var moves patterns
		moves.add(moved)
		out.Moves = moves.batches
	}
	return out, nil
}

// pick takes the rows of one fate; the batch itself when that is all of them.
func (p pending) pick(f fate) *Batch {
	n := bytes.Count(rawBytes(p.fates), []byte{byte(f)})
	switch n {
	case 0:
		return nil
	case p.n:
		return p.Batch
	}
	idx := make([]int32, 0, n)
	for i, g := range p.fates {
		if g == f {
			idx = append(idx, int32(i))
		}
	}
	return p.Gather(idx)
}

// build materialises merged rows: those that are whole now, those that still lack columns, and those that lack columns
// which the target has under another key; the last is nil when there are none.
func (c *Collapser) build() (whole, partial, moved *Batch, err error) {
	var merged []winner
	for _, w := range c.rows {
		if w.merged != nil {
			merged = append(merged, w)
		}
	}
	slices.SortFunc(merged, func(a, b winner) int {
		if a.batch != b.batch {
			return int(a.batch - b.batch)
		}
		return int(a.row - b.row)
	})
	wb, pb := NewBuilder(c.keyer.schema), NewBuilder(c.keyer.schema)
	var mb *Builder
	for _, w := range merged {
		b := wb
		if slices.Contains(w.merged.columns, noRef) {
			b = pb
			if w.merged.from != noRef {
				if mb == nil {
					s, err := MoveSchema(c.keyer.schema)
					if err != nil {
						return nil, nil, nil, err
					}
					mb = NewBuilder(s)
				}
				b = mb
			}
		}
		for col, from := range w.merged.columns {
			if from == noRef {
				b.Absent(col)
				continue
			}
			c.batches[from.batch].copyCell(b, col, col, int(from.row))
		}
		if b == mb && mb != nil {
			c.copyOldKey(mb, w.merged.from)
		}
		b.EndRow(c.batches[w.batch].Meta(int(w.row)))
	}
	if mb != nil {
		if moved, err = mb.Flush(); err != nil {
			return nil, nil, nil, err
		}
	}
	if whole, err = wb.Flush(); err != nil {
		return nil, nil, nil, err
	}
	partial, err = pb.Flush()
	return whole, partial, moved, err
}

// copyCell appends a cell, special value included, to column `to` of dst.
func (b *Batch) copyCell(dst *Builder, to, column, row int) {
	if text, ok := b.SpecialText(column, row); ok {
		dst.Special(to, text)
		return
	}
	b.schema.codecs[column].Copy(dst.columns[to], b.columns[column], row)
}

// patterns groups rows by the set of columns they lack.
type patterns struct{ batches []*Batch }

func (p *patterns) add(b *Batch) {
	var order []string
	groups := make(map[string][]int32)
	for i := range b.n {
		key := string(rawBytes(b.Absent(i)))
		if _, ok := groups[key]; !ok {
			order = append(order, key)
		}
		groups[key] = append(groups[key], int32(i))
	}
	for _, key := range order {
		p.batches = append(p.batches, b.Gather(groups[key]))
	}
}
