package cdcpostgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/pkg/cdc/halves"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/position"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/services/cdc-postgres/internal/catalog"
	"weir.dev/weir/services/cdc-postgres/internal/core"
	"weir.dev/weir/services/cdc-postgres/internal/pgoutput"
)

// kept keeps the batches a reader emits.
type kept struct {
	mu      sync.Mutex
	batches []*rows.Batch
}

func (k *kept) Emit(_ context.Context, b rows.Batch, _ position.Position) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.batches = append(k.batches, &b)
	return nil
}

func (*kept) Tell(context.Context, []byte) error { return nil }

// lines shows each batch as table@version: op(cells) ...
func (k *kept) lines() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var out []string
	for _, b := range k.batches {
		line := fmt.Sprintf("%s@%d:", b.Schema().Table(), b.Schema().Version())
		for i := range b.NumRows() {
			line += " " + b.Op(i).String() + "("
			for col := range b.Schema().NumColumns() {
				text, ok := b.AppendText(nil, col, i)
				switch {
				case slices.Contains(b.Absent(i), uint16(col)):
					text = []byte("?")
				case !ok:
					text = []byte("-")
				}
				line += string(text)
			}
			line += ")"
		}
		out = append(out, line)
	}
	return out
}

func (k *kept) want(t *testing.T, lines ...string) {
	t.Helper()
	if got := k.lines(); !slices.Equal(got, lines) {
		t.Errorf("batches are %q, want %q", got, lines)
	}
}

// pair is table t of an integer key and a text.
func pair(oid uint32, identity pgoutput.Identity, more ...pgoutput.RelationColumn) *described {
	columns := append([]pgoutput.RelationColumn{
		{Key: identity != pgoutput.IdentityNothing, Name: "k", TypeOID: 23, Modifier: -1},
		{Key: identity == pgoutput.IdentityFull, Name: "v", TypeOID: 25, Modifier: -1},
	}, more...)
	now := &catalog.Table{OID: oid, Width: len(columns), Storage: 1}
	for i, c := range columns {
		now.Columns = append(now.Columns, catalog.Column{Number: i + 1, Name: c.Name, TypeOID: c.TypeOID, Modifier: c.Modifier})
	}
	return describe(pgoutput.Relation{OID: oid, Schema: "s", Name: "t", Identity: identity, Columns: columns}, now, plain, "sources.db")
}

func push(t *testing.T, r *reader, w *wire) {
	t.Helper()
	it := w.item()
	if err := r.link.queue.Push(t.Context(), it, it.size()); err != nil {
		t.Fatal(err)
	}
}

func poll(t *testing.T, r *reader, out source.Output, wake <-chan struct{}) source.Status {
	t.Helper()
	s, err := r.Poll(t.Context(), out, wake)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func snapshot(t *testing.T, r *reader) core.Position {
	t.Helper()
	cut, err := r.Snapshot(1)
	if err != nil {
		t.Fatal(err)
	}
	if cut.Position.IsZero() {
		return core.Position{}
	}
	p, err := core.ParsePosition(cut.Position)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// readable is a wake channel with a token in it.
func readable() <-chan struct{} {
	c := make(chan struct{}, 1)
	c <- struct{}{}
	return c
}

// I4: a caller that wants a barrier gets it between two transactions, with every row of the first emitted and none of
// the second; the wish is not forgotten when it comes in the middle of one.
func TestPollEndsBetweenTransactions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestReader(t, core.Position{End: 50}, source.Config{MaxTransactionRows: 1000})
		w := (&wire{}).begin(100, 1).table(pair(1, 'd')).row('I', 1, tuple('N', "1", "a")).commit(100, 110)
		w.begin(120, 2).row('I', 1, tuple('N', "2", "b")).commit(120, 130)
		push(t, r, w)
		if ok, err := r.next(); !ok || err != nil { // the wish comes when the chunk is being read
			t.Fatal(err)
		}
		var out kept
		if s := poll(t, r, &out, readable()); !s.Input {
			t.Error("rows are not input")
		}
		out.want(t, "s.t@1: insert(1a)")
		if p := snapshot(t, r); p != (core.Position{End: 110}) {
			t.Errorf("position is %v", p)
		}
		wake := make(chan struct{}, 1)
		half := (&wire{}).begin(140, 3).row('I', 1, tuple('N', "3", "c"))
		push(t, r, half)
		time.AfterFunc(time.Second, func() {
			out.want(t, "s.t@1: insert(1a)", "s.t@1: insert(2b) insert(3c)")
			wake <- struct{}{}
		})
		time.AfterFunc(time.Minute, func() { push(t, r, (&wire{}).commit(140, 150)) })
		began := time.Now()
		poll(t, r, &out, wake)
		if p, took := snapshot(t, r), time.Since(began); took != time.Minute || p != (core.Position{End: 150}) {
			t.Errorf("Poll ended after %s at %v, in the middle of a transaction", took, p)
		}
	})
}

