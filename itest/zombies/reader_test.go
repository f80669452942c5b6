package zombies

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/itest/mesh"
	"weir.dev/weir/itest/rig"
)

// TestReaderFrozenWithTheSlot: a reader that holds the slot is stopped past its lease. Another ends its session, takes
// the slot and reads on; what the first one sends when it wakes up belongs to an attempt that is over.
func TestReaderFrozenWithTheSlot(t *testing.T) {
	r := rig.Start(t, rig.Config{
		Roles: []mesh.Role{mesh.Coordinator, mesh.CDCPostgres, mesh.CDCPostgres, mesh.Sink},
		Rate:  80, Seed: rig.Seed(t),
	})
	r.Recovered(t, time.Now(), 0)
	head, err := r.Records.Now(t.Context(), rig.Job)
	if err != nil {
		t.Fatal(err)
	}
	node, err := r.Records.Holder(t.Context(), head, "db")
	if err != nil {
		t.Fatal(err)
	}
	before := slotHolder(t, r)
	frozen := time.Now()
	z := freeze(t, r, node)
	if slotHolder(t, r) != before {
		t.Fatal("the frozen reader does not hold the slot")
	}

	after, took := r.Recovered(t, frozen, head.Fence)
	if now, err := r.Records.Holder(t.Context(), after, "db"); err != nil || now == node {
		t.Fatalf("the reader is on %q, %v; it was on %q", now, err, node)
	}
	// Epochs go on without news until the slot is free: the server ends a session that is silent for 5 s.
	var holder string
	harness.Await(t, 20*time.Second, "the new reader at the slot", func(context.Context) error {
		if holder = slotHolder(t, r); holder == before || !strings.HasSuffix(holder, ":"+after.Fence.String()) {
			return fmt.Errorf("it is held by %q", holder)
		}
		return nil
	})
	taken := time.Since(frozen)
	t.Logf("frozen with the slot; durable again after %.2f s, the slot in other hands after %.2f s", took.Seconds(), taken.Seconds())

	z.comeBack(t)
	if now := slotHolder(t, r); now != holder {
		t.Errorf("the slot went from %q to %q when the first reader came back", holder, now)
	}
	r.Verdict(t)
}

// slotHolder is the application_name of the session that reads the job's slot.
func slotHolder(tb testing.TB, r *rig.Rig) (name string) {
	tb.Helper()
	harness.Await(tb, 10*time.Second, "a reader at the slot", func(ctx context.Context) (err error) {
		name, err = harness.Value[string](ctx, r.Source, "postgres", `SELECT a.application_name FROM pg_replication_slots s
			JOIN pg_stat_activity a ON a.pid = s.active_pid WHERE s.slot_name LIKE 'weir_shop_%'`)
		return err
	})
	return name
}
