package progress

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/itest/mesh"
	"weir.dev/weir/pkg/progress"
	"weir.dev/weir/pkg/report"
)

const (
	manyReaders = 64 // as many as a spec allows, each with the chunk that it reads and the next one
	manyRows    = 40_000
)

const manySpec = `apiVersion: weir/v1
job: shop
epoch: {interval: 500ms, timeout: 60s}
sources:
  pg: {type: postgres, url: "${PG_URL}", tables: ["public.*"], readers: %d, snapshot: {mode: initial, chunk_rows: 10}}
sinks:
  copy: {from: [pg], type: postgres, url: "${TARGET_URL}", schema: copy}
`

// A source with more readers than one process takes: what does not fit into an answer is counted and said to be left out, and a
// process that is slow delays its own reports only.
func TestManyReadersOnTwoNodes(t *testing.T) {
	t.Parallel()
	pg := harness.StartPostgres(t, harness.PostgresConfig{Settings: map[string]string{"max_connections": "250"}})
	s := &scene{t: t, pg: pg}
	if err := pg.CreateDatabase(t.Context(), "target"); err != nil {
		t.Fatal(err)
	}
	s.source("CREATE TABLE goods (id int PRIMARY KEY, v text)")
	s.source(fmt.Sprintf("INSERT INTO goods SELECT i, 'x' FROM generate_series(1, %d) i", manyRows))
	s.mesh = mesh.Start(t, mesh.Config{
		Roles: []mesh.Role{mesh.Coordinator, mesh.CDCPostgres, mesh.CDCPostgres, mesh.Sink, mesh.Progress},
		// A process that is frozen keeps its lease here, so that it is slow and not lost.
		Env: []string{"PG_URL=" + pg.URL("postgres"), "TARGET_URL=" + pg.URL("target"), "WEIR_COORDINATOR_LEASE=60s"},
	})
	s.mesh.Submit(t, "shop", fmt.Sprintf(manySpec, manyReaders))
	for _, p := range []struct {
		name string
		run  func(*scene, *testing.T)
	}{
		{"more than 100 active splits", (*scene).truncates},
		{"a slow node delays its own reports", (*scene).slows},
	} {
		if !t.Run(p.name, func(t *testing.T) {
			s.t = t
			p.run(s, t)
		}) {
			return
		}
	}
}

func (s *scene) truncates(t *testing.T) {
	d := s.until(60*time.Second, "more than 100 active splits", func(d *progress.Detail) error {
		e := d.Sources[0].Enumerator
		if e == nil {
			return errors.New("no enumerator")
		}
		if n, _ := e.Running.Get(); n <= report.MaxActive {
			return fmt.Errorf("%d splits are at readers", n)
		}
		return nil
	})
	e, c := d.Sources[0].Enumerator, d.CDC.Sources[0]
	if len(e.Active) != report.MaxActive || !e.ActiveTruncated || !c.DetailsTruncated {
		t.Errorf("%d splits are named, more: %t; details cut off: %t", len(e.Active), e.ActiveTruncated, c.DetailsTruncated)
	}
	if running, _ := e.Running.Get(); c.Summary.RunningSplitCount == nil || *c.Summary.RunningSplitCount != running {
		t.Errorf("%d splits are at readers, the summary says %v", running, c.Summary.RunningSplitCount)
	}
	rate := report.Value[uint64]{}
	d = s.until(120*time.Second, "the copy to end", func(d *progress.Detail) error {
		if r := d.Sources[0].Tables[0].Rate; r.Accuracy() != report.Unavailable {
			rate = r
		}
		if d.Sources[0].Lifecycle != report.Incremental {
			return errors.New(string(d.Sources[0].Lifecycle))
		}
		// The reader with the log says that the copy has ended; what the others have copied comes with reports of their own.
		table := d.Sources[0].Tables[0]
		if n, _ := table.Copied.Get(); n < manyRows {
			return fmt.Errorf("%d rows are copied, want %d", n, manyRows)
		}
		if n, known := table.Rate.Get(); known {
			return fmt.Errorf("%d rows a second of a table that is not copied any more", n)
		}
		return nil
	})
	if e, c := d.Sources[0].Enumerator, d.CDC.Sources[0]; e.ActiveTruncated || c.DetailsTruncated || len(c.Tasks) != manyReaders {
		t.Errorf("behind the copy: %d tasks, splits cut off: %t, details cut off: %t", len(c.Tasks), e.ActiveTruncated, c.DetailsTruncated)
	}
	if n, _ := d.Sources[0].Tables[0].Copied.Get(); n != manyRows {
		t.Errorf("%d rows are copied, want %d", n, manyRows)
	}
	if n, _ := rate.Get(); n == 0 || n > manyRows || rate.Accuracy() != report.BestEffort {
		t.Errorf("%d rows a second were copied (%s)", n, rate.Accuracy())
	}
}

