package sinktest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/spec"
)

// model is what a target should show.
type model struct {
	mode   spec.Mode
	tables map[rows.TableID]*modelTable
	// images are all changes, where a target keeps them beside the rows.
	images *model
	// poisoned says that rows which are Poisonous do not get to the target.
	poisoned bool
}

type modelTable struct {
	current map[string]Row // upsert: by key
	history []Row          // other modes
	gone    Row            // upsert: the newest row that a delete has taken away
}

func newModel(mode spec.Mode) *model {
	return &model{mode: mode, tables: make(map[rows.TableID]*modelTable)}
}

func (m *model) clone() *model {
	c := newModel(m.mode)
	c.poisoned = m.poisoned
	if m.images != nil {
		c.images = m.images.clone()
	}
	for id, t := range m.tables {
		c.tables[id] = &modelTable{current: maps.Clone(t.current), history: slices.Clone(t.history)}
	}
	return c
}

// add applies a batch as the source sent it.
func (m *model) add(b *rows.Batch) {
	if m.images != nil {
		m.images.add(b)
	}
	t := m.tables[b.Schema().Table()]
	if t == nil {
		t = &modelTable{current: make(map[string]Row)}
		m.tables[b.Schema().Table()] = t
	}
	for i := range b.NumRows() {
		r := rowOf(b, i)
		if m.poisoned && r.Cells["amount"] == strconv.Itoa(Poisonous) {
			continue
		}
		switch m.mode {
		case spec.Changelog:
			t.history = append(t.history, r)
		case spec.Append:
			if r.Op == rows.OpRead || r.Op == rows.OpInsert || r.Op == rows.OpUpdateAfter {
				r.Op = 0
				t.history = append(t.history, r)
			}
		case spec.Upsert:
			t.upsert(r)
		}
	}
}

func (t *modelTable) upsert(r Row) {
	key, op := r.Cells[keyColumn], r.Op
	r.Op = 0
	switch op {
	case rows.OpTruncate:
		clear(t.current)
	case rows.OpDelete:
		t.gone = t.current[key]
		delete(t.current, key)
	case rows.OpUpdateBefore:
	case rows.OpRead, rows.OpInsert, rows.OpUpdateAfter:
		was := t.current[key]
		if op == rows.OpInsert {
			was = t.gone
		}
		for name, cell := range r.Cells {
			if cell == Absent {
				r.Cells[name] = was.Cells[name]
			}
		}
		t.current[key] = r
	}
}

func rowOf(b *rows.Batch, i int) Row {
	r := Row{Op: b.Op(i), Cells: make(map[string]string)}
	for c := range b.Schema().NumColumns() {
		name := b.Schema().Column(c).Name
		text, ok := b.AppendText(nil, c, i)
		switch {
		case ok:
			r.Cells[name] = string(text)
		case slices.Contains(b.Absent(i), uint16(c)):
			r.Cells[name] = Absent
		default:
			r.Cells[name] = Null
		}
	}
	return r
}

// text is a row for comparison: a column that is null is as good as one that is not there.
func (r Row) text() string {
	var b strings.Builder
	if r.Op != 0 {
		b.WriteString(r.Op.String() + " ")
	}
	for _, name := range slices.Sorted(maps.Keys(r.Cells)) {
		if r.Cells[name] != Null {
			fmt.Fprintf(&b, "%s=%s ", name, r.Cells[name])
		}
	}
	return b.String()
}

// diff compares what a reader saw with the model; empty when they agree. Rows of one key have an order, others have none.
func (m *model) diff(id rows.TableID, got []Row) string {
	var want []Row
	if t := m.tables[id]; t != nil {
		want = t.history
		if m.mode == spec.Upsert {
			want = slices.Collect(maps.Values(t.current))
		}
	}
	have, need := byKey(got), byKey(want)
	var out []string
	for _, key := range slices.Sorted(maps.Keys(need)) {
		if !slices.Equal(have[key], need[key]) {
			out = append(out, fmt.Sprintf("%s %s: have %q, want %q", id, key, have[key], need[key]))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(have)) {
		if need[key] == nil {
			out = append(out, fmt.Sprintf("%s %s: have %q, want none", id, key, have[key]))
		}
	}
	if len(out) > 5 {
		out = append(out[:5], fmt.Sprintf("and %d more keys", len(out)-5))
	}
	return strings.Join(out, "\n")
}

func byKey(all []Row) map[string][]string {
	m := make(map[string][]string)
	for _, r := range all {
		key := r.Cells[keyColumn]
		m[key] = append(m[key], r.text())
	}
	return m
}
