package task

import (
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/rows"
)

// tables counts rows per table through a subtask, cumulative in the attempt. The last table is remembered, because
// batches of one table come in runs.
type tables struct {
	all  map[string]*epoch.Counts
	name string
	last *epoch.Counts
}

func (t *tables) of(table string) *epoch.Counts {
	if t.last != nil && t.name == table {
		return t.last
	}
	c, ok := t.all[table]
	if !ok {
		if t.all == nil {
			t.all = make(map[string]*epoch.Counts)
		}
		c = new(epoch.Counts)
		t.all[table] = c
	}
	t.name, t.last = table, c
	return c
}

// emitted counts a batch that left a source.
func (t *tables) emitted(b *rows.Batch) {
	t.of(string(b.Schema().Table())).Out += counted(b)
}

// written counts a batch that a writer took: all of it will be staged.
func (t *tables) written(b *rows.Batch) {
	c := t.of(string(b.Schema().Table()))
	n := counted(b)
	c.In += n
	c.Out += n
}

// counted is the number of rows without truncates: these go to every subtask, so they would not balance.
func counted(b *rows.Batch) uint64 {
	n := b.NumRows()
	all := uint64(n)
	for i := range n {
		if b.Op(i) == rows.OpTruncate {
			all--
		}
	}
	return all
}

// counts is a copy for a fact.
func (t *tables) counts() map[string]epoch.Counts {
	if len(t.all) == 0 {
		return nil
	}
	c := make(map[string]epoch.Counts, len(t.all))
	for name, n := range t.all {
		c[name] = *n
	}
	return c
}
