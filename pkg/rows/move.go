package rows

import (
	"fmt"
	"slices"
	"strings"
)

// movedFrom begins the name of a column that holds a part of the old key; no database allows a NUL in a name.
const movedFrom = "\x00from:"

// MoveSchema is the schema of rows that moved from one key to another: the table's own columns as they are in s, then
// one for each part of the old key, in key order.
func MoveSchema(s *Schema) (*Schema, error) {
	columns := slices.Clone(s.columns)
	for _, i := range s.key {
		old := s.columns[i]
		old.Name, old.KeyPos, old.Nullable, old.ID = movedFrom+old.Name, 0, true, 0
		columns = append(columns, old)
	}
	return NewSchema(s.table, s.version, s.origin, columns)
}

// Unmoved is the schema of the table behind a [MoveSchema], with equal content and fingerprint; s itself when it is no such
// schema.
func (s *Schema) Unmoved() (*Schema, error) {
	n := slices.IndexFunc(s.columns, func(c Column) bool { return strings.HasPrefix(c.Name, movedFrom) })
	if n < 0 {
		return s, nil
	}
	return NewSchema(s.table, s.version, s.origin, s.columns[:n])
}

// move makes r, which lacks columns, the state of its key: the row that the newest delete has just taken away goes on
// under a new key. What the epoch knows of that row fills the columns; the rest is what the target has under the key that
// the row had before the epoch.
func (c *Collapser) move(key []byte, r ref, absent []uint16) error {
	g := c.gone
	if !g.valid || g.seq+1 != c.batches[r.batch].Seq(int(r.row)) {
		return ErrOrphan
	}
	if g.known && g.last == fateDelete {
		return fmt.Errorf("%w: key change of a deleted row", ErrInconsistent)
	}
	m := &mergedRow{columns: make([]ref, len(c.keyer.schema.columns)), from: g.at}
	for i := range m.columns {
		m.columns[i] = r
	}
	for _, a := range absent {
		m.columns[a] = c.before(g, int(a))
	}
	if g.known && g.was.merged != nil && g.was.merged.from != noRef {
		m.from = g.was.merged.from
	}
	id, found := c.table.place(HashKey(key), key)
	if !found {
		c.rows = append(c.rows, winner{ref: r, merged: m})
	} else {
		w := &c.rows[id]
		*c.fateOf(w.ref) = fateGone
		w.ref, w.merged = r, m
	}
	*c.fateOf(r) = fateMerged
	return nil
}

// before is where a column of a deleted row was, noRef when only the target knows.
func (c *Collapser) before(g deleted, column int) ref {
	switch {
	case !g.known:
		return noRef
	case g.was.merged != nil:
		return g.was.merged.columns[column]
	case slices.Contains(c.batches[g.was.batch].Absent(int(g.was.row)), uint16(column)):
		return noRef
	}
	return g.was.ref
}

// copyOldKey appends the key of a row to the last columns of a builder of a [MoveSchema].
func (c *Collapser) copyOldKey(dst *Builder, from ref) {
	b := c.batches[from.batch]
	for i, column := range c.keyer.schema.key {
		b.copyCell(dst, len(c.keyer.schema.columns)+i, column, int(from.row))
	}
}
