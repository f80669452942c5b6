package progress

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/itest/mesh"
	"weir.dev/weir/pkg/position"
	"weir.dev/weir/pkg/progress"
	"weir.dev/weir/pkg/report"
)

// One job over two databases from its first chunk to a lost slot: what STIP-30's validation path asks for is looked at on the
// way, in real processes. Each part is a test of its own by name.
func TestProgressOfTwoDatabases(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.mesh.Submit(t, "shop", bothSpec)
	parts := []struct {
		name string
		run  func(*scene, *testing.T)
	}{
		{"snapshot with lazy chunks, then catch-up, then incremental", (*scene).copies},
		{"positions pass a checkpoint", (*scene).passes},
		{"what is exact can be computed again", (*scene).exact},
		{"an idle source is not stalled", (*scene).idles},
		{"no metric has a name or position of a database", (*scene).counts},
		{"a restore is told", (*scene).restores},
		{"what is exact can be computed again after a restore", (*scene).exact},
		{"dead letters that come are named", (*scene).fills},
		{"every panel of the dashboard has data", (*scene).draws},
		{"a blocked sink is named", (*scene).blocks},
		{"a source that is down is named", (*scene).loses},
		{"a subtask that an epoch waits for is named", (*scene).hangs},
		{"an epoch that is given up leaves the completed one", (*scene).skips},
		{"nobody for a role is named", (*scene).misses},
		{"a lost slot is named", (*scene).dropsSlot},
		{"records go with the job", (*scene).ends},
	}
	for _, p := range parts {
		if !t.Run(p.name, func(t *testing.T) {
			s.t = t
			p.run(s, t)
		}) {
			return
		}
	}
}

func (s *scene) copies(t *testing.T) {
	order := map[report.Lifecycle]int{report.Snapshot: 0, report.CatchUp: 1, report.Incremental: 2}
	at := map[string]int{}
	s.until(120*time.Second, "both logs to be followed", func(d *progress.Detail) error {
		for _, src := range d.Sources {
			n, known := order[src.Lifecycle]
			if known && n < at[src.Name] {
				t.Errorf("%s went back to %s", src.Name, src.Lifecycle)
			}
			at[src.Name] = max(n, at[src.Name])
		}
		return live(d)
	})
	s.mesh.CaughtUp(t, "shop")
	d := s.until(10*time.Second, "the counts to be complete", func(d *progress.Detail) error {
		e := d.Sources[0].Enumerator
		if e == nil {
			return errors.New("no enumerator")
		}
		if n, _ := e.Completed.Get(); n < 80 || e.Assignment != report.AllAssigned {
			return fmt.Errorf("%d splits, %s", n, e.Assignment)
		}
		return nil
	})
	if d.Sources[0].Lifecycle != report.Incremental {
		t.Error(d.Sources[0].Lifecycle)
	}
	copied := map[string]uint64{}
	for _, src := range d.Sources {
		for _, x := range src.Tables {
			copied[x.Name], _ = x.Copied.Get()
		}
	}
	want := map[string]uint64{"public.canary_a": rowsBefore, "public.canary_b": 900, "public.canary_empty": 0, "canary.goods_a": 900, "canary.goods_b": 900}
	for name, n := range want {
		if copied[name] != n {
			t.Errorf("%d rows of %s are copied, want %d: %v", copied[name], name, n, copied)
		}
	}
	if d.CDC.Sources[0].ConnectorType != "PostgreSQL-CDC" || d.CDC.Sources[1].ConnectorType != "MySQL-CDC" {
		t.Errorf("%s, %s", d.CDC.Sources[0].ConnectorType, d.CDC.Sources[1].ConnectorType)
	}
}

func (s *scene) passes(t *testing.T) {
	s.source("INSERT INTO canary_a SELECT i, 'n' FROM generate_series(20001, 20100) i")
	s.mysql("canary", "UPDATE goods_a SET v = 'n' WHERE id < 50")
	conn, err := s.pg.Connect(t.Context(), "postgres")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var text string
	if err := conn.QueryRow(t.Context(), "SELECT pg_current_wal_lsn()::text").Scan(&text); err != nil {
		t.Fatal(err)
	}
	boundary, err := position.ParseLSN(text)
	if err != nil {
		t.Fatal(err)
	}
	s.mesh.CaughtUp(t, "shop")
	s.until(15*time.Second, "the completed position to pass the boundary", func(d *progress.Detail) error {
		for _, v := range []report.Value[position.Position]{d.Sources[0].Readers[0].Consumed, d.Sources[0].Readers[0].Completed} {
			p, ok := v.Get()
			at, err := position.ParseLSN(p.Fields["lsn"])
			if !ok || err != nil || at < boundary || v.Accuracy() != report.Exact {
				return fmt.Errorf("%v (%s) is before %s", p, v.Accuracy(), boundary)
			}
		}
		return nil
	})
}

// quickly is how soon an idle job is known to have caught up, on a machine that has other work too.
const quickly = 2 * time.Second