// Input is told as soon as a transaction may be cut, once per epoch, however much of it is at hand: an idle job's epochs are
// rare.
func TestInputIsToldAmidATransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestReader(t, core.Position{End: 50}, source.Config{MaxTransactionRows: 2, Batch: 1 << 10})
		batch := strings.Repeat("a", 2<<10)
		push(t, r, (&wire{}).begin(100, 1).table(pair(1, 'd')).row('I', 1, tuple('N', "1", batch)))
		for _, id := range []string{"2", "3", "4", "5"} {
			push(t, r, (&wire{}).row('I', 1, tuple('N', id, batch)))
		}
		var out counter
		if s := poll(t, r, &out, nil); !s.Input || out.rows != 2 {
			t.Errorf("status is %+v behind %d rows", s, out.rows)
		}
		if s := poll(t, r, &out, nil); !s.Input || out.rows != 5 { // the epoch is on its way
			t.Errorf("status is %+v behind %d rows", s, out.rows)
		}
	})
}

// A row waits at most the linger for others, also inside a transaction.
func TestLinger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestReader(t, core.Position{End: 50}, source.Config{})
		push(t, r, (&wire{}).begin(100, 1).table(pair(1, 'd')).row('I', 1, tuple('N', "1", "a")))
		began := time.Now()
		var out kept
		time.AfterFunc(time.Second, func() {
			out.want(t, "s.t@1: insert(1a)")
			push(t, r, (&wire{}).commit(100, 110))
		})
		poll(t, r, &out, nil)
		if took := time.Since(began); took != time.Second {
			t.Errorf("Poll took %s", took)
		}
	})
}

// Keepalives and transactions without a captured row move the position and are not input.
func TestNothingNewIsNotInput(t *testing.T) {
	t.Parallel()
	r := newTestReader(t, core.Position{End: 50}, source.Config{})
	push(t, r, (&wire{}).begin(100, 1).table(&described{relation: pgoutput.Relation{OID: 9}}).row('I', 9, tuple('N', "1")).commit(100, 110).keepalive(200))
	var out kept
	if s := poll(t, r, &out, nil); s.Input {
		t.Error("a row that is not captured is input")
	}
	if p := snapshot(t, r); p != (core.Position{End: 200}) {
		t.Errorf("position is %v", p)
	}
	out.want(t)
}

// Log without rows asks for an epoch once the server keeps too much of it.
func TestMuchLogIsInput(t *testing.T) {
	t.Parallel()
	r := newTestReader(t, core.Position{End: 50}, source.Config{})
	snapshot(t, r)
	var out kept
	for _, x := range []struct {
		at   position.LSN
		want bool
	}{{50 + longestUncut, false}, {50 + longestUncut + 1, true}, {50 + longestUncut + 2, true}} {
		push(t, r, (&wire{}).keepalive(x.at))
		if s := poll(t, r, &out, nil); s.Input != x.want {
			t.Errorf("input is %t at %d", s.Input, x.at)
		}
	}
	snapshot(t, r)
	push(t, r, (&wire{}).keepalive(50+2*longestUncut))
	if s := poll(t, r, &out, nil); s.Input {
		t.Error("input behind the cut")
	}
}

// A changed table is a new schema version behind the rows of the old one; a repeated description is nothing new.
func TestSchemaVersionsKeepTheOrder(t *testing.T) {
	t.Parallel()
	r := newTestReader(t, core.Position{End: 50}, source.Config{})
	wider := pair(1, 'd', pgoutput.RelationColumn{Name: "n", TypeOID: 23, Modifier: -1})
	w := (&wire{}).begin(100, 1).table(pair(1, 'd')).row('I', 1, tuple('N', "1", "a")).table(pair(1, 'd')).row('I', 1, tuple('N', "2", "b"))
	w.table(wider).row('I', 1, tuple('N', "3", "c", "7")).commit(100, 110)
	push(t, r, w)
	var out kept
	poll(t, r, &out, nil)
	out.want(t, "s.t@1: insert(1a) insert(2b)", "s.t@2: insert(3c7)")
}

