package cdc

import (
	"fmt"
	"slices"
)

// Verdict is what becomes of a change in the log.
type Verdict uint8

const (
	// Drop it: a chunk has it already, or the table is none of ours.
	Drop Verdict = iota
	// Emit it.
	Emit
	// Locate its key first: only the server knows in which chunk it lies. The answer goes to [TableFilter.JudgeAt].
	Locate
	// Again: some chunks are from before a truncate, others from behind it. Emit it and read the table again: [Share.Paused].
	Again
)

// Filter lets a change of the log through exactly when no chunk has it. It is owned by one goroutine.
type Filter[E comparable, P any] struct {
	tables map[TableID]*TableFilter[E, P]
	behind []*TableFilter[E, P] // those in their catch-up
}

// TableFilter is the filter of one table. It stays valid for the life of its Filter.
type TableFilter[E comparable, P any] struct {
	id     TableID
	order  Order
	behind bool
	bounds []Key        // bounds[i] begins chunk i+1
	words  *wordIndex   // the same as numbers, where that can be
	marks  []Mark[E, P] // by chunk
	unlike []Mark[E, P] // each mark once
	left   int          // of unlike, those that are not passed are among the first so many
	last   E            // the event that seen is about
	seen   containment  // 0: not asked yet
}

type containment uint8

const (
	byAll containment = iota + 1
	byNone
	bySome
)

// NewFilter makes the filter of a log. order says how a table's keys compare, nil when only the server knows; mark reads the
// adapter's form.
func NewFilter[E comparable, P any](
	split *LogSplit, order func(TableID) Order, mark func([]byte) (Mark[E, P], error),
) (*Filter[E, P], error) {
	f := &Filter[E, P]{tables: make(map[TableID]*TableFilter[E, P], len(split.Tables))}
	for _, s := range split.Tables {
		t := &TableFilter[E, P]{id: s.ID, behind: len(s.Chunks) > 0}
		f.tables[s.ID] = t
		if !t.behind {
			continue
		}
		f.behind = append(f.behind, t)
		t.order = order(s.ID)
		read := make(map[string]Mark[E, P])
		for i, c := range s.Chunks {
			m, ok := read[string(c.Mark)]
			if !ok {
				var err error
				if m, err = mark(c.Mark); err != nil {
					return nil, fmt.Errorf("mark of chunk %s: %w", c.ChunkID, err)
				}
				read[string(c.Mark)] = m
				t.unlike = append(t.unlike, m)
			}
			t.marks = append(t.marks, m)
			if i > 0 {
				t.bounds = append(t.bounds, c.Low)
			}
		}
		t.left = len(t.unlike)
		if err := t.check(); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// check proves that the bounds grow in the order by which keys will be sought.
func (t *TableFilter[E, P]) check() error {
	if t.order == nil {
		return nil
	}
	for i := 1; i < len(t.bounds); i++ {
		if t.order.Compare(t.bounds[i-1], t.bounds[i]) >= 0 {
			return fmt.Errorf("table %d: %w: the server's order of keys is not ours at chunk %d", t.id, ErrMalformed, i)
		}
	}
	if _, ok := t.order.(Bytewise); ok {
		t.words = newWordIndex(t.bounds)
	}
	return nil
}

// Table returns the filter of a table; nil, which drops everything, for one that is not in the log split.
func (f *Filter[E, P]) Table(id TableID) *TableFilter[E, P] { return f.tables[id] }

// Done reports that every change counts from here on: the filter is of no more use.
func (f *Filter[E, P]) Done() bool { return len(f.behind) == 0 }

// Passed takes a position between two transactions, all before it judged, and returns the tables that end their catch-up
// with it. It is called at the position where reading begins too.
func (f *Filter[E, P]) Passed(p P) (tables []TableID) {
	f.behind = slices.DeleteFunc(f.behind, func(t *TableFilter[E, P]) bool {
		for t.left > 0 && t.unlike[t.left-1].PassedBy(p) {
			t.left--
		}
		if t.left > 0 {
			return false
		}
		t.behind, t.bounds, t.words, t.marks, t.unlike = false, nil, nil, nil, nil
		tables = append(tables, t.id)
		return true
	})
	return tables
}

// Judge decides about a change of the row with that key. A change of a key is two: the row is deleted under the old key and
// inserted under the new one, and each half is judged by its own.
//
// Of such a change the insert may count and the delete not: the row left a chunk before it was read, and came into one that
// had been read. If the log does not have all columns of the new row then, no sink has the others: see doc.go.
func (t *TableFilter[E, P]) Judge(e E, key Key) Verdict {
	switch {
	case t == nil:
		return Drop
	case !t.behind:
		return Emit
	case len(t.marks) == 1:
		return verdict(t.marks[0], e)
	case t.order == nil:
		switch t.containment(e) {
		case byAll:
			return Drop
		case byNone:
			return Emit
		case bySome:
		}
		return Locate
	}
	if t.words != nil {
		if i, ok := t.words.seek(key); ok {
			return verdict(t.marks[i], e)
		}
	}
	lo, hi := 0, len(t.bounds) // the chunk is the number of bounds at or below the key
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if t.order.Compare(t.bounds[mid], key) <= 0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return verdict(t.marks[lo], e)
}

func verdict[E comparable, P any](m Mark[E, P], e E) Verdict {
	if m.Contains(e) {
		return Drop
	}
	return Emit
}

// containment says which of the table's marks contain e. It is asked once per transaction and table.
func (t *TableFilter[E, P]) containment(e E) containment {
	if t.seen != 0 && t.last == e {
		return t.seen
	}
	t.last, t.seen = e, byNone
	if t.unlike[0].Contains(e) {
		t.seen = byAll
	}
	for i := len(t.unlike) - 1; i > 0; i-- { // the first and the last mark differ most often
		if t.unlike[i].Contains(e) != (t.seen == byAll) {
			t.seen = bySome
			break
		}
	}
	return t.seen
}

// Bounds are the lower bounds of the table's chunks but the first, in order, for a server that is asked where keys lie: a key
// is in the chunk whose number is the count of bounds at or below it. Do not modify.
func (t *TableFilter[E, P]) Bounds() []Key { return t.bounds }

// JudgeAt decides about a change of a row in the chunk of that number, from 0. No such chunk: Drop.
func (t *TableFilter[E, P]) JudgeAt(e E, chunk int) Verdict {
	switch {
	case t == nil:
		return Drop
	case !t.behind:
		return Emit
	case chunk < 0 || chunk >= len(t.marks):
		return Drop
	}
	return verdict(t.marks[chunk], e)
}

// Truncate decides about a truncate of the table: Drop when every chunk was read behind it, Emit when all were read before,
// else Again.
func (t *TableFilter[E, P]) Truncate(e E) Verdict {
	switch {
	case t == nil:
		return Drop
	case !t.behind:
		return Emit
	}
	switch t.containment(e) {
	case byAll:
		return Drop
	case byNone:
		return Emit
	case bySome:
	}
	return Again
}
