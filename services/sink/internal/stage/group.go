package stage

import (
	"slices"

	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/services/sink/internal/core"
)

// Group is rows of one kind, in the order of the source, that a target takes in one step.
type Group struct {
	Kind    Kind
	Batches []*rows.Batch
	// First are the indexes of the batches' first rows among all that the commit has for the table.
	First []int
	// Absent are the columns that every row of a Partial or Move lacks.
	Absent []uint16
	// N counts the rows.
	N int
}

// Gather adds a batch to the last group when it is of its kind and lacks the same columns, else as a group of its own.
func Gather(groups []Group, kind Kind, b *rows.Batch, first int) []Group {
	var absent []uint16
	if kind == Partial || kind == Move {
		absent = b.Absent(0)
	}
	if n := len(groups); n > 0 && groups[n-1].Kind == kind && slices.Equal(groups[n-1].Absent, absent) {
		g := &groups[n-1]
		g.Batches, g.First, g.N = append(g.Batches, b), append(g.First, first), g.N+b.NumRows()
		return groups
	}
	return append(groups, Group{Kind: kind, Batches: []*rows.Batch{b}, First: []int{first}, Absent: absent, N: b.NumRows()})
}

// Kept leaves out the rows that mode append cannot keep; put is given each of them and a column that it lacks.
func Kept(groups []Group, put func(row Group, column string) error) ([]Group, error) {
	var kept []Group
	for _, g := range groups {
		for _, one := range g.Split() {
			b, from := one.Batches[0], 0
			keep := func(to int) {
				if to > from {
					kept = Gather(kept, g.Kind, b.Slice(from, to), one.First[0]+from)
				}
				from = to + 1
			}
			for i := range b.NumRows() {
				column, lacks := core.Lacks(b, i)
				if !lacks {
					continue
				}
				keep(i)
				if err := put(one.Cut(i, i+1), column); err != nil {
					return nil, err
				}
			}
			keep(b.NumRows())
		}
	}
	return kept, nil
}

// Lacks reports whether the group's rows lack a column.
func (g Group) Lacks(column int) bool { return slices.Contains(g.Absent, uint16(column)) }

// Split makes a group of each batch.
func (g Group) Split() []Group {
	all := make([]Group, len(g.Batches))
	for i, b := range g.Batches {
		all[i] = Group{Kind: g.Kind, Absent: g.Absent, Batches: []*rows.Batch{b}, First: g.First[i : i+1], N: b.NumRows()}
	}
	return all
}

// Apart makes a group of each row when there are no more than limit, so that each can be told from the others, else of each batch.
func (g Group) Apart(limit int) []Group {
	if g.N > limit {
		return g.Split()
	}
	var all []Group
	for _, one := range g.Split() {
		for i := range one.N {
			all = append(all, one.Cut(i, i+1))
		}
	}
	return all
}

// Cut is some rows of a group of one batch.
func (g Group) Cut(from, to int) Group {
	return Group{
		Kind: g.Kind, Absent: g.Absent, Batches: []*rows.Batch{g.Batches[0].Slice(from, to)}, First: []int{g.First[0] + from}, N: to - from,
	}
}

// Halves cuts a group of one batch in two.
func (g Group) Halves() [2]Group { return [2]Group{g.Cut(0, g.N/2), g.Cut(g.N/2, g.N)} }