func (s *scene) idles(t *testing.T) {
	least := time.Hour
	for range 3 {
		began := time.Now()
		s.mesh.CaughtUp(t, "shop")
		least = min(least, time.Since(began))
		t.Logf("caught up after %s", time.Since(began).Round(time.Millisecond))
	}
	if least > quickly {
		t.Errorf("an idle job is known to have caught up after %s at the earliest, want %s", least, quickly)
	}
	var first, last uint64
	s.until(20*time.Second, "reports of a source that rests", func(d *progress.Detail) error {
		for _, src := range d.Sources {
			if src.Health.State == report.Stalled || src.Health.State == report.NoProgress {
				t.Errorf("%s: %+v", src.Name, src.Health)
			}
		}
		last = d.Sources[0].Readers[0].Sequence
		if first == 0 {
			first = last
		}
		if last < first+4 {
			return fmt.Errorf("reports %d to %d", first, last)
		}
		return keeps(d)
	})
}

// keeps says what a detail lacks of how long the log is kept: PostgreSQL bounds it by size, MySQL by age.
func keeps(d *progress.Detail) error {
	for _, src := range d.Sources {
		r := src.Readers[0]
		if n, ok := r.RetainedBytes.Get(); !ok || n > 1<<30 || r.RetainedBytes.Accuracy() != report.BestEffort || r.Retention == nil {
			return fmt.Errorf("%s keeps %d (%s), %+v", r.Subtask, n, r.RetainedBytes.Accuracy(), r.Retention)
		}
		room, _ := r.Retention.Room.Get()
		switch {
		case src.Name == "pg" && (r.Retention.Bytes != keepLimit || room <= 0 || room > 2*keepLimit):
			return fmt.Errorf("%s: %+v, room %d", r.Subtask, *r.Retention, room)
		case src.Name == "my" && (r.Retention.Age != 30*24*time.Hour || r.Forecast.Outlook != progress.NotForeseen):
			return fmt.Errorf("%s: %+v, %+v", r.Subtask, *r.Retention, r.Forecast)
		}
	}
	return nil
}

func (s *scene) counts(t *testing.T) {
	text := s.mesh.Of(mesh.Progress)[0].Metrics(t.Context(), t)
	d, err := s.detail(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	secrets := []string{canary, "goods", "lsn=", "gtid="}
	for _, src := range d.Sources {
		for _, r := range src.Readers {
			if p, ok := r.Consumed.Get(); ok {
				for _, v := range p.Fields {
					secrets = append(secrets, v)
				}
			}
		}
	}
	for _, secret := range secrets {
		if len(secret) > 3 && strings.Contains(text, secret) {
			t.Errorf("%q is in the metrics", secret)
		}
	}
	for _, name := range []string{
		"weir_cdc_progress_report_age_seconds", "weir_cdc_progress_missing_reader_reports", "weir_cdc_progress_stale_reader_reports",
		"weir_cdc_progress_no_progress_duration_seconds", "weir_cdc_progress_lifecycle", "weir_cdc_progress_recovery_state",
	} {
		for _, kind := range []string{"PostgreSQL-CDC", "MySQL-CDC"} {
			if !strings.Contains(text, name+`{connector_type="`+kind) {
				t.Errorf("no %s of %s", name, kind)
			}
		}
	}
	var both [2]progress.Detail
	for i, m := range s.mesh.Of(mesh.Progress) {
		if err := ask(t.Context(), m, "/v1/jobs/shop", &both[i]); err != nil {
			t.Fatal(err)
		}
	}
	if both[0].Fence != both[1].Fence || both[0].Sources[0].Lifecycle != both[1].Sources[0].Lifecycle {
		t.Error("two instances differ")
	}
}

func (s *scene) restores(t *testing.T) {
	before, err := s.detail(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m := s.mesh.Of(mesh.CDCPostgres)[0]
	m.Kill()
	s.source("INSERT INTO canary_a SELECT i, 'r' FROM generate_series(30001, 30100) i")
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	d := s.until(60*time.Second, "the next attempt", func(d *progress.Detail) error {
		r := d.Sources[0].Readers
		if d.Fence == before.Fence || len(r) == 0 || r[0].Restore == nil {
			return fmt.Errorf("attempt %d, %d readers", d.Fence, len(r))
		}
		if _, ok := r[0].Restore.First.Get(); !ok {
			return errors.New("nothing behind the restore yet")
		}
		return live(d)
	})
	r := d.Sources[0].Readers[0]
	from, ok := r.Restore.Position.Get()
	first, _ := r.Restore.First.Get()
	if order, comparable := position.Compare(first, from); !ok || !comparable || order < 0 || r.Restore.Epoch < before.Epoch.Committed || d.Sources[0].Recovery.Epoch != r.Restore.Epoch {
		t.Errorf("restored from epoch %d at %v, first %v; %+v", r.Restore.Epoch, from, first, d.Sources[0].Recovery)
	}
	task := d.CDC.Sources[0].Tasks[0]
	if task.RestoredPosition == nil || task.ExecutionAttemptID != fmt.Sprint("attempt-", d.Fence) || d.CDC.Sources[0].Recovery.RestoredCheckpointID == nil {
		t.Errorf("%+v", task)
	}
}

func (s *scene) ends(t *testing.T) {
	s.until(30*time.Second, "what the attempt said to be gone", func(d *progress.Detail) error {
		if d.CDC != nil || len(d.Sources[0].Readers) > 0 {
			return errors.New("reports of a job that has failed are shown")
		}
		return nil
	})
}
