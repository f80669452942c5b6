package progress

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"weir.dev/weir/itest/mesh"
	"weir.dev/weir/pkg/position"
	"weir.dev/weir/pkg/progress"
)

// named is how soon a cause has to be named.
const named = 10 * time.Second

// cause is what keeps the job from moving.
type cause struct {
	kind  progress.FindingKind
	about string // what it is about begins with it
	alert string // the rule that is to see it
	// watched says that only who looks more than once can know of it.
	watched bool
}

// in says whether a status names the cause.
func (c cause) in(s *progress.Status) error {
	for _, f := range s.Findings {
		if f.Kind == c.kind && !f.Note && strings.HasPrefix(f.About, c.about) {
			return nil
		}
	}
	return fmt.Errorf("no %s of %q in %q", c.kind, c.about, s.Why)
}

// names waits until the progress service names a cause, and fails the test when that took longer than it may. The command
// line, which asks the records itself, has to say the same then, and the alert has to wait or fire.
func (s *scene) names(since time.Time, c cause) {
	s.t.Helper()
	s.until(6*named, "the cause to be named", func(d *progress.Detail) error { return c.in(&d.Status) })
	took := time.Since(since)
	s.t.Logf("%s of %q was named after %s", c.kind, c.about, took.Round(10*time.Millisecond))
	if took > named {
		s.t.Errorf("%s of %q was named after %s, want at most %s", c.kind, c.about, took, named)
	}
	if !c.watched {
		var told progress.Status
		if err := s.mesh.Must(s.t, "status", "shop", "--json").Data(&told); err != nil {
			s.t.Fatal(err)
		}
		if err := c.in(&told); err != nil {
			s.t.Errorf("weir status: %v", err)
		}
	}
	s.alerts.active(s.t, c.alert)
}

func (s *scene) fills(t *testing.T) {
	if err := s.target.Exec(t.Context(), "postgres", "ALTER TABLE copy.canary_b ADD CONSTRAINT good CHECK (v <> 'bad')"); err != nil {
		t.Fatal(err)
	}
	s.source("INSERT INTO canary_b SELECT i, 'bad' FROM generate_series(50001, 50020) i")
	s.names(time.Now(), cause{kind: progress.LettersFill, about: "copy", alert: "WeirDeadLetters", watched: true})
	s.mesh.CaughtUp(t, "shop")
	if st := s.mesh.Status(t, "shop"); st.Sinks[0].Dead != 20 {
		t.Errorf("%d dead letters, want 20", st.Sinks[0].Dead)
	}
}

