package generator

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/position"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/pkg/spec"
)

func settings(t *rapid.T) spec.GeneratorSource {
	c := spec.GeneratorSource{
		Rows:            rapid.Int64Range(1, 400).Draw(t, "rows"),
		Tables:          rapid.IntRange(1, 3).Draw(t, "tables"),
		Columns:         rapid.IntRange(1, 9).Draw(t, "columns"),
		Keys:            rapid.Int64Range(0, 20).Draw(t, "keys"),
		Seed:            rapid.Uint64().Draw(t, "seed"),
		TransactionRows: rapid.IntRange(1, 9).Draw(t, "per"),
		Readers:         rapid.IntRange(1, 3).Draw(t, "readers"),
	}
	if c.Keys > 0 {
		c.Deletes = rapid.IntRange(0, 50).Draw(t, "deletes")
		c.Readers = min(c.Readers, int(c.Keys))
	}
	return c
}

// G2, G3: whatever the settings, the readers together make every index once, a key has one reader, and its changes are
// a possible history.
func TestSequenceIsAPossibleHistory(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		cfg := settings(t)
		q := NewSequence(cfg)
		seen := make(map[int64]bool)
		owner := make(map[string]int)
		alive := make(map[string]bool)
		for r := range cfg.Readers {
			for n := range q.Len(r) {
				row := q.At(r, n)
				if seen[row.Index] {
					t.Fatalf("index %d made twice", row.Index)
				}
				seen[row.Index] = true
				key := fmt.Sprint(row.Table, "/", row.Key)
				if o, ok := owner[key]; ok && o != r {
					t.Fatalf("key %s belongs to readers %d and %d", key, o, r)
				}
				owner[key] = r
				if (row.Op == rows.OpInsert) == alive[key] {
					t.Fatalf("%s of key %s, which is there: %t", row.Op, key, alive[key])
				}
				alive[key] = row.Op != rows.OpDelete
			}
		}
		if int64(len(seen)) != cfg.Rows {
			t.Fatalf("%d rows made, want %d", len(seen), cfg.Rows)
		}
	})
}

// collector takes what a reader emits and cuts it into rows of text.
type collector struct{ rows []string }

func (c *collector) Emit(_ context.Context, b rows.Batch, _ position.Position) error {
	for i := range b.NumRows() {
		c.rows = append(c.rows, string(b.AppendRowJSON(nil, i)))
	}
	return nil
}
func (c *collector) Tell(context.Context, []byte) error { return nil }

func open(t *testing.T, cfg spec.GeneratorSource, index int, restore []byte) source.Reader {
	t.Helper()
	r, err := Connector{}.OpenReader(t.Context(), source.Config{
		Identity: source.Identity{Subtask: plan.SubtaskID{Vertex: "g", Index: index}},
		Source:   spec.Source{Name: "g", Type: Name, Config: &cfg}, Readers: cfg.Readers,
		MaxTransactionRows: 1 << 20, Batch: 4 << 10, Restore: restore, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// G1: a reader restored at any cut makes exactly the rows that follow it, byte for byte but for _seq.
func TestRestoredReaderGoesOn(t *testing.T) {
	t.Parallel()
	cfg := spec.GeneratorSource{
		Rows: 5000, Tables: 2, Columns: 9, Keys: 40, Deletes: 20, Seed: 7, TransactionRows: 5, Readers: 2,
	}
	all := readAll(t, open(t, cfg, 1, nil), -1)
	for _, polls := range []int{1, 2, 5} {
		first := open(t, cfg, 1, nil)
		head := readAll(t, first, polls)
		cut, err := first.Snapshot(1)
		if err != nil || cut.Torn {
			t.Fatalf("cut %+v, %v", cut, err)
		}
		tail := readAll(t, open(t, cfg, 1, cut.State), -1)
		if len(head)+len(tail) != len(all) || len(head) == 0 || len(tail) == 0 {
			t.Fatalf("%d rows before the cut and %d after, want %d in all", len(head), len(tail), len(all))
		}
		for i, row := range append(head, tail...) {
			if row != all[i] {
				t.Fatalf("row %d is\n%s\nwant\n%s", i, row, all[i])
			}
		}
	}
}

// readAll polls until the reader has nothing more, or a number of times.
func readAll(t *testing.T, r source.Reader, polls int) []string {
	t.Helper()
	var c collector
	wake := make(chan struct{}, 1)
	for polls != 0 {
		polls--
		before := len(c.rows)
		wake <- struct{}{}
		if _, err := r.Poll(t.Context(), &c, wake); err != nil {
			t.Fatal(err)
		}
		if len(c.rows) == before {
			break
		}
		select {
		case <-wake:
		default:
		}
	}
	return c.rows
}

func TestDrainEndsAtASafePoint(t *testing.T) {
	t.Parallel()
	r := open(t, spec.GeneratorSource{Tables: 1, Columns: 1, Seed: 1, TransactionRows: 7, Readers: 1}, 0, nil)
	rows := readAll(t, r, 3)
	if err := r.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	var c collector
	st, err := r.Poll(t.Context(), &c, nil)
	if err != nil || !st.Drained || len(c.rows) != 0 {
		t.Errorf("poll after drain: %+v, %d rows, %v", st, len(c.rows), err)
	}
	if len(rows)%7 != 0 {
		t.Errorf("%d rows emitted: a transaction of 7 was cut", len(rows))
	}
}

func TestRateIsKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := open(t, spec.GeneratorSource{Rate: 1000, Tables: 1, Columns: 1, Seed: 1, TransactionRows: 1, Readers: 1}, 0, nil)
		var c collector
		for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
			if _, err := r.Poll(t.Context(), &c, nil); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(c.rows); n < 9_900 || n > 10_000 {
			t.Errorf("%d rows in 10 s at 1000 rows/s", n)
		}
	})
}

func BenchmarkPoll(b *testing.B) {
	cfg := spec.GeneratorSource{Tables: 1, Columns: 9, Keys: 100_000, Seed: 1, TransactionRows: 10, Readers: 1}
	r, err := Connector{}.OpenReader(b.Context(), source.Config{
		Source: spec.Source{Config: &cfg}, Batch: 256 << 10, MaxTransactionRows: 1 << 20,
	})
	if err != nil {
		b.Fatal(err)
	}
	c := &counter{}
	for b.Loop() {
		if _, err := r.Poll(b.Context(), c, nil); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(c.rows)/b.Elapsed().Seconds(), "rows/s")
}

type counter struct{ rows int }

func (c *counter) Emit(_ context.Context, b rows.Batch, _ position.Position) error {
	c.rows += b.NumRows()
	return nil
}
func (c *counter) Tell(context.Context, []byte) error { return nil }
