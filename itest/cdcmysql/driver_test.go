package cdcmysql

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/position"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/pkg/spec"
	cdcmysql "weir.dev/weir/services/cdc-mysql"
)

// half is one side of a source, in a loop of its own.
type half struct {
	wake  chan struct{}
	mu    sync.Mutex
	calls []func() error
}

func newHalf() *half { return &half{wake: make(chan struct{}, 1)} }

// post has f run in the half's loop, behind what was posted before.
func (h *half) post(f func() error) {
	h.mu.Lock()
	h.calls = append(h.calls, f)
	h.mu.Unlock()
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// settle runs what was posted.
func (h *half) settle() error {
	select {
	case <-h.wake:
	default:
	}
	h.mu.Lock()
	calls := h.calls
	h.calls = nil
	h.mu.Unlock()
	var errs []error
	for _, f := range calls {
		errs = append(errs, f())
	}
	return errors.Join(errs...)
}

// change is a row as it was emitted, its cells as SQL text.
type change struct {
	op    rows.Op
	table string
	cells map[string]string
}

// String is "op table col=text ..."; null cells read NULL, those that no type holds their text in brackets.
func (c change) String() string {
	var b strings.Builder
	b.WriteString(c.op.String() + " " + c.table)
	names := make([]string, 0, len(c.cells))
	for n := range c.cells {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		b.WriteString(" " + n + "=" + c.cells[n])
	}
	return b.String()
}

// attempt is a source with one reader in this process, committed epoch after epoch.
type attempt struct {
	enum   source.Enumerator
	reader source.Reader
	enums  *half
	reads  *half
	cancel context.CancelFunc
	done   sync.WaitGroup
	over   sync.Once

	store *heap

	// Of the last epoch: its states, and how many rows it has. An order that the next attempt gets.
	enumState, readState []byte
	covered              int
	again                *source.Again

	mu      sync.Mutex
	changed chan struct{}
	rows    []change
	schemas []*rows.Schema
	taken   int // epochs
	err     error
}

// start opens a source of tables of a server, as its administrator.
func start(t *testing.T, server *harness.MySQL, mode spec.SnapshotMode, tables ...string) *attempt {
	t.Helper()
	a, err := open(t, server, mode, tables...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func open(t *testing.T, server *harness.MySQL, mode spec.SnapshotMode, tables ...string) (*attempt, error) {
	t.Helper()
	return resume(t, server, nil, mode, tables...)
}

// resume goes on from the last epoch of another attempt, which is over.
func resume(t *testing.T, server *harness.MySQL, last *attempt, mode spec.SnapshotMode, tables ...string) (*attempt, error) {
	t.Helper()
	return openSource(t, server, last, &spec.MySQLSource{Readers: 1, Snapshot: spec.Snapshot{Mode: mode, ChunkRows: 100}}, tables...)
}

// openSource opens a source of tables, from the last epoch of another attempt if there is one.
func openSource(t *testing.T, server *harness.MySQL, last *attempt, c *spec.MySQLSource, tables ...string) (*attempt, error) {
	t.Helper()
	store := newHeap()
	if last != nil {
		store = last.store
	}
	return openOver(t, server, last, store, c, tables...)
}

// openOver does so over a store.
func openOver(t *testing.T, server *harness.MySQL, last *attempt, objects *heap, c *spec.MySQLSource, tables ...string) (*attempt, error) {
	t.Helper()
	return openURL(t, server.URL(""), last, objects, c, tables...)
}

// openURL does so of a server that is reached by a URL.
func openURL(t *testing.T, url string, last *attempt, objects *heap, c *spec.MySQLSource, tables ...string) (*attempt, error) {
	t.Helper()
	for _, s := range tables {
		p, err := spec.ParseTablePattern(s)
		if err != nil {
			t.Fatal(err)
		}
		c.Tables = append(c.Tables, p)
	}
	life := rand.Text()
	config := func(vertex plan.VertexID) source.Config {
		return source.Config{
			Identity: source.Identity{Job: "shop", Life: life, Fence: 1, Subtask: plan.SubtaskID{Vertex: vertex}},
			Source:   spec.Source{Name: "db", Type: "mysql", Config: c},
			Resolve: func(ref string) (string, error) {
				if ref == "${SALT}" {
					return "pepper", nil
				}
				return url, nil
			},
			Readers: 1, MaxTransactionRows: 1_000_000, Batch: 64 << 10, Logger: slog.New(slog.DiscardHandler),
			Store: objects, Segment: segment,
		}
	}
	var connector cdcmysql.Connector
	restored := config("db_enum")
	if last != nil {
		restored.Restore, restored.Parts, restored.Again = last.enumState, [][]byte{last.readState}, last.again
	}
	enum, err := connector.OpenEnumerator(t.Context(), restored)
	if err != nil {
		return nil, err
	}
	reader, err := connector.OpenReader(t.Context(), config("db"))
	if err != nil {
		return nil, errors.Join(err, enum.Close())
	}
	ctx, cancel := context.WithCancel(context.Background())
	a := &attempt{enum: enum, reader: reader, enums: newHalf(), reads: newHalf(), changed: make(chan struct{}), store: objects}
	done := &a.done
	a.cancel = cancel
	loop := func(h *half, poll func() error) {
		for ctx.Err() == nil {
			if err := errors.Join(h.settle(), poll()); err != nil {
				a.fail(err)
				return
			}
		}
	}
	done.Go(func() {
		loop(a.enums, func() error { _, err := enum.Poll(ctx, directory{a}, a.enums.wake); return err })
	})
	done.Go(func() {
		loop(a.reads, func() error { _, err := reader.Poll(ctx, output{a}, a.reads.wake); return err })
	})
	done.Go(func() { a.epochs(ctx) })
	t.Cleanup(a.stop)
	return a, nil
}

// stop ends the attempt as a crash would.
func (a *attempt) stop() {
	a.over.Do(func() {
		a.cancel()
		a.done.Wait()
		_ = a.reader.Close()
		_ = a.enum.Close()
	})
}

// epochs takes an epoch every few milliseconds and commits it.
func (a *attempt) epochs(ctx context.Context) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for n := epoch.ID(1); ; n++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		done := make(chan struct{})
		a.enums.post(func() error { // the barrier follows what the enumerator told before
			enum, err := a.enum.Snapshot(n)
			a.reads.post(func() error {
				read, err := a.reader.Snapshot(n)
				a.mu.Lock()
				a.enumState, a.readState, a.covered = enum.State, read.State, len(a.rows)
				a.mu.Unlock()
				a.store.name(n, enum.Objects, read.Objects)
				close(done)
				return err
			})
			return err
		})
		select {
		case <-done:
			a.update(func() { a.taken++ })
			a.enums.post(func() error { a.enum.Confirm(n, source.Cut{}); return nil })
		case <-ctx.Done():
			return
		}
	}
}

type directory struct{ *attempt }

func (d directory) Tell(_ context.Context, _ int, payload []byte) error {
	d.reads.post(func() error { return d.reader.Receive(payload) })
	return nil
}

type output struct{ *attempt }

func (o output) Tell(_ context.Context, payload []byte) error {
	o.enums.post(func() error { return o.enum.Receive(0, payload) })
	return nil
}

func (o output) Emit(_ context.Context, b rows.Batch, _ position.Position) error {
	s := b.Schema()
	got := make([]change, b.NumRows())
	for i := range got {
		c := change{op: b.Op(i), table: string(s.Table()), cells: make(map[string]string)}
		for col := range s.NumColumns() {
			text, ok := b.AppendText(nil, col, i)
			if special, is := b.SpecialText(col, i); is {
				text, ok = []byte("["+special+"]"), true
			}
			if !ok {
				text = []byte("NULL")
			}
			c.cells[s.Column(col).Name] = string(text)
		}
		got[i] = c
	}
	o.update(func() {
		o.rows = append(o.rows, got...)
		o.schemas = append(o.schemas, s)
	})
	return nil
}

func (a *attempt) update(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f()
	close(a.changed)
	a.changed = make(chan struct{})
}

func (a *attempt) fail(err error) {
	a.update(func() {
		if a.err == nil && !errors.Is(err, context.Canceled) {
			a.err = err
		}
	})
}

// take waits for n rows and removes them.
func (a *attempt) take(t *testing.T, n int) []change {
	t.Helper()
	a.until(t, fmt.Sprintf("%d rows", n), func() bool { return len(a.rows) >= n })
	a.mu.Lock()
	defer a.mu.Unlock()
	got := a.rows[:n:n]
	a.rows = a.rows[n:]
	return got
}

// settle waits until an epoch has what was taken.
func (a *attempt) settle(t *testing.T) {
	t.Helper()
	a.mu.Lock()
	before := a.taken
	a.mu.Unlock()
	a.until(t, "epochs", func() bool { return a.taken > before+1 })
}

// until waits until cond holds; it is asked after every change of the attempt.
func (a *attempt) until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	deadline := time.After(patience)
	for {
		a.mu.Lock()
		ok, changed, err, n := cond(), a.changed, a.err, len(a.rows)
		a.mu.Unlock()
		if ok {
			return
		}
		if err != nil {
			t.Fatalf("waiting for %s: the attempt failed: %v", what, err)
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("waiting for %s: nothing in %s; %d rows so far", what, patience, n)
		}
	}
}

// failure waits for the attempt to fail and returns why.
func (a *attempt) failure(t *testing.T) error {
	t.Helper()
	deadline := time.After(patience)
	for {
		a.mu.Lock()
		err, changed := a.err, a.changed
		a.mu.Unlock()
		if err != nil {
			return err
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("the attempt did not fail in %s", patience)
		}
	}
}

// run executes statements one by one, as the administrator.
func run(t *testing.T, server *harness.MySQL, statements ...string) {
	t.Helper()
	conn, err := server.Connect(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, sql := range statements {
		if _, err := conn.Execute(sql); err != nil {
			t.Fatalf("%v\n%.300s", err, sql)
		}
	}
}
