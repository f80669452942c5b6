package cdc

import (
	"fmt"
	"slices"
)

// Chunks are prepared ahead so that no reader waits: this many per reader before more bounds are asked for, which come in
// runs.
const (
	aheadPerReader = 4
	boundsPerAsk   = 64
)

// ask asks for bounds of the next table when few chunks are prepared. One question is open at a time.
func (a *Assigner) ask() {
	for !a.asked && len(a.queue) < aheadPerReader*len(a.credit) {
		i := slices.IndexFunc(a.tables, func(t *table) bool { return t.split == splitRunning })
		if i < 0 {
			i = slices.IndexFunc(a.tables, func(t *table) bool { return t.split == splitWaiting })
		}
		if i < 0 {
			return
		}
		t := a.tables[i]
		if t.Keyless {
			a.queue = append(a.queue, work{chunk: a.chunk(t, nil, nil)})
			t.split = splitDone
			continue
		}
		t.split = splitRunning
		a.asking, a.asked = t.ID, true
		a.outbox = append(a.outbox, AskBounds{
			Table: t.ID, After: t.after, Rows: ChunkRows(a.cfg.ChunkRows, a.cfg.ChunkBytes, t.RowBytes), Max: boundsPerAsk,
		})
	}
}

// Bounded answers AskBounds: the next bounds of a table behind after, in order, and whether the last of them begins the last
// chunk. Without bounds and last the table's rest is one chunk. An answer to a question that no longer stands is ignored.
// An error means that the bounds do not grow.
func (a *Assigner) Bounded(id TableID, after Key, bounds []Key, last bool) error {
	if !a.asked || a.asking != id {
		return nil
	}
	t := a.table(id)
	if t == nil || t.split != splitRunning || !t.after.Equal(after) {
		return nil
	}
	if len(bounds) == 0 && !last {
		return fmt.Errorf("%w: table %s is neither at its end nor are there bounds", ErrMalformed, t.Name)
	}
	before := after
	for _, b := range bounds {
		if b == nil || b.Equal(before) {
			return fmt.Errorf("%w: the bounds of table %s do not grow", ErrMalformed, t.Name)
		}
		before = b
	}
	a.asked = false
	for _, b := range bounds {
		b = b.Clone()
		a.queue = append(a.queue, work{chunk: a.chunk(t, t.after, b)})
		t.after = b
	}
	if last {
		a.queue = append(a.queue, work{chunk: a.chunk(t, t.after, nil)})
		t.split, t.after = splitDone, nil
	}
	return nil
}
