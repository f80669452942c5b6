package core

import (
	"bytes"
	"slices"

	"weir.dev/weir/services/cdc-postgres/internal/pgoutput"
)

// KeyOf finds the key columns of a table as the log describes it, as indexes into its columns in key order; empty when
// there is no key. primary and identity are the columns of the primary key and of the index of REPLICA IDENTITY USING
// INDEX in the catalog of today.
//
// The log marks the columns whose old values it carries; they are the key, and only their order is taken from the
// catalog. Under FULL every column is marked and under NOTHING none is, so there the catalog decides.
func KeyOf(r *pgoutput.Relation, primary, identity []string) []int {
	var marked []int
	for i, c := range r.Columns {
		if c.Key {
			marked = append(marked, i)
		}
	}
	switch r.Identity {
	case pgoutput.IdentityDefault:
		return inOrder(r, marked, primary)
	case pgoutput.IdentityIndex:
		return inOrder(r, marked, identity)
	case pgoutput.IdentityFull, pgoutput.IdentityNothing:
	}
	key := make([]int, 0, len(primary))
	for _, name := range primary {
		i := slices.IndexFunc(r.Columns, func(c pgoutput.RelationColumn) bool { return c.Name == name })
		if i < 0 {
			return nil // the catalog has moved on; half a key would be a wrong one
		}
		key = append(key, i)
	}
	return key
}

// inOrder sorts marked by the places of the columns in names, if both name the same columns.
func inOrder(r *pgoutput.Relation, marked []int, names []string) []int {
	if len(marked) != len(names) {
		return marked
	}
	ordered := make([]int, 0, len(marked))
	for _, name := range names {
		i := slices.IndexFunc(marked, func(i int) bool { return r.Columns[i].Name == name })
		if i < 0 {
			return marked
		}
		ordered = append(ordered, marked[i])
	}
	return ordered
}

// Rows are the rows one update becomes.
type Rows struct {
	// KeyChanged: the update is a delete of Old and an insert of New.
	KeyChanged bool
	// Whole says that Old is the whole old row, not its key only.
	Whole bool
}

// Update completes the new row of an update in place and says what it is. An unchanged out-of-line value is copied from
// the old row where that has it; else it stays "unchanged", which is neither null nor a value. A key is sent by the
// server when it changed, but also when a key column is stored out of line, so the values are compared.
func Update(c *pgoutput.Change, key []int) Rows {
	r := Rows{Whole: c.OldKind == pgoutput.OldFull}
	if c.OldKind == pgoutput.OldNone {
		return r
	}
	if r.Whole {
		for i := range c.New {
			if c.New[i].Kind == pgoutput.CellUnchanged {
				c.New[i] = c.Old[i]
			}
		}
	}
	for _, i := range key {
		switch {
		case c.New[i].Kind == pgoutput.CellUnchanged:
			c.New[i] = c.Old[i]
		case c.New[i].Kind != c.Old[i].Kind, !bytes.Equal(c.New[i].Data, c.Old[i].Data):
			r.KeyChanged = true
		}
	}
	return r
}