// slows freezes the process without the log, for less than its lease.
func (s *scene) slows(t *testing.T) {
	s.mesh.CaughtUp(t, "shop")
	before := s.until(20*time.Second, "all reports", func(d *progress.Detail) error {
		if m := d.Sources[0].Summary; m.Fresh != manyReaders {
			return fmt.Errorf("%+v", m)
		}
		return nil
	})
	slow, here := "", make(map[string]uint64) // the sequences of the others' reports
	for _, r := range before.Sources[0].Readers {
		if !r.Copies {
			slow = other(s.mesh.Of(mesh.CDCPostgres), r.Node)
		}
	}
	for _, r := range before.Sources[0].Readers {
		if r.Node != slow {
			here[r.Subtask] = r.Sequence
		}
	}
	if len(here) == 0 || len(here) == manyReaders {
		t.Fatalf("%d of %d readers are on one node", len(here), manyReaders)
	}
	m := s.mesh.Node(slow)
	if err := m.Pause(); err != nil {
		t.Fatal(err)
	}
	defer m.Resume() //nolint:errcheck // it may go on already
	frozen := time.Now()
	d := s.until(30*time.Second, "the reports of the slow node to be old", func(d *progress.Detail) error {
		return s.split(d, here, manyReaders-len(here))
	})
	t.Logf("%d of %d reports are called old after %s", manyReaders-len(here), manyReaders, time.Since(frozen).Round(10*time.Millisecond))
	src := d.Sources[0]
	if src.Health.State != report.StaleReport || d.Fence != before.Fence {
		t.Errorf("%+v in attempt %d, before in %d", src.Health, d.Fence, before.Fence)
	}
	for _, r := range src.Readers {
		if old := r.Node == slow; r.Stale != old || !old && r.Sequence <= here[r.Subtask] {
			t.Errorf("%s on %s: stale %t, report %d after %d", r.Subtask, r.Node, r.Stale, r.Sequence, here[r.Subtask])
		}
	}
	if !strings.Contains(strings.Join(d.Why, "\n"), "s old") {
		t.Errorf("why: %q", d.Why)
	}
	if err := m.Resume(); err != nil {
		t.Fatal(err)
	}
	d = s.until(30*time.Second, "all reports again", func(d *progress.Detail) error { return s.split(d, here, 0) })
	if d.Fence != before.Fence {
		t.Errorf("attempt %d took the place of %d", d.Fence, before.Fence)
	}
}

// split says what a detail lacks to have so many old reports, none of a reader of here.
func (s *scene) split(d *progress.Detail, here map[string]uint64, stale int) error {
	src := d.Sources[0]
	for _, r := range src.Readers {
		if _, fresh := here[r.Subtask]; fresh && r.Stale {
			s.t.Errorf("the report of %s on %s is %s old", r.Subtask, r.Node, r.Age)
		}
	}
	if m := src.Summary; m.Stale != stale || m.Fresh != manyReaders-stale || m.Missing != 0 {
		return fmt.Errorf("%+v", m)
	}
	return nil
}

// other is the node that is not this one.
func other(of []*mesh.Member, node string) string {
	for _, m := range of {
		if m.Node != node {
			return m.Node
		}
	}
	return ""
}
