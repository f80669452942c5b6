package stops

import (
	"context"
	"fmt"
	"testing"
	"time"

	"weir.dev/weir/itest/harness"
)

const copySpec = sourceSpec + `  copy: {from: [db], type: postgres, url: "${TARGET_URL}", schema: copy, writers: %d}
  log: {from: [db], type: postgres, url: "${TARGET_URL}", schema: log, mode: changelog}
`

// I15: a job is suspended while it is idle and while it is loaded, with the target up and with the target taking nothing; it
// rests behind a SAVEPOINT epoch, keeps its slot, and goes on without a row lost or repeated.
func TestSuspend(t *testing.T) {
	s := begin(t, fmt.Sprintf(copySpec, 2, 1))
	s.CaughtUp(t, name)
	stopAndGo := func(t *testing.T) {
		t.Helper()
		s.Must(t, "job", "suspend", name)
		s.wantPhase(t, "SUSPENDED")
		s.wantSlots(t, 1)
		var epochs []struct{ Kind string }
		if err := s.Must(t, "--json", "epochs", "list", name, "--limit", "1").Data(&epochs); err != nil || len(epochs) != 1 || epochs[0].Kind != "SAVEPOINT" {
			t.Errorf("the newest epochs are %+v, %v", epochs, err)
		}
		s.exec(t, "UPDATE t SET n = n + 1 WHERE id = 7") // while it rests
		s.Must(t, "job", "resume", name)
	}
	t.Run("idle", stopAndGo)
	quiet := s.load(t)
	t.Run("loaded", func(t *testing.T) {
		for range 3 {
			stopAndGo(t)
		}
	})
	t.Run("the target takes nothing", func(t *testing.T) {
		// A lock of somebody else's: commits wait, and the writers' rows are staged all the same, until max_uncommitted epochs wait.
		before := s.Status(t, name).Epoch
		conn := s.connect(t.Context(), t, "target")
		if _, err := conn.Exec(t.Context(), "BEGIN; LOCK TABLE copy.t IN ACCESS EXCLUSIVE MODE"); err != nil {
			t.Fatal(err)
		}
		harness.Await(t, 30*time.Second, "epochs that are durable and not committed", func(context.Context) error {
			// Either one came since, or two wait already: of those the sink may have one that it has not told yet.
			if e := s.Status(t, name).Epoch; e.Committed >= e.Durable || e.Durable <= before.Durable && e.Durable < e.Committed+2 {
				return fmt.Errorf("epochs %+v", e)
			}
			return nil
		})
		s.Must(t, "job", "suspend", name)
		s.wantPhase(t, "SUSPENDED")
		if e := s.Status(t, name).Epoch; e.Committed >= e.Durable {
			t.Errorf("nothing is left to commit: %+v", e)
		}
		if _, err := conn.Exec(t.Context(), "ROLLBACK"); err != nil {
			t.Fatal(err)
		}
		s.Must(t, "job", "resume", name)
	})
	quiet()
	s.wantExact(t)
	s.wantRefused(t, "WEIR-CLI-009", "job", "restore", name, "x")
}

// wantChanges checks the changelog: every change is there once, and folded in its order it is the source.
func (s *scene) wantChanges(t *testing.T) {
	t.Helper()
	conn := s.connect(t.Context(), t, "target")
	for what, sql := range map[string]string{
		"differ from the copy": `
WITH last AS (SELECT DISTINCT ON (id) id, n, _op FROM log.t ORDER BY id, _epoch DESC, _seq DESC),
     now AS (SELECT id, n FROM last WHERE _op <> 5)
SELECT count(*) FROM ((TABLE now EXCEPT SELECT id, n FROM copy.t) UNION ALL (SELECT id, n FROM copy.t EXCEPT TABLE now)) x`,
		"came twice": "SELECT count(*) FROM (SELECT 1 FROM log.t GROUP BY _txn, _ord, _op, id HAVING count(*) > 1) x",
	} {
		var n int
		if err := conn.QueryRow(t.Context(), sql).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n != 0 {
			t.Errorf("%d rows of the changelog %s", n, what)
		}
	}
}
