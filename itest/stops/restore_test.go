package stops

import (
	"fmt"
	"strings"
	"testing"
)

const upsertSpec = sourceSpec + `  copy: {from: [db], type: postgres, url: "${TARGET_URL}", schema: copy, writers: %d}
`

// A job goes back to a savepoint after it went on, with 4, 6 and 3 readers, and ends up equal to its source: the log was kept by a slot
// of the savepoint's own, from which the job gets one of its own each time.
func TestRestoreAtOtherParallelism(t *testing.T) {
	s := begin(t, fmt.Sprintf(upsertSpec, 4, 1))
	quiet := s.load(t)
	s.Must(t, "job", "savepoint", name, "early") // the copy may be under way
	s.wantSlots(t, 2)
	s.CaughtUp(t, name)
	s.Must(t, "job", "savepoint", name, "later")
	s.wantSlots(t, 3)
	s.wantRefused(t, "WEIR-CLI-015", "job", "savepoint", name, "later")
	s.wantRefused(t, "WEIR-CLI-015", "job", "savepoint", name, "No Name")

	for _, c := range []struct {
		savepoint        string
		readers, writers int
	}{{"later", 6, 2}, {"early", 3, 3}, {"later", 1, 1}} {
		s.CaughtUp(t, name)
		s.Must(t, "job", "suspend", name)
		s.Must(t, "job", "restore", name, c.savepoint, "--spec", s.File(t, "other.yaml", fmt.Sprintf(upsertSpec, c.readers, c.writers)))
		s.CaughtUp(t, name)
	}
	quiet()
	s.CaughtUp(t, name)
	s.wantSame(t)
	s.Verify(t, name)
	s.wantSlots(t, 3) // what the job left behind on its ways is gone

	list := s.Must(t, "savepoints", "list", name).Stdout
	if !strings.Contains(list, "early") || !strings.Contains(list, "later") {
		t.Errorf("savepoints list says\n%s", list)
	}
	s.Must(t, "savepoints", "delete", name, "early")
	s.wantSlots(t, 2)
	s.wantRefused(t, "WEIR-CLI-015", "savepoints", "delete", name, "early")
	s.Must(t, "job", "cancel", name, "--yes")
	s.wantSlots(t, 0)
}

// A sink that keeps every change would get some twice: that is refused, and done when it is wanted. The job is shown as
// at_least_once until it has passed what comes again.
func TestRestoreThatRepeats(t *testing.T) {
	s := begin(t, fmt.Sprintf(copySpec, 1, 1))
	s.CaughtUp(t, name)
	s.Must(t, "job", "savepoint", name, "a")
	s.exec(t, "UPDATE t SET n = n + 1 WHERE id <= 5")
	s.CaughtUp(t, name)
	s.Must(t, "job", "suspend", name)
	f := s.wantRefused(t, "WEIR-CLI-015", "job", "restore", name, "a")
	if f.Where != "sinks.log" || !strings.Contains(f.Remedy, "--repeat") {
		t.Errorf("refused by %+v", f)
	}
	s.wantPhase(t, "SUSPENDED")
	s.Must(t, "job", "restore", name, "a", "--repeat")
	s.CaughtUp(t, name)
	s.wantSame(t)
	var n int
	if err := s.connect(t.Context(), t, "target").QueryRow(t.Context(), "SELECT count(*) FROM log.t WHERE _op = 4").Scan(&n); err != nil {
		t.Fatal(err)
	}
	if n != 10 {
		t.Errorf("the changelog has %d updates, want 5 twice", n)
	}
	if g := s.guarantee(t); g.Effective != "exactly_once" {
		t.Errorf("behind what came again: %+v", g)
	}
	s.Verify(t, name)
}

type guarantee struct{ Asked, Effective, Why string }

func (s *scene) guarantee(t *testing.T) guarantee {
	t.Helper()
	var st struct{ Guarantee guarantee }
	if err := s.Must(t, "status", name, "--json").Data(&st); err != nil {
		t.Fatal(err)
	}
	return st.Guarantee
}
