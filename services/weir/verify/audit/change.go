package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"weir.dev/weir/pkg/verdict"
)

// Change is one row of a log or a changelog: what the validators know of it, and its values.
type Change struct {
	verdict.Change

	// Cells are the columns as text, nil for NULL. A column that was not sent is not there.
	Cells Cells
}

// keyText names a row within its table.
func keyText(cells []*string) (string, error) {
	b, err := json.Marshal(cells)
	return string(b), err
}

// Judgement is what became of each guarantee about changes; nil where it holds.
type Judgement struct {
	// Multiset: the same changes, each once. Order: those of a key in the source's order. Whole: transactions in one commit.
	// Values: every column as at the source.
	Multiset, Order, Whole, Values error
}

// Err is all that does not hold.
func (j Judgement) Err() error { return errors.Join(j.Multiset, j.Order, j.Whole, j.Values) }

// Judge compares what a changelog holds with what it must hold.
func Judge(got, want []Change) Judgement {
	g, w := plain(got), plain(want)
	return Judgement{
		Multiset: verdict.SameChanges(g, w),
		Order:    verdict.KeyOrder(g, w),
		Whole:    verdict.WholeTransactions(g),
		Values:   sameCells(got, want),
	}
}

// Validate is [Judge] for those who want all of it.
func Validate(got, want []Change) error { return Judge(got, want).Err() }

func plain(changes []Change) []verdict.Change {
	out := make([]verdict.Change, len(changes))
	for i, c := range changes {
		out[i] = c.Change
	}
	return out
}

// sameCells compares values. A pair that is missing is SameChanges' affair.
func sameCells(got, want []Change) error {
	type place struct {
		txn uint64
		ord uint32
	}
	at := make(map[place]Change, len(want))
	for _, c := range want {
		at[place{c.Txn, c.Ord}] = c
	}
	var errs []error
	for _, c := range got {
		w, ok := at[place{c.Txn, c.Ord}]
		if !ok || len(errs) == 5 {
			continue
		}
		if !maps.EqualFunc(c.Cells, w.Cells, func(a, b *string) bool {
			return a == b || a != nil && b != nil && *a == *b
		}) {
			errs = append(errs, fmt.Errorf("transaction %d, row %d of %s: columns %s differ",
				c.Txn, c.Ord, c.Table, differing(c.Cells, w.Cells)))
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("values: %w", errors.Join(errs...))
}

// differing names columns only: values may be anybody's.
func differing(a, b map[string]*string) []string {
	var names []string
	for name := range maps.All(a) {
		other, ok := b[name]
		if x := a[name]; !ok || (x == nil) != (other == nil) || x != nil && *x != *other {
			names = append(names, name)
		}
	}
	for name := range b {
		if _, ok := a[name]; !ok {
			names = append(names, name+" (only at the source)")
		}
	}
	slices.Sort(names)
	return names
}
