package core

import (
	"slices"

	"weir.dev/weir/pkg/rows"
)

// Known are a target table's columns as the sink left them with the last schema version that it applied. What a new version
// has to be compared with is never in doubt: not after a crash, not when versions were skipped.
type Known struct {
	// Version is the newest schema version that the table was made to fit, where the sink remembers it.
	Version uint32        `json:"version,omitempty"`
	Columns []KnownColumn `json:"columns"`
}

// KnownColumn is one column of the source and where it goes.
type KnownColumn struct {
	ID   int    `json:"id,omitempty"` // of rows.Column; 0 when the source cannot tell
	Name string `json:"name"`         // at the source
	// Target is the column's name at the target; empty when its values are not written.
	Target string `json:"target,omitempty"`
	// Type is what the target's column would be if it were made now.
	Type string `json:"type"`
	// Gone says that the source no longer has the column: the target keeps it, and rows written since have null in it.
	Gone bool `json:"gone,omitempty"`
}

// is reports whether an entry is that of a column: by identity where both sides have one, else by name.
func (o KnownColumn) is(c rows.Column) bool {
	if o.ID != 0 && c.ID != 0 {
		return o.ID == c.ID
	}
	return o.Name == c.Name
}

// Of finds the column that the source has in c; -1 when it is new.
func (k *Known) Of(c rows.Column) int {
	return slices.IndexFunc(k.Columns, func(o KnownColumn) bool { return !o.Gone && o.is(c) })
}

// Was finds the column that the source has, or had, in c; -1 when the target never had it. Rows of older versions go there.
func (k *Known) Was(c rows.Column) int {
	if i := k.Of(c); i >= 0 {
		return i
	}
	return slices.IndexFunc(k.Columns, func(o KnownColumn) bool { return o.is(c) })
}

// Holds finds the column that has a name at the target; -1 when none of the source's has.
func (k *Known) Holds(target string) int {
	return slices.IndexFunc(k.Columns, func(o KnownColumn) bool { return o.Target == target })
}

// Retire goes through the columns that a new schema version no longer has. gone follows one and says whether the target keeps
// it; what is not kept is forgotten.
func (k *Known) Retire(now []rows.Column, gone func(i int) (kept bool, err error)) error {
	for i := 0; i < len(k.Columns); i++ {
		if k.Columns[i].Gone || slices.ContainsFunc(now, func(c rows.Column) bool { return k.Of(c) == i }) {
			continue
		}
		kept, err := gone(i)
		if err != nil {
			return err
		}
		if !kept {
			k.Drop(i)
			i--
		}
	}
	return nil
}

// Drop forgets a column.
func (k *Known) Drop(i int) { k.Columns = slices.Delete(k.Columns, i, i+1) }
