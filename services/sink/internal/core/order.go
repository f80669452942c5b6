package core

import (
	"cmp"
	"fmt"
	"slices"

	"weir.dev/weir/pkg/plan"
)

// Piece is what the order of a commit depends on.
type Piece struct {
	Writer plan.SubtaskID
	Table  string
	// Truncate marks the place where a writer met the table's truncate; such a piece has no rows.
	Truncate bool
	// Version is the schema version of the rows.
	Version uint32
}

// TableWork is what one table needs in a commit.
type TableWork struct {
	Table string
	// Truncate asks to empty the table before anything else.
	Truncate bool
	// Pieces are indexes into the commit's pieces, in the order in which they take effect.
	Pieces []int
}

// Order turns the pieces of a commit, which are in the order of writers and for each writer in the order of staging, into
// work per table, tables in order of their first piece.
//
// A truncate reaches every writer, each at its own place in its own order; what a writer staged before its last one is
// left out. Writers hold disjoint keys, so the pieces of different writers need no order among themselves but that of their
// schema versions: the table changes once from each to the next. A writer that
// has rows of a truncated table but did not meet the truncate is an error: the cut would be inconsistent.
func Order(pieces []Piece) ([]TableWork, error) {
	var work []TableWork
	at := make(map[string]int)
	last := make(map[writerTable]int) // the writer's last truncate of the table
	for i, p := range pieces {
		if _, ok := at[p.Table]; !ok {
			at[p.Table] = len(work)
			work = append(work, TableWork{Table: p.Table})
		}
		if p.Truncate {
			last[writerTable{p.Writer, p.Table}] = i
			work[at[p.Table]].Truncate = true
		}
	}
	for i, p := range pieces {
		w := &work[at[p.Table]]
		cut, met := last[writerTable{p.Writer, p.Table}]
		switch {
		case w.Truncate && !met:
			return nil, fmt.Errorf("table %s: writer %s has rows but not the truncate that others met", p.Table, p.Writer)
		case p.Truncate || (met && i < cut):
		default:
			w.Pieces = append(w.Pieces, i)
		}
	}
	for _, w := range work {
		slices.SortStableFunc(w.Pieces, func(a, b int) int { return cmp.Compare(pieces[a].Version, pieces[b].Version) })
	}
	return work, nil
}

type writerTable struct {
	writer plan.SubtaskID
	table  string
}
