package core

import (
	"fmt"
	"slices"

	"weir.dev/weir/pkg/pgcodec"
)

// Column is one column of a table in one schema version, as an epoch keeps it.
type Column struct {
	// ID is the column's identity in row schemas, Number that at the server (attnum): unlike it, IDs have no gaps at first.
	ID     int    `json:"id"`
	Number int    `json:"number"`
	Name   string `json:"name"`
	Source string `json:"source"` // its type in the server's words
	// Masked says that something stands in place of the column's values.
	Masked bool `json:"masked,omitempty"`
	// Fill is what rows from before the column was added have in it; nil for null.
	Fill *string `json:"fill,omitempty"`
}

// Columns are the columns of a table's last schema version, in its order.
type Columns struct {
	List []Column `json:"list"`
	// Next is the identity of the next new column.
	Next int `json:"next"`
	// Newest is the highest number that a column is known to have had.
	Newest int `json:"newest"`
	// Storage names the file that the rows were in (relfilenode); it changes when they are rewritten. 0 for a table whose
	// rows are in partitions.
	Storage uint32 `json:"storage,omitempty"`
}

// LiveColumn is a column of a table as the catalog has it now.
type LiveColumn struct {
	Number int
	Name   string
	// Unsent columns may be missing in the log: generated ones.
	Unsent bool
	// Fill is the constant that ADD COLUMN gave to the rows that were there; nil when the catalog has none.
	Fill *string
	// Default says that the column has a default or is an identity, Required that it is NOT NULL.
	Default, Required bool
}

// Live is a table as the catalog has it now, which is later than the log.
type Live struct {
	Columns []LiveColumn
	// Width is the highest number that a column ever had.
	Width   int
	Storage uint32
}

// Sent is a column that leaves the source, as the log describes it.
type Sent struct {
	Name, Source string
	Masked       bool
}

// DiffersError is a change of a table that the log does not show the rows of, so that whoever has followed the log has others.
type DiffersError struct{ Why string }

func (e *DiffersError) Error() string { return e.Why }

// First are the columns of a table's first version: identities are places.
func First(sent []Sent, live *Live) Columns {
	c := Columns{Next: len(sent) + 1, Newest: live.Width, Storage: live.Storage}
	for i, s := range sent {
		number := 0
		if at := live.find(s.Name); at >= 0 {
			number = live.Columns[at].Number
		}
		c.List = append(c.List, Column{ID: i + 1, Number: number, Name: s.Name, Source: s.Source, Masked: s.Masked})
	}
	return c
}

// Anew are the columns of a table that is copied anew: those of the last version keep their identities, whatever has become
// of their values.
func Anew(last Columns, sent []Sent, live *Live) Columns {
	c := First(sent, live)
	c.Next, c.Newest = max(last.Next, 1), max(last.Newest, c.Newest)
	for i := range c.List {
		at := slices.IndexFunc(last.List, func(o Column) bool { return o.Number != 0 && o.Number == c.List[i].Number })
		if at >= 0 {
			c.List[i].ID = last.List[at].ID
			continue
		}
		c.List[i].ID = c.Next
		c.Next++
	}
	return c
}

func (l *Live) find(name string) int {
	return slices.IndexFunc(l.Columns, func(c LiveColumn) bool { return c.Name == name })
}

// number finds a column that was not dropped.
func (l *Live) number(n int) *LiveColumn {
	if i := slices.IndexFunc(l.Columns, func(c LiveColumn) bool { return c.Number == n }); i >= 0 {
		return &l.Columns[i]
	}
	return nil
}

