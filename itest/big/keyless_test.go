package big

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/itest/mesh"
	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/plan"
)

const keylessSpec = `apiVersion: weir/v1
job: big
epoch: {interval: 200ms}
restart: {backoff: 100ms, cap: 1000}
sources:
  db:
    type: postgres
    url: ${SOURCE_URL}
    tables: ["public.bare"]
sinks:
  log: {from: [db], type: postgres, url: "${TARGET_URL}", schema: log, mode: changelog}
`

// What the source may have in MiB, whatever the size of a table or of a transaction, and what a sink may, which folds pieces
// of 16 MiB.
const (
	memoryLimit = 300
	sinkLimit   = 400
)

// A table without a key is read by one statement under one mark, and goes through the state stream: it is copied once while
// writers go on, also when the source is killed while it emits, and the source's memory is bounded.
func TestKeylessTable(t *testing.T) {
	rows := 80_000 // of about 1 KB
	if large() {
		rows = 400_000
	}
	s := setting(t)
	s.exec(t, s.source, "CREATE TABLE bare (n bigint NOT NULL, v text NOT NULL); ALTER TABLE bare REPLICA IDENTITY FULL; ALTER TABLE bare ALTER v SET STORAGE PLAIN")
	s.exec(t, s.source, "INSERT INTO bare SELECT g, repeat(md5(g::text), 32) FROM generate_series(1, $1::bigint) g", rows)
	finish := s.insert(t, rows)
	victim := s.Of(mesh.CDCPostgres)[0]
	before := watch(t, victim.PID())
	s.Submit(t, job, keylessSpec)

	records := s.Records(t)
	most := 0
	harness.Await(t, 2*time.Minute, "a spool that is emitted in part", func(ctx context.Context) error {
		head, err := records.Now(ctx, job)
		if err != nil || head.Durable == nil {
			return errors.Join(err, errors.New("no epoch is durable"))
		}
		m, err := records.Manifest(ctx, job, head.Durable.Ref)
		if err != nil {
			return err
		}
		n := len(m.Subtasks[plan.SubtaskID{Vertex: "db"}].State.Objects)
		if most = max(most, n); n == most {
			return fmt.Errorf("%d segments of %d are still to be emitted", n, most)
		}
		return nil
	})
	victim.Kill()
	if _, err := victim.Wait(t.Context()); err == nil {
		t.Fatal("the source ended by itself")
	}
	_, peak := before.end(t)
	t.Logf("%d rows; resident memory of the source until it was killed: peak %.0f MiB", rows, peak)
	if peak > memoryLimit {
		t.Errorf("the source had %.0f MiB", peak)
	}
	head, err := records.Now(t.Context(), job)
	if err != nil {
		t.Fatal(err)
	}
	m, err := records.Manifest(t.Context(), job, head.Durable.Ref)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(m.Subtasks[plan.SubtaskID{Vertex: "db"}].State.Objects); n == 0 {
		t.Error("the durable epoch names no segment: the kill came too late to mean anything")
	} else {
		t.Logf("%d segments were still to be emitted", n)
	}
	if err := victim.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	after := watch(t, victim.PID())
	s.Must(t, "status", job, "--wait-for", "caught-up", "--timeout", "300s")
	s.released(t, records, head.Life)
	total := finish()
	s.CaughtUp(t, job)
	if _, peak := after.end(t); peak > memoryLimit {
		t.Errorf("the source had %.0f MiB after its restart", peak)
	}
	s.exactlyOnce(t, total)
	s.Verify(t, job)
}

// insert writes rows behind those that are there, until the returned function is called, which tells how many there are then.
func (s *scene) insert(t *testing.T, from int) (finish func() (total int)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	var failed error
	n := from
	done.Go(func() {
		for harness.Pause(ctx, 5*time.Millisecond) == nil {
			if err := s.source.Exec(context.WithoutCancel(ctx), "postgres", "INSERT INTO bare VALUES ($1::bigint, 'written meanwhile')", n+1); err != nil {
				failed = err
				return
			}
			n++
		}
	})
	t.Cleanup(cancel)
	return func() int {
		cancel()
		done.Wait()
		if failed != nil {
			t.Fatal(failed)
		}
		return n
	}
}

// exactlyOnce holds the changelog against the rows 1 to total, each of which was written once.
func (s *scene) exactlyOnce(t *testing.T, total int) {
	t.Helper()
	const sql = `SELECT format('%s rows, %s of them different, from %s to %s', count(*), count(DISTINCT n), min(n), max(n)) FROM log.bare`
	want := fmt.Sprintf("%d rows, %[1]d of them different, from 1 to %[1]d", total)
	if got := ask[string](t, s.target, sql); got != want {
		t.Errorf("at the target are %s, want %s", got, want)
	}
	const sum = "SELECT sum(hashtextextended(v, n))::text FROM "
	if got, want := ask[string](t, s.target, sum+"log.bare"), ask[string](t, s.source, sum+"bare"); got != want {
		t.Errorf("the rows at the target sum up to %s, those at the source to %s", got, want)
	}
}

// released waits until the bus holds nothing of the reader's any more. Epochs have to go on meanwhile, since the newest ten
// manifests keep what they name.
func (s *scene) released(t *testing.T, records *mesh.Records, life string) {
	t.Helper()
	harness.Await(t, time.Minute, "the segments to be removed from the bus", func(ctx context.Context) error {
		objects, err := records.Bus.ListState(ctx, bus.StateLifePrefix(life))
		if err != nil {
			return err
		}
		for _, o := range objects {
			_, _, _, subtask, _, err := bus.ParseStateSubject(o)
			if err != nil {
				return err
			}
			if subtask.Vertex == "db" {
				return fmt.Errorf("%d objects, %s among them", len(objects), o)
			}
		}
		return nil
	})
}
