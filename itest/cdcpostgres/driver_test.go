package cdcpostgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/pkg/config"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/position"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/pkg/spec"
	cdcpostgres "weir.dev/weir/services/cdc-postgres"
)

// patience bounds every wait of these tests.
const patience = 30 * time.Second

// job is what the coordinator would know: the spec, and the states of the last durable epoch.
type job struct {
	pg       *harness.Postgres
	database string
	name     string
	life     string
	url      string
	source   spec.PostgresSource
	cut      int // MaxTransactionRows
	batch    int64
	fence    fence.Token
	epoch    epoch.ID
	enum     []byte
	reader   []byte
	onEmit   func(*rows.Batch) // called for every batch, may block
	discard  bool              // keep no rows
	onCut    func()            // called behind the reader's part of an epoch, may block
	onTell   func([]byte)      // called for every message between the halves
	logger   *slog.Logger      // nil logs nothing
	salt     string
	again    *source.Again
	applied  uint64 // how often the source was changed
}

// newJob describes a job on a fresh database.
func newJob(t *testing.T, pg *harness.Postgres, tables ...string) *job {
	t.Helper()
	name := strings.ToLower(strings.NewReplacer("/", "_", "-", "_").Replace(t.Name()))
	if len(name) > 50 {
		name = name[:50]
	}
	if err := pg.CreateDatabase(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	j := &job{
		pg: pg, database: name, name: "shop", life: fmt.Sprintf("%08x", time.Now().UnixNano()&0xffffffff),
		url: pg.URL(name), batch: 64 << 10, cut: 1_000_000,
		source: spec.PostgresSource{Readers: 1, Snapshot: spec.Snapshot{Mode: spec.SnapshotNever}, Heartbeat: config.Duration(time.Second)},
	}
	j.tables(t, tables...)
	return j
}

// tables adds patterns to those the job captures.
func (j *job) tables(t *testing.T, patterns ...string) {
	t.Helper()
	for _, s := range patterns {
		p, err := spec.ParseTablePattern(s)
		if err != nil {
			t.Fatal(err)
		}
		j.source.Tables = append(j.source.Tables, p)
	}
}

func (j *job) exec(t *testing.T, sql string) {
	t.Helper()
	if err := j.pg.Exec(t.Context(), j.database, sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func (j *job) config(vertex plan.VertexID) source.Config {
	logger := j.logger
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	return source.Config{
		Identity: source.Identity{Job: j.name, Life: j.life, Fence: j.fence, Subtask: plan.SubtaskID{Vertex: vertex}},
		Source:   spec.Source{Name: "db", Type: "postgres", Config: &j.source},
		Resolve:  j.resolve,
		Readers:  1, MaxTransactionRows: j.cut, Batch: j.batch, Segment: 16 << 20, Logger: logger,
	}
}

// resolve answers for the two references a source can have.
func (j *job) resolve(ref string) (string, error) {
	if ref == "${SALT}" {
		return j.salt, nil
	}
	return j.url, nil
}

// heard shows a message between the halves to who wants to see it.
func (j *job) heard(payload []byte) {
	if j.onTell != nil {
		j.onTell(payload)
	}
}

// attempt is one deployment: both halves, each in a loop like the subtask runtime's.
type attempt struct {
	job    *job
	enum   source.Enumerator
	reader source.Reader
	cancel context.CancelFunc
	done   sync.WaitGroup
	enums  *half
	reads  *half

	mu      sync.Mutex
	changed chan struct{}
	rows    []change
	batches int
	tables  map[string]*rows.Schema
	status  source.Status
	err     error
}

// open starts the next attempt, or returns why it cannot start.
func (j *job) open(ctx context.Context) (*attempt, error) {
	j.fence++
	cfg := j.config("db_enum")
	cfg.Restore, cfg.Again, cfg.Applied = j.enum, j.again, j.applied
	if j.reader != nil {
		cfg.Parts = [][]byte{j.reader}
	}
	var c cdcpostgres.Connector
	enum, err := c.OpenEnumerator(ctx, cfg)
	if err != nil {
		return nil, err
	}
	cfg = j.config("db")
	cfg.Restore = j.reader
	reader, err := c.OpenReader(ctx, cfg)
	if err != nil {
		return nil, errors.Join(err, enum.Close())
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	a := &attempt{
		job: j, enum: enum, reader: reader, cancel: cancel, enums: newHalf(), reads: newHalf(),
		changed: make(chan struct{}), tables: map[string]*rows.Schema{},
	}
	a.done.Go(func() { a.runEnumerator(ctx) })
	a.done.Go(func() { a.runReader(ctx) })
	return a, nil
}

func (j *job) start(t *testing.T) *attempt {
	t.Helper()
	a, err := j.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.stop)
	return a
}

func (a *attempt) runEnumerator(ctx context.Context) {
	for {
		a.enums.settle()
		if _, err := a.enum.Poll(ctx, directory{a}, a.enums.wake); err != nil {
			a.fail(err)
			return
		}
	}
}

// directory passes the enumerator's messages on to the reader.
type directory struct{ *attempt }

func (d directory) Tell(_ context.Context, _ int, payload []byte) error {
	d.job.heard(payload)
	d.reads.post(func() {
		if err := d.reader.Receive(payload); err != nil {
			d.fail(err)
		}
	})
	return nil
}

func (a *attempt) runReader(ctx context.Context) {
	for {
		a.reads.settle()
		status, err := a.reader.Poll(ctx, output{a}, a.reads.wake)
		if err != nil || ctx.Err() != nil {
			a.fail(err)
			return
		}
		a.update(func() { a.status = status })
	}
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

// output collects what the reader emits.
type output struct{ *attempt }

func (o output) Emit(_ context.Context, b rows.Batch, _ position.Position) error {
	if o.job.onEmit != nil {
		o.job.onEmit(&b)
	}
	if o.job.discard {
		return nil
	}
	s := b.Schema()
	got := make([]change, b.NumRows())
	for i := range got {
		c := change{table: string(s.Table()), version: s.Version(), meta: b.Meta(i), cells: make(map[string]string)}
		for col := range s.NumColumns() {
			text, ok := b.AppendText(nil, col, i)
			switch {
			case slices.Contains(b.Absent(i), uint16(col)):
				c.cells[s.Column(col).Name] = "ABSENT"
			case !ok:
				c.cells[s.Column(col).Name] = "NULL"
			default:
				c.cells[s.Column(col).Name] = string(text)
			}
		}
		got[i] = c
	}
	o.update(func() {
		o.rows = append(o.rows, got...)
		o.batches++
		o.tables[string(s.Table())] = s
	})
	return nil
}

// Tell passes the reader's messages on to the enumerator.
func (o output) Tell(_ context.Context, payload []byte) error {
	o.job.heard(payload)
	o.enums.post(func() {
		if err := o.enum.Receive(0, payload); err != nil {
			o.fail(err)
		}
	})
	return nil
}

// until waits until cond holds; it is asked after every change of the attempt.
func (a *attempt) until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	deadline := time.After(patience)
	for {
		a.mu.Lock()
		ok, changed, err := cond(), a.changed, a.err
		n := len(a.rows)
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

// takeEpoch snapshots both halves and makes the epoch durable; confirm commits it.
func (a *attempt) takeEpoch(t *testing.T) source.Cut {
	t.Helper()
	a.job.epoch++
	e := a.job.epoch
	var enum, cut source.Cut
	var errs [2]error
	done := make(chan struct{})
	a.enums.post(func() { // the barrier follows what the enumerator told before
		enum, errs[0] = a.enum.Snapshot(e)
		a.reads.post(func() {
			cut, errs[1] = a.reader.Snapshot(e)
			close(done)
			if a.job.onCut != nil {
				a.job.onCut()
			}
		})
	})
	select {
	case <-done:
	case <-time.After(patience):
		a.mu.Lock()
		defer a.mu.Unlock()
		t.Fatalf("no epoch: %v", a.err)
	}
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	a.job.enum, a.job.reader = enum.State, cut.State
	a.enums.post(func() { a.enum.Durable(e) })
	return cut
}

func (a *attempt) confirm(t *testing.T, cut source.Cut) {
	t.Helper()
	a.enums.call(t.Context(), func() { a.enum.Confirm(a.job.epoch, source.Cut{}) })
	a.reads.call(t.Context(), func() { a.reader.Confirm(a.job.epoch, cut) })
}

// stop ends the attempt as a crash would: nothing is confirmed, nothing released.
func (a *attempt) stop() {
	a.cancel()
	a.done.Wait()
	_ = a.reader.Close()
	_ = a.enum.Close()
}

// release ends the life of the job.
func release(t *testing.T, j *job) error {
	t.Helper()
	var c cdcpostgres.Connector
	return c.Release(t.Context(), j.config("db_enum"))
}
