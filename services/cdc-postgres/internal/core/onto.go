package core

import (
	"fmt"
	"slices"
	"strings"

	"weir.dev/weir/pkg/pgcodec"
)

// Added stands for the place of a column that a row does not have yet.
const Added = -1

// Onto finds the columns of a table's version among those that the log sent, when the log is behind the copy: its rows are of a
// version that came before, those of the copy of this one. It returns for each column its place among those sent, or [Added]
// for one that came later, whose value then is its Fill. from are the versions that the copy had before, oldest first; what was
// sent is of one of them, of this one, or of one in between that no chunk was read in.
//
// A value keeps its text under another type, or the version cannot be the copy's: see [Columns.Succeeds].
func (c Columns) Onto(sent []Sent, from ...Columns) ([]int, error) {
	numbers, err := c.numbers(sent, from)
	if err != nil {
		return nil, err
	}
	places := make([]int, len(c.List))
	for i, col := range c.List {
		at := slices.Index(numbers, col.Number)
		places[i] = at
		switch {
		case at < 0 && len(from) > 0 && from[0].number(col.Number) != nil:
			return nil, &DiffersError{fmt.Sprintf("column %q is not in the log, in which it was all the time", col.Name)}
		case at < 0:
			places[i] = Added
		case sent[at].Masked != col.Masked:
			return nil, &DiffersError{fmt.Sprintf("column %q was %q; under one of the names its values are masked, under the other they are not", col.Name, sent[at].Name)}
		case !keepsText(sent[at].Source, col.Source):
			return nil, &DiffersError{fmt.Sprintf("column %q changed its type from %s to %s while the table was copied; the log has values of both", col.Name, sent[at].Source, col.Source)}
		}
	}
	return places, nil
}

// Succeeds reports why a copy cannot go on in this version where it was in the others, oldest first: rows of the log from before
// could not be told from those behind, or not be written in its columns.
func (c Columns) Succeeds(from ...Columns) error {
	for i := range from {
		for _, v := range []Columns{from[i], c} {
			if _, err := c.Onto(v.sent(), from[i:]...); err != nil {
				return err
			}
		}
	}
	return nil
}

// numbers finds the number of each column that was sent. A whole version is likelier than a mixture of several.
func (c Columns) numbers(sent []Sent, from []Columns) ([]int, error) {
	versions := append(slices.Clone(from), c)
	var whole []int
	for _, v := range versions {
		if !same(v.List, sent) {
			continue
		}
		numbers := make([]int, len(v.List))
		for i := range v.List {
			numbers[i] = v.List[i].Number
		}
		if whole != nil && !slices.Equal(whole, numbers) {
			return nil, &DiffersError{"a column was dropped and made again under its name and type while the table was copied"}
		}
		whole = numbers
	}
	if whole != nil {
		return whole, nil
	}
	numbers := make([]int, 0, len(sent))
	for _, s := range sent {
		n, ok := within(versions, s)
		if !ok || slices.Contains(numbers, n) {
			return nil, &DiffersError{fmt.Sprintf("which column %q of the log is now can no longer be told from its catalog", s.Name)}
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}

// within finds the one number that a column has had under its name; where it has had several, the one with the type as well.
func within(versions []Columns, s Sent) (int, bool) {
	var named, typed []int
	for _, v := range versions {
		for _, c := range v.List {
			if c.Name != s.Name {
				continue
			}
			named = append(named, c.Number)
			if c.Source == s.Source {
				typed = append(typed, c.Number)
			}
		}
	}
	for _, found := range [][]int{named, typed} {
		slices.Sort(found)
		if found = slices.Compact(found); len(found) == 1 {
			return found[0], true
		}
	}
	return 0, false
}

// keepsText reports whether every value of a type reads as the same value of another: text form, no rounding, and nothing that
// does not fit. A real has fewer digits than the double that it becomes.
func keepsText(from, to string) bool {
	return from == to || pgcodec.Wider(to, from) && strings.TrimSuffix(to, "[]") != "double precision"
}

// Alike reports whether both versions have the same columns under the same names and types.
func (c Columns) Alike(o Columns) bool {
	return slices.EqualFunc(c.List, o.List, func(a, b Column) bool { return a.Number == b.Number }) && same(c.List, o.sent())
}

// NumberOf is the number of the column with a name; 0 when there is none.
func (c Columns) NumberOf(name string) int {
	if i := slices.IndexFunc(c.List, func(c Column) bool { return c.Name == name }); i >= 0 {
		return c.List[i].Number
	}
	return 0
}

func (c Columns) number(n int) *Column {
	if i := slices.IndexFunc(c.List, func(c Column) bool { return c.Number == n }); i >= 0 {
		return &c.List[i]
	}
	return nil
}

// sent are the columns as the log has them.
func (c Columns) sent() []Sent {
	sent := make([]Sent, len(c.List))
	for i, col := range c.List {
		sent[i] = Sent{Name: col.Name, Source: col.Source, Masked: col.Masked}
	}
	return sent
}
