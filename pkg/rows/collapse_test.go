package rows_test

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"weir.dev/weir/pkg/rows"
)

// table is the state of a target, by id.
type table map[int64]cells

type cells struct{ note, price string }

const null = "\x00null"

// gone is where a table keeps the row it has just lost: a key change takes it up again.
const gone = -1

// apply is what a target does with one row, written without any collapsing: the oracle.
func (tb table) apply(t *rapid.T, b *rows.Batch, i int) {
	id := b.Column(0).(interface{ Value(int) int64 }).Value(i)
	switch b.Op(i) {
	case rows.OpTruncate:
		clear(tb)
	case rows.OpDelete:
		tb[gone] = tb[id]
		delete(tb, id)
	case rows.OpUpdateBefore:
	default:
		now, exists := tb[id]
		if b.Op(i) == rows.OpInsert {
			now, exists = tb[gone]
		}
		absent := b.Absent(i)
		if len(absent) > 0 && !exists {
			t.Fatalf("partial update of %d, which the target does not have", id)
		}
		for c, to := range map[uint16]*string{1: &now.note, 2: &now.price} {
			if slices.Contains(absent, c) {
				continue
			}
			v, ok := b.AppendText(nil, int(c), i)
			if *to = string(v); !ok {
				*to = null
			}
		}
		tb[id] = now
	}
}

// drawHistory makes rows a source can have written over an initial table: inserts of keys it lacks, the rest of keys it has.
func drawHistory(t *rapid.T, initial table) []row {
	have := make(map[int64]bool)
	for id := range initial {
		have[id] = true
	}
	var out []row
	for range rapid.IntRange(0, 60).Draw(t, "changes") {
		id := rapid.Int64Range(0, 7).Draw(t, "id")
		r := row{id: id, seq: uint64(len(out) + 1), note: text(rapid.StringN(0, 3, 9).Draw(t, "note"))}
		switch kind := rapid.IntRange(0, 19).Draw(t, "kind"); {
		case kind == 0:
			r.op = rows.OpTruncate
			clear(have)
		case !have[id]:
			r.op = rapid.SampledFrom([]rows.Op{rows.OpInsert, rows.OpRead}).Draw(t, "op")
			have[id] = true
		case kind < 3:
			to := rapid.Int64Range(0, 7).Draw(t, "to")
			if to == id || have[to] {
				continue
			}
			out = append(out, row{op: rows.OpDelete, id: id, seq: r.seq, note: cell{null: true}})
			r.op, r.id, r.seq, r.note = rows.OpInsert, to, r.seq+1, cell{absent: true}
			have[id], have[to] = false, true
		case kind < 6:
			r.op = rows.OpDelete
			r.note = cell{absent: rapid.Bool().Draw(t, "key only")}
			have[id] = false
		case kind < 9:
			out = append(out, row{op: rows.OpUpdateBefore, id: id, seq: r.seq, note: text("before")})
			r.op, r.seq = rows.OpUpdateAfter, r.seq+1
		case kind < 15:
			r.op, r.note = rows.OpUpdateAfter, cell{absent: true}
		default:
			r.op = rows.OpUpdateAfter
		}
		if r.op != rows.OpDelete && rapid.IntRange(0, 3).Draw(t, "special") == 0 {
			r.note.special = rapid.SampledFrom([]string{"NaN", "Infinity"}).Draw(t, "text")
		}
		out = append(out, r)
	}
	return out
}

// Applying the collapsed epoch gives the table that applying every row gives, and touches each key once.
func TestCollapseIsTheNetEffect(t *testing.T) {
	s := orders(t)
	rapid.Check(t, func(rt *rapid.T) {
		initial := make(table)
		for _, id := range rapid.SliceOfDistinct(rapid.Int64Range(0, 7), rapid.ID).Draw(rt, "initial") {
			initial[id] = cells{"old", "old"}
		}
		history := drawHistory(rt, initial)
		want, got := maps.Clone(initial), maps.Clone(initial)
		var batches []*rows.Batch
		for len(history) > 0 {
			n := rapid.IntRange(1, len(history)).Draw(rt, "batch")
			b := batch(t, s, history[:n]...)
			history = history[n:]
			batches = append(batches, b)
			for i := range n {
				want.apply(rt, b, i)
			}
		}
		out, err := rows.Collapse(batches...)
		if err != nil {
			rt.Fatal(err)
		}
		if out.Truncated {
			clear(got)
		}
		keys := make(map[int64]bool)
		moved := make(table)
		for _, b := range out.Moves {
			for i := range b.NumRows() {
				was, ok := got[b.Column(3).(interface{ Value(int) int64 }).Value(i)]
				if !ok {
					rt.Fatalf("the target has no row %s comes from", b.AppendRowJSON(nil, i))
				}
				if !slices.Equal(b.Absent(i), []uint16{1}) {
					rt.Fatalf("a move lacks %v", b.Absent(i))
				}
				price := null
				if v, ok := b.AppendText(nil, 2, i); ok {
					price = string(v)
				}
				id := b.Column(0).(interface{ Value(int) int64 }).Value(i)
				if keys[id] {
					rt.Fatalf("key %d twice in the result", id)
				}
				keys[id] = true
				moved[id] = cells{was.note, price}
			}
		}
		for part, list := range map[string][]*rows.Batch{"deletes": out.Deletes, "upserts": out.Upserts, "partials": out.Partials} {
			for _, b := range list {
				for i := range b.NumRows() {
					id := b.Column(0).(interface{ Value(int) int64 }).Value(i)
					if keys[id] {
						rt.Fatalf("key %d twice in the result", id)
					}
					keys[id] = true
					if (b.Op(i) == rows.OpDelete) != (part == "deletes") || (len(b.Absent(i)) > 0) != (part == "partials" || part == "deletes" && len(b.Absent(i)) > 0) {
						rt.Fatalf("%s have %s", part, b.AppendRowJSON(nil, i))
					}
					if part == "partials" && !slices.Equal(b.Absent(i), b.Absent(0)) {
						rt.Fatalf("partials of one batch lack %v and %v", b.Absent(i), b.Absent(0))
					}
					got.apply(rt, b, i)
				}
			}
		}
		maps.Copy(got, moved)
		delete(got, gone)
		delete(want, gone)
		if !maps.Equal(got, want) {
			rt.Fatalf("target has %v, want %v", got, want)
		}
	})
}

