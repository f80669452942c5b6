package dlq

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/itest/mesh"
)

var roles = []mesh.Role{mesh.Coordinator, mesh.CDCPostgres, mesh.Sink}

const hundred = "INSERT INTO orders SELECT i, CASE i WHEN 77 THEN 'bad' ELSE 'good ' || i END FROM generate_series(1, 100) i"

// TestWithoutDLQ is O13 of the bug log: the epoch with a row that the target refuses is never reported as committed, and
// after the repair all rows are there, once.
func TestWithoutDLQ(t *testing.T) {
	s := start(t, roles...)
	s.submit(t, false)
	s.CaughtUp(t, job)
	s.at(t, "source", hundred)
	st := s.phase(t, "FAILED")
	if st.Reason.Code != "WEIR-SINK-005" || st.Epoch.Committed >= st.Epoch.Durable {
		t.Errorf("the job failed with %+v at %+v", st.Reason, st.Epoch)
	}
	if n := s.number(t, "SELECT count(*) FROM out.orders"); n != 0 {
		t.Errorf("%d rows of an epoch that was refused", n)
	}
	if all := s.letters(t); len(all) != 0 {
		t.Errorf("letters without dlq: %+v", all)
	}
	s.good(t)
	s.Must(t, "job", "resume", job)
	s.CaughtUp(t, job)
	s.equal(t, "")
	s.Verify(t, job)
}

// TestTheLifeOfALetter lists, shows, replays and discards.
func TestTheLifeOfALetter(t *testing.T) {
	s := start(t, roles...)
	s.at(t, "source", hundred)
	s.submit(t, true)
	s.CaughtUp(t, job)
	s.equal(t, "WHERE v <> 'bad'")
	s.wantLetters(t)
	s.Verify(t, job)
	if st := s.Status(t, job); st.Sinks[0].Dead != 1 || st.Phase != "RUNNING" {
		t.Errorf("status %+v", st)
	}
	id := s.letters(t)[0].ID
	if a := s.Ask(t, "dlq", "replay", job, id); a.Exit != 3 {
		t.Errorf("replay into a target that refuses: %s", a)
	}
	s.good(t)
	s.Must(t, "dlq", "replay", job, "--all")
	s.equal(t, "")
	if all := s.letters(t); len(all) != 0 {
		t.Errorf("after the replay: %+v", all)
	}
	// A later change wins over what was set aside before it.
	s.at(t, "target", "ALTER TABLE out.orders ADD CONSTRAINT good CHECK (v <> 'bad') NOT VALID")
	s.at(t, "source", "UPDATE orders SET v = 'bad' WHERE id IN (5, 6)")
	s.CaughtUp(t, job)
	s.at(t, "source", "UPDATE orders SET v = 'better' WHERE id = 5; DELETE FROM orders WHERE id = 6")
	s.CaughtUp(t, job)
	s.good(t)
	if a := s.Ask(t, "dlq", "replay", job, "--all", "--json"); a.Exit != 2 {
		t.Errorf("replay over later changes: %s", a)
	}
	s.equal(t, "")
	if a := s.Ask(t, "dlq", "discard", job, "--all"); a.Exit != 2 || len(s.letters(t)) != 2 {
		t.Errorf("discard without --yes: %s", a)
	}
	s.Must(t, "dlq", "discard", job, "--all", "--yes")
	if all := s.letters(t); len(all) != 0 {
		t.Errorf("after the discard: %+v", all)
	}
	s.equal(t, "")
	s.Verify(t, job)
}

// TestSinkKilledAmongLetters kills the sink when some letters of an epoch are there and not all.
func TestSinkKilledAmongLetters(t *testing.T) {
	s := start(t, roles...)
	records := s.Records(t)
	s.submit(t, true)
	s.CaughtUp(t, job)
	const bad = 100
	for round := range 2 {
		before := round * bad
		s.at(t, "source", fmt.Sprintf(`INSERT INTO orders SELECT i, CASE WHEN i %% 2 = 0 THEN 'bad' ELSE 'good' END
			FROM generate_series(%d, %d) i`, 2*before+1, 2*(before+bad)))
		harness.Await(t, 60*time.Second, "the first letters", func(ctx context.Context) error {
			counts, err := records.Bus.CountLetters(ctx, job)
			if err == nil && int(counts["wh"]) < before+10 {
				err = fmt.Errorf("%d letters", counts["wh"])
			}
			return err
		})
		sink := s.Of(mesh.Sink)[0]
		sink.Kill()
		counts, err := records.Bus.CountLetters(t.Context(), job)
		if err != nil {
			t.Fatal(err)
		}
		committed := s.number(t, "SELECT count(*) FROM out.orders")
		t.Logf("killed with %d of %d letters and %d rows", counts["wh"], before+bad, committed)
		if int(counts["wh"]) == before+bad {
			t.Error("all letters were there: the kill came too late to prove anything")
		}
		if err := sink.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.CaughtUp(t, job)
	}
	s.equal(t, "WHERE v <> 'bad'")
	counts, err := records.Bus.CountLetters(t.Context(), job)
	if err != nil || counts["wh"] != 2*bad {
		t.Errorf("%d letters, %v; want %d", counts["wh"], err, 2*bad)
	}
	if n := s.number(t, "SELECT sum(dead)::bigint FROM out.weir_ledger_log"); n != 2*bad {
		t.Errorf("the ledger counts %d dead rows, want %d", n, 2*bad)
	}
	s.Verify(t, job)
}

// TestFullStream: a commit without room for its letters waits, says so, and goes on when there is room.
func TestFullStream(t *testing.T) {
	s := start(t, roles...)
	records := s.Records(t)
	if err := records.Bus.EnsureDLQ(t.Context(), job, 8_000); err != nil {
		t.Fatal(err)
	}
	s.submit(t, true)
	s.CaughtUp(t, job)
	n := 0
	// Letters of epochs that are committed, up to the last that fits.
	harness.Await(t, 60*time.Second, "a full stream", func(context.Context) error {
		if st := s.Status(t, job); st.Sinks[0].Waiting != nil {
			if code := st.Sinks[0].Waiting.Fault.Code; code != "WEIR-SINK-030" {
				return fmt.Errorf("the sink waits with %s", code)
			}
			return nil
		}
		n++
		s.at(t, "source", fmt.Sprintf("INSERT INTO orders VALUES (%d, 'bad'), (%d, 'good')", 2*n, 2*n+1))
		return errors.New("there is room")
	})
	waiting := s.Status(t, job)
	if len(waiting.Why) == 0 || waiting.Epoch.Committed >= waiting.Epoch.Durable {
		t.Errorf("a commit that waits: %+v", waiting)
	}
	kept := len(s.letters(t))
	if rows := s.number(t, "SELECT count(*) FROM out.orders"); rows >= int64(n) || kept == 0 || kept > n {
		t.Errorf("%d rows and %d letters of %d transactions", rows, kept, n)
	}
	s.Ask(t, "dlq", "discard", job, "--all", "--yes") // a letter of the epoch that waits may be kept
	s.CaughtUp(t, job)
	s.equal(t, "WHERE v <> 'bad'")
	if left := len(s.letters(t)); left == 0 || left >= n {
		t.Errorf("%d letters after the discard of %d of %d", left, kept, n)
	}
	s.Must(t, "job", "delete", job, "--yes")
	harness.Await(t, 20*time.Second, "the letters of a deleted job to go", func(ctx context.Context) error {
		counts, err := records.Bus.CountLetters(ctx, job)
		if err == nil && len(counts) > 0 {
			err = fmt.Errorf("letters %v", counts)
		}
		return err
	})
}
