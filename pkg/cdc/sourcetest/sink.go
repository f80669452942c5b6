package sourcetest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"weir.dev/weir/pkg/rows"
)

// deleted stands among the values of a row for its deletion.
const deleted int64 = -1

// sink takes rows strictly and remembers what every row was.
type sink struct {
	rows map[place]Row // by the cells of the key
	seen map[named][]int64
}

// place is a row of a table by its key, named one by its n.
type place struct {
	table rows.TableID
	key   string
}

type named struct {
	table rows.TableID
	n     int64
}

func newSink() *sink { return &sink{rows: make(map[place]Row), seen: make(map[named][]int64)} }

func (s *sink) clone() *sink {
	c := &sink{rows: maps.Clone(s.rows), seen: maps.Clone(s.seen)}
	for k, v := range c.seen {
		c.seen[k] = slices.Clip(v) // an append copies
		s.seen[k] = c.seen[k]
	}
	return c
}

// apply takes a batch. An error names the row that cannot be.
func (s *sink) apply(b *rows.Batch) error {
	id := b.Schema().Table()
	n, okN := b.Schema().Lookup("n")
	val, okVal := b.Schema().Lookup("val")
	if !okN || !okVal {
		return fmt.Errorf("table %s: columns n and val are missing", id)
	}
	c := changes{sink: s, keyed: len(b.Schema().Key()) > 0, n: n, val: val}
	key := b.Schema().Key()
	if !c.keyed {
		key = []int{n}
	}
	for i := range b.NumRows() {
		var at place
		at.table = id
		for _, k := range key {
			text, ok := b.AppendText(nil, k, i)
			if !ok {
				return fmt.Errorf("table %s: %s without a key", id, b.Op(i))
			}
			at.key += string(text) + "\x00"
		}
		if err := c.change(b, i, at); err != nil {
			return err
		}
	}
	if c.before != nil {
		return fmt.Errorf("table %s: a row before an update at the end of a batch", id)
	}
	return nil
}

// changes are those of one batch. Without a key an update is known by the row before it.
type changes struct {
	*sink

	keyed  bool
	n, val int
	before *Row // of the update whose next row is to come
}

func (s *changes) change(b *rows.Batch, i int, at place) error {
	was, there := s.rows[at]
	say := func(what string) error {
		return fmt.Errorf("table %s, transaction %d, ordinal %d: %s of %q, %s (n %d, value %d)", at.table, b.Txn(i), b.Ord(i), b.Op(i), at.key, what, was.N, was.Val)
	}
	if s.before != nil && b.Op(i) != rows.OpUpdateAfter {
		return say("behind a row before an update")
	}
	switch op := b.Op(i); op {
	case rows.OpUpdateBefore:
		switch {
		case s.keyed:
			return nil
		case !there:
			return say("which is not there")
		}
		s.before = &was
		delete(s.rows, at)
		return nil
	case rows.OpTruncate:
		return say("which no writer did")
	case rows.OpDelete:
		if !there {
			return say("which is not there")
		}
		delete(s.rows, at)
		s.see(at.table, was.N, deleted)
		return nil
	case rows.OpRead, rows.OpInsert, rows.OpUpdateAfter:
		if op == rows.OpUpdateAfter && !s.keyed && s.before == nil {
			return say("without the row before")
		}
		if there == (op != rows.OpUpdateAfter || !s.keyed) {
			return say("which is there: " + strconv.FormatBool(there))
		}
	default:
		return say("an unknown operation")
	}
	r, err := row(b, i, s.n, s.val)
	if err != nil {
		return fmt.Errorf("table %s: %w", at.table, err)
	}
	if there && r.N != was.N {
		return say(fmt.Sprintf("with n %d", r.N))
	}
	if s.before != nil && s.before.N != r.N {
		s.see(at.table, s.before.N, deleted)
	}
	s.before = nil
	s.rows[at] = r
	s.see(at.table, r.N, r.Val)
	return nil
}

func (s *sink) see(table rows.TableID, n, v int64) {
	k := named{table, n}
	s.seen[k] = append(s.seen[k], v)
}

func row(b *rows.Batch, i, n, val int) (r Row, err error) {
	for column, into := range map[int]*int64{n: &r.N, val: &r.Val} {
		text, ok := b.AppendText(nil, column, i)
		if !ok {
			return r, fmt.Errorf("%s without column %s", b.Op(i), b.Schema().Column(column).Name)
		}
		if *into, err = strconv.ParseInt(string(text), 10, 64); err != nil {
			return r, fmt.Errorf("column %s: %w", b.Schema().Column(column).Name, err)
		}
	}
	return r, nil
}

// content returns a table's rows by n.
func (s *sink) content(table rows.TableID) map[int64]int64 {
	all := make(map[int64]int64)
	for at, r := range s.rows {
		if at.table == table {
			all[r.N] = r.Val
		}
	}
	return all
}

// differs says in words where the rows of a table are not as wanted; empty when they are.
func (s *sink) differs(table rows.TableID, want map[int64]int64) string {
	got := s.content(table)
	if maps.Equal(got, want) {
		return ""
	}
	var all []int64
	for n := range got {
		all = append(all, n)
	}
	for n := range want {
		all = append(all, n)
	}
	slices.Sort(all)
	for _, n := range slices.Compact(all) {
		g, okG := got[n]
		w, okW := want[n]
		if g != w || okG != okW {
			return fmt.Sprintf("table %s: %d rows, want %d; first: row %d is %d (there %t), want %d (there %t), values seen %v",
				table, len(got), len(want), n, g, okG, w, okW, s.seen[named{table, n}])
		}
	}
	return ""
}

// exact reports a row whose values are not the last of those it was given, in order and complete.
func (s *sink) exact(written map[named][]int64) error {
	for k, got := range s.seen {
		all := written[k]
		if len(got) > len(all) || !slices.Equal(all[len(all)-len(got):], got) {
			return fmt.Errorf("table %s, row %d: values %v came, %v were written", k.table, k.n, got, all)
		}
	}
	return nil
}
