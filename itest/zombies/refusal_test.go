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

// refusals count what an owner that has been replaced is refused: by the target's ledger, by the leader, by receivers,
// and by the registry, which does not renew its lease. Which one it meets first is up to the scheduler.
var refusals = []string{
	"weir_sink_commit_fenced_total",
	"weir_coordinator_facts_refused_total",
	"weir_gate_refused_total",
	"weir_node_lease_lost_total",
}

// tally is what has been refused, by metric.
type tally map[string]float64

// zombie is a process that is frozen and will come back.
type zombie struct {
	*mesh.Member

	others  []*mesh.Member
	refused tally // what it had been refused before
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
	before := refused(tb.Context(), tb, z.others...)
	for name, n := range z.refused {
		before[name] += n
	}
	if err := z.Resume(); err != nil {
		tb.Fatal(err)
	}
	harness.Await(tb, 20*time.Second, "the zombie to be refused and counted", func(context.Context) error {
		now := refused(tb.Context(), tb, append(z.others, z.Member)...)
		var more []string
		for _, name := range refusals {
			if n := now[name] - before[name]; n > 0 {
				more = append(more, fmt.Sprintf("%s +%.0f", name, n))
			}
		}
		if len(more) == 0 {
			return fmt.Errorf("%v, as before", now)
		}
		tb.Logf("%s came back and was refused: %s", z.Node, strings.Join(more, ", "))
		return nil
	})
	harness.Await(tb, 20*time.Second, z.Node+" to be of use again", harness.HTTPReady(z.HTTP+"/readyz"))
}

func refused(ctx context.Context, tb testing.TB, members ...*mesh.Member) tally {
	tb.Helper()
	sums := make(tally)
	for _, member := range members {
		metrics := member.Metrics(ctx, tb)
		for _, name := range refusals {
			sums[name] += mesh.Sum(metrics, name)
		}
	}
	return sums
}