func (s *scene) blocks(t *testing.T) {
	conn, err := s.target.Connect(t.Context(), "postgres")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	tx, err := conn.BeginTx(t.Context(), pgx.TxOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "LOCK TABLE copy.canary_a IN ACCESS EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	s.source("INSERT INTO canary_a SELECT i, 'b' FROM generate_series(40001, 40100) i")
	s.names(time.Now(), cause{kind: progress.SinkBlocked, about: "copy", alert: "WeirSinkBlocked"})
	a := s.mesh.Ask(t, "status", "shop", "--wait-for", "caught-up", "--timeout", "1s", "--json")
	f, err := a.Fault()
	if err != nil || a.Exit != 5 || !strings.Contains(f.Why, "sink copy") {
		t.Errorf("exit %d, %s, %v", a.Exit, f.Why, err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.mesh.CaughtUp(t, "shop")
}

func (s *scene) loses(t *testing.T) {
	if err := s.pg.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.names(time.Now(), cause{kind: progress.SourceDown, about: "shop", alert: "WeirSourceDown"})
	if err := s.pg.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.mesh.CaughtUp(t, "shop")
}

// hangs gives the writer of files a disk that takes nothing more: in the place of the files that it is going to open there
// are pipes that nobody reads, and more is written than a pipe holds.
func (s *scene) hangs(t *testing.T) {
	fence := s.mesh.Status(t, "shop").Fence // of the record: the service's view may still be of the attempt before
	for n := range 200 {
		if err := syscall.Mkfifo(s.pipe(fence, n), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.source("INSERT INTO canary_a SELECT i, repeat('h', 1000) FROM generate_series(60001, 60500) i")
	s.names(time.Now(), cause{kind: progress.EpochWaits, about: "lake-0", alert: "WeirEpochsDoNotEnd"})
}

// skips looks at the epoch that waits for the writer, until it is given up: what is completed stays that of the epoch before.
func (s *scene) skips(t *testing.T) {
	during := s.until(10*time.Second, "an epoch in flight that readers have passed", func(d *progress.Detail) error {
		r := d.Sources[0].Readers[0]
		if _, ok := r.Candidate.Get(); !ok || d.Epoch.Committed != d.Epoch.Durable {
			return fmt.Errorf("candidate %s, epochs %+v", r.Candidate.Accuracy(), d.Epoch)
		}
		return nil
	})
	n, given := during.Epoch.Committed, during.Epoch.InFlight
	completed, _ := during.Sources[0].Readers[0].Completed.Get()
	candidate, _ := during.Sources[0].Readers[0].Candidate.Get()
	if order, ok := position.Compare(candidate, completed); !ok || order <= 0 || given <= n {
		t.Errorf("epoch %d in flight at %v, %d is completed at %v", given, candidate, n, completed)
	}
	after := s.until(20*time.Second, "the epoch to be given up", func(d *progress.Detail) error {
		if d.Epoch.Skipped == 0 {
			return fmt.Errorf("epochs %+v", d.Epoch)
		}
		return nil
	})
	r, task := after.Sources[0].Readers[0], after.CDC.Sources[0].Tasks[0]
	now, _ := r.Completed.Get()
	durable, _ := r.Durable.Get()
	if after.Epoch.Committed != n || after.Epoch.Durable != n || !now.Equal(completed) || !durable.Equal(completed) {
		t.Errorf("epoch %d is given up: %+v, completed at %v, durable at %v, before at %v", given, after.Epoch, now, durable, completed)
	}
	last := task.LastCompletedCheckpointPosition
	if last == nil || !position.New(last.Type, last.Values).Equal(completed) || after.Fence != during.Fence {
		t.Errorf("attempt %d, before %d: the last completed position is %v, want %v", after.Fence, during.Fence, last, completed)
	}
	var list progress.EpochList
	if err := ask(t.Context(), s.mesh.Of(mesh.Progress)[0], "/v1/jobs/shop/epochs", &list); err != nil {
		t.Fatal(err)
	}
	states := make(map[uint64]string)
	for _, e := range list.Epochs {
		states[e.Epoch] = e.State
	}
	if states[n] != "committed" || states[given] != "skipped" {
		t.Errorf("epoch %d is %q, %d is %q", n, states[n], given, states[given])
	}
	for i := range 200 {
		if err := os.Remove(s.pipe(during.Fence, i)); err != nil {
			t.Error(err)
		}
	}
}

// pipe is where the writer of an attempt opens its n-th file, should that be of canary_a.
func (s *scene) pipe(fence uint64, n int) string {
	return filepath.Join(s.lake, "public.canary_a", fmt.Sprintf(".open-0-%d-%d.jsonl.tmp", fence, n))
}

// misses ends the process whose writer hangs, and with it the last one that can write into a target.
func (s *scene) misses(t *testing.T) {
	m := s.mesh.Of(mesh.Sink)[0]
	m.Kill()
	s.names(time.Now(), cause{kind: progress.NoNode, about: "sink:postgres", alert: "WeirSourceDown"})
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.mesh.CaughtUp(t, "shop")
}

func (s *scene) dropsSlot(t *testing.T) {
	conn, err := s.pg.Connect(t.Context(), "postgres")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	s.until(30*time.Second, "the slot to be free", func(*progress.Detail) error {
		_, err := conn.Exec(t.Context(), "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE active_pid IS NOT NULL; SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots")
		return err
	})
	s.names(time.Now(), cause{kind: progress.SlotLost, about: "shop", alert: "WeirJobFailed"})
}
