package flows

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/itest/mesh"
	"weir.dev/weir/itest/rig"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/plan"
)

// kills is how many processes are killed, in turn of their kinds; ITEST_KILLS is for longer runs.
const kills = 12

// kinds are the processes that are killed in turn.
var kinds = []string{"nats", string(mesh.Coordinator), string(mesh.CDCPostgres), string(mesh.Sink)}

// TestKillEveryProcess kills processes of every kind at random moments, SIGKILL, NATS included, and starts each again
// after a while. What has to hold in the end, and for a reader in between, is in [rig.Rig.Verdict].
func TestKillEveryProcess(t *testing.T) {
	seed := rig.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	r := rig.Start(t, rig.Config{
		Roles: []mesh.Role{mesh.Coordinator, mesh.Coordinator, mesh.CDCPostgres, mesh.CDCPostgres, mesh.Sink, mesh.Sink},
		Rate:  80, Seed: seed,
	})
	r.Recovered(t, time.Now(), 0)

	times := make(map[string][]time.Duration)
	n := harness.Number(t, "ITEST_KILLS", kills)
	for i := range n {
		kind := kinds[i%len(kinds)]
		moment(t, rng, 1500*time.Millisecond)
		head, err := r.Records.Now(t.Context(), rig.Job)
		if err != nil {
			t.Fatal(err)
		}
		victim, name := choose(t, r, rng, kind, head)
		before := r.Applied()
		killed := kill(t, victim, name)
		moment(t, rng, time.Second) // it stays away for a while
		if err := victim.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, took := r.Recovered(t, killed, 0)
		times[kind] = append(times[kind], took)
		t.Logf("kill %2d: %-14s in epoch %d: durable again after %.2f s, %d transactions meanwhile",
			i+1, name, head.NextEpoch, took.Seconds(), r.Applied()-before)
	}
	report(t, times)
	r.Verdict(t)

	// Kills that hit nobody would prove nothing.
	head, err := r.Records.Now(t.Context(), rig.Job)
	if err != nil {
		t.Fatal(err)
	}
	if attempts := int(head.Fence); attempts < n/4 {
		t.Errorf("%d kills made only %d attempts", n, attempts)
	}
	if head.Phase != job.Running {
		t.Errorf("the job is %s", head.Phase)
	}
}

// moment waits a random time, so that faults meet every state of an epoch.
func moment(tb testing.TB, rng *rand.Rand, limit time.Duration) {
	tb.Helper()
	if err := harness.Pause(tb.Context(), time.Duration(rng.Int64N(int64(limit)))); err != nil {
		tb.Fatal(err)
	}
}

// choose picks a process of a kind: mostly the one at work, at times one that stands by.
func choose(tb testing.TB, r *rig.Rig, rng *rand.Rand, kind string, head job.Head) (*harness.Process, string) {
	tb.Helper()
	if kind == "nats" {
		return r.Mesh.NATS.Process, kind
	}
	members := r.Mesh.Of(mesh.Role(kind))
	chosen := members[rng.IntN(len(members))]
	vertices := map[string]plan.VertexID{
		string(mesh.CDCPostgres): "db", string(mesh.CDCMySQL): "db", string(mesh.Sink): plan.CommitterOf(rig.Copy),
	}
	if vertex, ok := vertices[kind]; ok && rng.IntN(4) > 0 {
		node, err := r.Records.Holder(tb.Context(), head, vertex)
		if err != nil {
			tb.Fatal(err)
		}
		if at := r.Mesh.Node(node); at != nil {
			chosen = at
		}
	}
	return chosen.Process, chosen.Node
}

// kill ends a process and proves that it was the kill that ended it.
func kill(tb testing.TB, p *harness.Process, name string) time.Time {
	tb.Helper()
	if !p.Running() {
		tb.Fatalf("%s had ended by itself; end of its log:\n%s", name, p.LogTail(4<<10))
	}
	at := time.Now()
	p.Kill()
	if _, err := p.Wait(context.WithoutCancel(tb.Context())); err == nil || !strings.Contains(err.Error(), "killed") {
		tb.Fatalf("%s did not end by SIGKILL: %v", name, err)
	}
	return at
}

// report prints the seconds from kill to durable epoch. They are no test: machines differ.
func report(tb testing.TB, times map[string][]time.Duration) {
	tb.Helper()
	line := func(name string, took []time.Duration) string {
		slices.Sort(took)
		return fmt.Sprintf("%-14s %2d kills: p50 %.2f s, max %.2f s", name, len(took), took[len(took)/2].Seconds(), took[len(took)-1].Seconds())
	}
	lines := []string{"from kill to the next durable epoch:"}
	var all []time.Duration
	for _, kind := range slices.Sorted(maps.Keys(times)) {
		lines = append(lines, line(kind, times[kind]))
		all = append(all, times[kind]...)
	}
	if len(all) > 0 {
		tb.Log(strings.Join(append(lines, line("all", all)), "\n  "))
	}
}