// O46, O42: the cases of the bug log by name.
func TestCollapseCases(t *testing.T) {
	s := orders(t)
	ins := func(seq uint64, note string) row { return row{rows.OpInsert, seq, 1, text(note)} }
	del := func(seq uint64) row { return row{rows.OpDelete, seq, 1, cell{null: true}} }
	upd := func(seq uint64, c cell) row { return row{rows.OpUpdateAfter, seq, 1, c} }
	for name, c := range map[string]struct {
		in                         []row
		deletes, upserts, partials []uint64
		note                       string
		truncated                  bool
	}{
		"insert, update":             {in: []row{ins(1, "a"), upd(2, text("b"))}, upserts: []uint64{2}, note: "b"},
		"insert, delete":             {in: []row{ins(1, "a"), del(2)}, deletes: []uint64{2}},
		"delete, insert":             {in: []row{del(1), ins(2, "b")}, upserts: []uint64{2}, note: "b"},
		"update twice":               {in: []row{upd(1, text("a")), upd(2, text("b"))}, upserts: []uint64{2}, note: "b"},
		"unchanged TOAST":            {in: []row{upd(1, cell{absent: true})}, partials: []uint64{1}},
		"insert, unchanged TOAST":    {in: []row{ins(1, "big"), upd(2, cell{absent: true})}, upserts: []uint64{2}, note: "big"},
		"two unchanged TOAST":        {in: []row{upd(1, cell{absent: true}), upd(2, cell{absent: true})}, partials: []uint64{2}},
		"delete, insert, unchanged":  {in: []row{del(1), ins(2, "new"), upd(3, cell{absent: true})}, upserts: []uint64{3}, note: "new"},
		"unchanged, delete":          {in: []row{upd(1, cell{absent: true}), del(2)}, deletes: []uint64{2}},
		"insert, truncate":           {in: []row{ins(1, "a"), {op: rows.OpTruncate, seq: 2}}, truncated: true},
		"insert, truncate, insert":   {in: []row{ins(1, "a"), {op: rows.OpTruncate, seq: 2}, ins(3, "c")}, truncated: true, upserts: []uint64{3}, note: "c"},
		"merge then truncate":        {in: []row{ins(1, "a"), upd(2, cell{absent: true}), {op: rows.OpTruncate, seq: 3}}, truncated: true},
		"update before is no change": {in: []row{{rows.OpUpdateBefore, 1, 1, text("a")}}},
	} {
		t.Run(name, func(t *testing.T) {
			var split []*rows.Batch // one batch per row: the result must not depend on batching
			for _, r := range c.in {
				split = append(split, batch(t, s, r))
			}
			for _, in := range [][]*rows.Batch{{batch(t, s, c.in...)}, split} {
				out, err := rows.Collapse(in...)
				if err != nil {
					t.Fatal(err)
				}
				if got := seqs(out.Deletes); !slices.Equal(got, c.deletes) {
					t.Errorf("deletes %v, want %v", got, c.deletes)
				}
				if got := seqs(out.Upserts); !slices.Equal(got, c.upserts) {
					t.Errorf("upserts %v, want %v", got, c.upserts)
				}
				if got := seqs(out.Partials); !slices.Equal(got, c.partials) {
					t.Errorf("partials %v, want %v", got, c.partials)
				}
				if out.Truncated != c.truncated {
					t.Errorf("truncated %v", out.Truncated)
				}
				for _, b := range out.Upserts {
					if got, _ := b.AppendText(nil, 1, 0); string(got) != c.note || b.HasAbsent() {
						t.Errorf("upsert %s, want note %q", b.AppendRowJSON(nil, 0), c.note)
					}
				}
			}
		})
	}
}

func seqs(batches []*rows.Batch) []uint64 {
	var out []uint64
	for _, b := range batches {
		for i := range b.NumRows() {
			out = append(out, b.Seq(i))
		}
	}
	return out
}

func TestCollapseRefuses(t *testing.T) {
	s := orders(t)
	other, err := rows.NewSchema(s.Table(), 2, s.Origin(), s.Columns())
	if err != nil {
		t.Fatal(err)
	}
	keyless, err := rows.NewSchema("log", 1, "", []rows.Column{{Name: "line", Type: rows.Of(rows.KindText)}})
	if err != nil {
		t.Fatal(err)
	}
	absent := cell{absent: true}
	for name, in := range map[string][]*rows.Batch{
		"two versions": {batch(t, s, row{rows.OpInsert, 1, 1, text("a")}), batch(t, other, row{rows.OpInsert, 2, 2, text("a")})},
	} {
		if _, err := rows.Collapse(in...); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	for name, in := range map[string][]row{
		"partial insert":       {{rows.OpInsert, 1, 1, absent}},
		"partial after delete": {{rows.OpDelete, 1, 1, absent}, {rows.OpUpdateAfter, 2, 1, absent}},
	} {
		if _, err := rows.Collapse(batch(t, s, in...)); !errors.Is(err, rows.ErrInconsistent) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := rows.NewCollapser(keyless); err == nil {
		t.Error("a table without a key was accepted")
	}
}
