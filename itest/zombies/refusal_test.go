package zombies

import (
	"context"
	"fmt"
	"testing"
	"time"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/itest/mesh"
	"weir.dev/weir/itest/rig"
)

// refusals count what owners that have been replaced were refused: by a target's ledger, by the leader, by receivers.
var refusals = []string{
	"weir_sink_commit_fenced_total",
	"weir_coordinator_facts_refused_total",
	"weir_task_messages_fenced_total",
}

// zombie is a process that is frozen and will come back.
type zombie struct {
	*mesh.Member

	others  []*mesh.Member
	refused float64 // what it had been refused before
}

// freeze stops the process of a node.
func freeze(tb testing.TB, r *rig.Rig, node string) *zombie {
	tb.Helper()
	z := &zombie{}
	for _, member := range r.Mesh.Members {
		if member.Node == node {
			z.Member = member
		} else {
			z.others = append(z.others, member)
		}
	}
	if z.Member == nil {
		tb.Fatalf("%q is no process of this test", node)
	}
	z.refused = refused(tb.Context(), tb, z.Member)
	if err := z.Pause(); err != nil {
		tb.Fatal(err)
	}
	return z
}

// comeBack lets it go on and waits until it has been refused and somebody has counted it: itself, or those to whom it
// sent something. It is not harmed for good: afterwards it is of use again.
func (z *zombie) comeBack(tb testing.TB) {
	tb.Helper()
	before := z.refused + refused(tb.Context(), tb, z.others...)
	if err := z.Resume(); err != nil {
		tb.Fatal(err)
	}
	harness.Await(tb, 20*time.Second, "the zombie to be refused and counted", func(ctx context.Context) error {
		now := refused(ctx, tb, append(z.others, z.Member)...)
		if now <= before {
			return fmt.Errorf("%.0f refusals, as before", now)
		}
		tb.Logf("%s came back and was refused %.0f times", z.Node, now-before)
		return nil
	})
	harness.Await(tb, 20*time.Second, z.Node+" to be of use again", harness.HTTPReady(z.HTTP+"/readyz"))
}

func refused(ctx context.Context, tb testing.TB, members ...*mesh.Member) (sum float64) {
	tb.Helper()
	for _, member := range members {
		metrics := member.Metrics(ctx, tb)
		for _, name := range refusals {
			sum += mesh.Sum(metrics, name)
		}
	}
	return sum
}