// Follow finds out what has become of a table's columns: which are new, which have another name or type. The log has names
// only; numbers, and with them the difference between a rename and a drop with an add, come from the catalog, which may
// have moved on. What follows from neither is a *[DiffersError], and so is a change that gave rows values of which the log says
// nothing: guessing would be a difference between source and target that nobody is told of.
func Follow(last Columns, sent []Sent, live *Live) (Columns, error) {
	numbers, ok := identify(&last, sent, live)
	if !ok {
		return Columns{}, &DiffersError{"which of its columns were renamed, and which dropped and made again, can no longer be told from its catalog"}
	}
	next := Columns{Next: last.Next, Newest: last.Newest, Storage: last.Storage}
	if live.shows(sent, numbers) { // otherwise it may be that of a change that is yet to come in the log
		next.Storage = live.Storage
	}
	for i, s := range sent {
		c := Column{Number: numbers[i], Name: s.Name, Source: s.Source, Masked: s.Masked}
		next.Newest = max(next.Newest, c.Number)
		at := slices.IndexFunc(last.List, func(c Column) bool { return c.Number == numbers[i] })
		if at >= 0 {
			old := last.List[at]
			c.ID, c.Fill = old.ID, old.Fill
			if old.Masked != s.Masked {
				return Columns{}, &DiffersError{fmt.Sprintf("column %q was %q; under one of the names its values are masked, under the other they are not", s.Name, old.Name)}
			}
			if !pgcodec.KeepsValues(old.Source, s.Source) {
				return Columns{}, &DiffersError{fmt.Sprintf("column %q changed its type from %s to %s; rows that were there have new values", s.Name, old.Source, s.Source)}
			}
			next.List = append(next.List, c)
			continue
		}
		if c.Number != 0 && c.Number <= last.Newest {
			return Columns{}, &DiffersError{fmt.Sprintf("column %q was there before and was not sent: it was left out, or is known under another name", s.Name)}
		}
		c.ID = next.Next
		next.Next++
		var err error
		if c.Fill, err = fill(s.Name, live.number(c.Number), last.Storage, live.Storage); err != nil {
			return Columns{}, err
		}
		next.List = append(next.List, c)
	}
	return next, nil
}

// shows reports whether the catalog has exactly the columns that the log has.
func (l *Live) shows(sent []Sent, numbers []int) bool {
	i := 0
	for _, c := range l.Columns {
		switch {
		case i < len(sent) && c.Name == sent[i].Name && c.Number == numbers[i]:
			i++
		case !c.Unsent:
			return false
		}
	}
	return i == len(sent)
}

// fill is what rows from before a column was added have in it. A constant is kept by the catalog and nothing is rewritten;
// values that differ from row to row rewrite the table.
func fill(name string, now *LiveColumn, before, after uint32) (*string, error) {
	switch {
	case now == nil: // dropped since, which the log will come to
		return nil, nil
	case now.Fill != nil:
		return now.Fill, nil
	case before == after && before != 0:
		return nil, nil
	case now.Default || (now.Required && before != 0):
		return nil, &DiffersError{fmt.Sprintf("column %q was added with a value of its own for each row, or the table was rewritten since; the log does not have the values", name)}
	}
	return nil, nil
}

// identify finds the number of each column that was sent; false when more than one answer is possible and none is likelier.
//
// The server numbers columns in the order in which they are made, sends them in the order of their numbers, and never
// uses a number again. So what was sent is some of the last columns, in order, and then new ones; and a column that the
// catalog still has was there all the time.
func identify(last *Columns, sent []Sent, live *Live) ([]int, bool) {
	if same(last.List, sent) {
		numbers := make([]int, len(last.List))
		for i, c := range last.List {
			numbers[i] = c.Number
			if at := live.find(c.Name); at >= 0 && live.Columns[at].Number != c.Number {
				// Dropped and made again under the same name: before or after what was sent now?
				return nil, false
			}
		}
		return numbers, true
	}
	if numbers, ok := exact(last, sent, live); ok {
		return numbers, true
	}
	s := newSearch(last, sent, live)
	best := s.best(0, 0)
	switch {
	case best.ways == 0:
		return byName(sent, live)
	case best.ways == 1 || (!best.tied && !best.renames):
		return s.numbers(), true
	}
	return nil, false
}

func same(last []Column, sent []Sent) bool {
	return slices.EqualFunc(last, sent, func(c Column, s Sent) bool { return c.Name == s.Name && c.Source == s.Source && c.Masked == s.Masked })
}

// exact takes the numbers of the catalog when it has the very columns that were sent.
func exact(last *Columns, sent []Sent, live *Live) ([]int, bool) {
	numbers, ok := byName(sent, live)
	if !ok || !live.shows(sent, numbers) {
		return nil, false
	}
	for _, n := range numbers {
		if n <= last.Newest && !slices.ContainsFunc(last.List, func(c Column) bool { return c.Number == n }) {
			return nil, false
		}
	}
	return numbers, true
}

// byName serves publications that send some of the columns.
func byName(sent []Sent, live *Live) ([]int, bool) {
	numbers := make([]int, len(sent))
	for i, s := range sent {
		at := live.find(s.Name)
		if at < 0 {
			return nil, false
		}
		numbers[i] = live.Columns[at].Number
	}
	return numbers, true
}
