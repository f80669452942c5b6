package stops

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/itest/harness"
)

// The targets know more than the bus: it is put back to an older copy, then it is lost and the job is submitted to an empty one. Each
// time the job stops before it has written anything, says what to do, and goes on from where the targets are: nothing is lost and
// nothing comes twice, in a changelog neither.
func TestAdopt(t *testing.T) {
	text := fmt.Sprintf(copySpec, 1, 1)
	s := begin(t, text)
	s.CaughtUp(t, name)
	s.wantRefused(t, "WEIR-CLI-009", "job", "adopt", name)
	older := filepath.Join(t.TempDir(), "jetstream")
	s.allDown(t, func() { harness.CopyDir(t, older, s.Store()) })
	s.exec(t, "INSERT INTO t SELECT i FROM generate_series(100000, 100500) i; UPDATE t SET n = n + 1 WHERE id <= 20")
	s.CaughtUp(t, name)

	s.allDown(t, func() { harness.CopyDir(t, s.Store(), older) })
	s.goesOn(t, "WEIR-JOB-002", "WEIR-PG-017") // the slot has been told to forget what only the targets have
	s.Must(t, "job", "suspend", name)          // what was taken over is whole: it goes on from an epoch of its own
	s.Must(t, "job", "resume", name)
	s.exec(t, "UPDATE t SET n = n + 1 WHERE id <= 10")
	s.CaughtUp(t, name)
	s.wantSame(t)
	s.wantSlots(t, 1)

	s.allDown(t, func() {
		if err := os.RemoveAll(s.Store()); err != nil {
			t.Fatal(err)
		}
	})
	s.Must(t, "job", "submit", s.File(t, "again.yaml", text))
	s.goesOn(t, "WEIR-JOB-003")
	s.exec(t, "DELETE FROM t WHERE id <= 10")
	s.wantExact(t)
	s.wantSlots(t, 1)
	s.wantRefused(t, "WEIR-CLI-009", "job", "adopt", name)
	s.Must(t, "job", "suspend", name)
	s.wantRefused(t, "WEIR-CLI-016", "job", "adopt", name)
	s.Must(t, "job", "cancel", name, "--yes")
	s.wantSlots(t, 0)
}

// goesOn waits until the job has stopped with one of the codes, changes something meanwhile, and adopts it.
func (s *scene) goesOn(t *testing.T, codes ...string) {
	t.Helper()
	s.stopped(t, codes...)
	s.exec(t, "UPDATE t SET n = n + 1 WHERE id BETWEEN 11 AND 30; INSERT INTO t SELECT max(id) + 1 FROM t")
	s.Must(t, "job", "adopt", name)
	s.wantExact(t)
}

// stopped waits until the job has stopped with one of the codes, whose remedy is to adopt it.
func (s *scene) stopped(t *testing.T, codes ...string) {
	t.Helper()
	harness.Await(t, 60*time.Second, "the job to stop", func(context.Context) error {
		a := s.Ask(t, "status", name, "--json")
		var st struct {
			Phase  string
			Reason struct{ Code, Remedy string }
		}
		if a.Exit != 0 {
			return fmt.Errorf("no status yet: %s", a)
		}
		if err := a.Data(&st); err != nil {
			return err
		}
		if st.Phase != "FAILED" {
			return fmt.Errorf("the job is %s: %s", st.Phase, st.Reason.Code)
		}
		if !slices.Contains(codes, st.Reason.Code) || !strings.Contains(st.Reason.Remedy, "`weir job adopt "+name) {
			t.Fatalf("stopped by %+v, want one of %q", st.Reason, codes)
		}
		return nil
	})
}

// allDown kills every process, does something to the bus's files, and starts them again.
func (s *scene) allDown(t *testing.T, do func()) {
	t.Helper()
	for _, m := range s.Members {
		m.Kill()
	}
	s.NATS.Kill()
	do()
	if err := s.NATS.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, m := range s.Members {
		if err := m.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// A slot of the user's own that has been moved past rows that no target has: nobody goes on from it unless the user answers for it.
func TestAdoptWithASlotThatWasMoved(t *testing.T) {
	text := strings.Replace(fmt.Sprintf(copySpec, 1, 1), "heartbeat: 1s", "slot: mine, heartbeat: 1s", 1)
	s := begin(t, text, "SELECT pg_create_logical_replication_slot('mine', 'pgoutput')")
	s.CaughtUp(t, name)
	s.exec(t, "UPDATE t SET n = n + 1 WHERE id <= 20") // the targets' first rows of the log
	s.CaughtUp(t, name)
	s.allDown(t, func() {
		if err := os.RemoveAll(s.Store()); err != nil {
			t.Fatal(err)
		}
		s.exec(t, "INSERT INTO t SELECT i FROM generate_series(100000, 100500) i")
		s.exec(t, "SELECT pg_replication_slot_advance('mine', pg_current_wal_lsn())")
	})
	s.Must(t, "job", "submit", s.File(t, "again.yaml", text))
	s.stopped(t, "WEIR-JOB-003")
	s.Ask(t, "job", "adopt", name) // it may return before the source has looked
	s.stopped(t, "WEIR-PG-031")
	s.Must(t, "job", "adopt", name, "--trust-slot")
	s.CaughtUp(t, name)
}