// What an update becomes depends on how much of the old row the log carries.
func TestUpdates(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before bool
		row    [][]byte
		full   bool
		want   string
	}{
		"nothing old":             {false, [][]byte{tuple('N', "1", unchanged)}, false, "update_after(1?)"},
		"nothing old, before":     {true, [][]byte{tuple('N', "1", "b")}, false, "update_before(1?) update_after(1b)"},
		"key changed":             {true, [][]byte{tuple('K', "1", null), tuple('N', "2", unchanged)}, false, "delete(1?) insert(2?)"},
		"key sent, not changed":   {false, [][]byte{tuple('K', "1", null), tuple('N', "1", null)}, false, "update_after(1-)"},
		"whole row":               {false, [][]byte{tuple('O', "1", "a"), tuple('N', "1", unchanged)}, true, "update_before(1a) update_after(1a)"},
		"whole row, before":       {true, [][]byte{tuple('O', "1", "a"), tuple('N', "1", "b")}, true, "update_before(1a) update_after(1b)"},
		"whole row without a key": {false, [][]byte{tuple('O', "1", "a"), tuple('N', "2", "b")}, true, "update_before(1a) update_after(2b)"},
	} {
		r := newTestReader(t, core.Position{End: 50}, source.Config{})
		r.opened.source.Before = c.before
		identity := pgoutput.IdentityDefault
		if c.full {
			identity = pgoutput.IdentityFull
		}
		push(t, r, (&wire{}).begin(100, 1).table(pair(2, identity)).row('U', 2, c.row...).commit(100, 110))
		var out kept
		poll(t, r, &out, nil)
		if got := out.lines(); !slices.Equal(got, []string{"s.t@1: " + c.want}) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// What cannot be read stops the reader only when a row of it has to be emitted.
func TestUnreadableTable(t *testing.T) {
	t.Parallel()
	broken := &described{relation: pgoutput.Relation{OID: 1}, captured: true, err: fault.New(fault.PGSchemaChanged, "sources.db", "renamed")}
	old := (&wire{}).begin(30, 1).table(broken).row('I', 1, tuple('N', "1")).commit(30, 40).keepalive(60)
	r := newTestReader(t, core.Position{End: 50}, source.Config{})
	push(t, r, old)
	var out kept
	poll(t, r, &out, nil)
	push(t, r, (&wire{}).begin(100, 2).row('I', 1, tuple('N', "1")).commit(100, 110))
	_, err := r.Poll(t.Context(), &out, nil)
	if fault.CodeOf(err) != fault.PGSchemaChanged {
		t.Errorf("error is %v", err)
	}
}

func TestMalformedLogStopsTheReader(t *testing.T) {
	t.Parallel()
	for name, w := range map[string]*wire{
		"row of an unknown relation": (&wire{}).begin(100, 1).row('I', 5, tuple('N', "1")),
		"row too wide":               (&wire{}).begin(100, 1).table(pair(1, 'd')).row('I', 1, tuple('N', "1", "a", "b")),
		"old row too narrow":         (&wire{}).begin(100, 1).table(pair(1, 'd')).row('D', 1, tuple('K', "1")),
		"cell of another type":       (&wire{}).begin(100, 1).table(pair(1, 'd')).row('I', 1, tuple('N', "secret", "a")),
		"row outside a transaction":  (&wire{}).table(pair(1, 'd')).row('I', 1, tuple('N', "1", "a")),
		"unknown message":            (&wire{}).data([]byte{'?'}),
	} {
		r := newTestReader(t, core.Position{End: 50}, source.Config{})
		push(t, r, w)
		_, err := r.Poll(t.Context(), &kept{}, nil)
		f, ok := errors.AsType[*fault.Error](err)
		if !ok || f.Code != fault.PGDecode {
			t.Errorf("%s: error is %v", name, err)
			continue
		}
		if slices.Contains([]string{f.Why, f.Error(), f.Text()}, "secret") {
			t.Errorf("%s: the error shows a value: %v", name, err)
		}
	}
}

// A drain ends before the first transaction behind its end.
func TestDrainEndsBetweenTransactions(t *testing.T) {
	t.Parallel()
	r := newTestReader(t, core.Position{End: 50}, source.Config{})
	if err := r.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.link.end.fix(120)
	w := (&wire{}).begin(100, 1).table(pair(1, 'd')).row('I', 1, tuple('N', "1", "a")).commit(100, 110)
	w.begin(120, 2).row('I', 1, tuple('N', "2", "b")).commit(120, 130)
	push(t, r, w)
	var out kept
	if s := poll(t, r, &out, nil); !s.Drained {
		t.Error("not drained")
	}
	out.want(t, "s.t@1: insert(1a)")
	if p := snapshot(t, r); p != (core.Position{End: 110}) {
		t.Errorf("position is %v", p)
	}
}

// An end that the first transaction to arrive lies behind is told at once: nothing may ever follow.
func TestDrainIsPassedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestReader(t, core.Position{End: 50}, source.Config{})
		if err := r.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.link.end.fix(90)
		if s := poll(t, r, &kept{}, nil); s.Drained {
			t.Error("drained before the end was seen")
		}
		push(t, r, (&wire{}).begin(100, 1).table(pair(1, 'd')).row('I', 1, tuple('N', "1", "a")).commit(100, 110))
		var out kept
		if s := poll(t, r, &out, nil); !s.Drained {
			t.Error("not drained")
		}
		out.want(t)
	})
}

// A reader without the log is drained when the enumerator has no more chunks for it.
func TestReaderWithoutTheLog(t *testing.T) {
	t.Parallel()
	cfg := source.Config{}
	cfg.Subtask.Index = 1
	r := newTestReader(t, core.Position{}, cfg)
	r.tracker = nil
	if s := poll(t, r, &kept{}, readable()); s.Drained || s.Input {
		t.Errorf("status is %+v", s)
	}
	if cut, err := r.Snapshot(epoch.ID(1)); err != nil || !cut.Position.IsZero() {
		t.Errorf("cut is %+v, %v", cut, err)
	}
	if err := r.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := poll(t, r, &kept{}, readable()); s.Drained {
		t.Error("drained although chunks may follow")
	}
	if err := r.Receive([]byte{halves.TellOver}); err != nil {
		t.Fatal(err)
	}
	if s := poll(t, r, &kept{}, readable()); !s.Drained {
		t.Error("not drained")
	}
}
