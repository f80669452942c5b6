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
	r.Recovered(t, time.Now(), 3)
	head, err := r.Records.Now(t.Context(), rig.Job)
	if err != nil {
		t.Fatal(err)
	}
	node, err := r.Records.Holder(t.Context(), head, "db")
	if err != nil {
		t.Fatal(err)
	}
	zombie := r.Mesh.Node(node)
	if zombie == nil {
		t.Fatalf("the reader runs on %q, which is no process of this test", node)
	}
	before := slotHolder(t, r)
	frozen := time.Now()
	if err := zombie.Pause(); err != nil {
		t.Fatal(err)
	}
	if slotHolder(t, r) != before {
		t.Fatal("the frozen reader does not hold the slot")
	}

	took := r.Recovered(t, frozen, uint64(head.NextEpoch))
	after, err := r.Records.Now(t.Context(), rig.Job)
	if err != nil {
		t.Fatal(err)
	}
	if after.Fence <= head.Fence {
		t.Fatalf("the fence is still %d", after.Fence)
	}
	if now, err := r.Records.Holder(t.Context(), after, "db"); err != nil || now == node {
		t.Fatalf("the reader is on %q, %v; it was on %q", now, err, node)
	}
	holder := slotHolder(t, r)
	if holder == before || !strings.HasSuffix(holder, ":"+after.Fence.String()) {
		t.Fatalf("the slot is held by %q, it was %q; the fence is %d", holder, before, after.Fence)
	}
	t.Logf("frozen with the slot; another reader's next durable epoch after %.2f s", took.Seconds())

	if err := zombie.Resume(); err != nil {
		t.Fatal(err)
	}
	refused(t, r, zombie)
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

// refused waits until the process that came back has been turned away, and somebody has counted it: itself, or those
// whom it sent something.
func refused(tb testing.TB, r *rig.Rig, zombie *mesh.Member) {
	tb.Helper()
	harness.Await(tb, 20*time.Second, "the zombie to be refused and counted", func(ctx context.Context) error {
		var seen []string
		for _, name := range fencedMetrics {
			n := mesh.Sum(zombie.Metrics(ctx, tb), name)
			if n > 0 {
				tb.Logf("%s: %s = %.0f", zombie.Node, name, n)
				return nil
			}
			seen = append(seen, fmt.Sprintf("%s=%.0f", name, n))
		}
		return fmt.Errorf("on %s: %s", zombie.Node, strings.Join(seen, ", "))
	})
	// It is not harmed for good: it joins again and can take work.
	harness.Await(tb, 20*time.Second, zombie.Node+" to be of use again", harness.HTTPReady(zombie.HTTP+"/readyz"))
}

// fencedMetrics count what an owner that has been replaced was refused.
var fencedMetrics = []string{"weir_sink_commit_fenced_total", "weir_node_fenced_total"}
