package ha

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/itest/mesh"
	"weir.dev/weir/itest/rig"
	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/services/weir/verify/relay"
)

// target is a place in the mesh that something happens to: the processes there change with every fault.
type target string

// The targets: of coordinators, of what the flow runs on, and of NATS servers the one that carries the rows of the present
// attempt, the one that leads the registry, and any.
const (
	leader    target = "leader"
	standby   target = "standby"
	reader    target = "reader"
	writer    target = "writer"
	committer target = "committer"
	carrier   target = "nats of the rows"
	registry  target = "nats of the registry"
	anyNATS   target = "nats, any"
)

// fault is one kind of harm.
type fault struct {
	what string // killed, frozen, cut off, not heard, hears nothing
	at   target
}

func (f fault) String() string { return string(f.at) + " " + f.what }

// coordinator says that no attempt may begin because of this fault.
func (f fault) coordinator() bool { return f.at == leader || f.at == standby }

var partitions = map[string]relay.Direction{
	"cut off": relay.Both, "not heard": relay.Requests, "hears nothing": relay.Replies,
}

// deck is n faults: kills, freezes and partitions in turn, each in an order of chance, so that a short run has some of each
// and a long one has all. only, when it is not empty, is a part of the names of those that are wanted.
func deck(rng *rand.Rand, n int, only string) []fault {
	var kills, freezes, parts []fault
	for _, at := range []target{leader, standby, reader, writer, committer, carrier, registry, anyNATS} {
		kills = append(kills, fault{"killed", at})
		if at != anyNATS {
			freezes = append(freezes, fault{"frozen", at})
		}
	}
	for _, at := range []target{leader, reader, writer, committer} {
		for _, what := range []string{"cut off", "hears nothing", "not heard"} {
			parts = append(parts, fault{what, at})
		}
	}
	var kinds [][]fault
	for _, k := range [][]fault{kills, freezes, parts} {
		k = slices.DeleteFunc(k, func(f fault) bool { return !strings.Contains(f.String(), only) })
		rng.Shuffle(len(k), func(i, j int) { k[i], k[j] = k[j], k[i] })
		if len(k) > 0 {
			kinds = append(kinds, k)
		}
	}
	var all []fault
	for i := range n {
		k := kinds[i%len(kinds)]
		all = append(all, k[i/len(kinds)%len(k)])
	}
	return all
}

// victim is the process that a fault hits, and its network.
type victim struct {
	*harness.Process
	name  string
	way   *relay.Relay
	ready func(context.Context) error
}

// find chooses the victim of a fault, by what is at work now.
func find(ctx context.Context, r *rig.Rig, rng *rand.Rand, f fault, head job.Head) (victim, error) {
	if strings.HasPrefix(string(f.at), "nats") {
		return findNATS(ctx, r, rng, f, head)
	}
	lead, err := r.Records.Leader(ctx)
	if err != nil {
		return victim{}, err
	}
	name := lead
	switch f.at { //nolint:exhaustive // NATS is above
	case standby:
		for _, m := range r.Mesh.Of(mesh.Coordinator) {
			if m.Node != lead {
				name = m.Node
			}
		}
	case reader:
		name, err = r.Records.Holder(ctx, head, "db")
	case writer:
		name, err = r.Records.Holder(ctx, head, rig.Copy)
	case committer:
		name, err = r.Records.Holder(ctx, head, plan.CommitterOf(rig.Copy))
	}
	if err != nil {
		return victim{}, err
	}
	m := r.Mesh.Node(name)
	if m == nil {
		return victim{}, fmt.Errorf("no process for %s: node %q", f, name)
	}
	return victim{m.Process, m.Node, m.Way, harness.HTTPReady(m.HTTP + "/readyz")}, nil
}

func findNATS(ctx context.Context, r *rig.Rig, rng *rand.Rand, f fault, head job.Head) (victim, error) {
	servers := r.Mesh.Cluster.Servers
	s := servers[rng.IntN(len(servers))]
	switch f.at { //nolint:exhaustive // the others have no stream of their own
	case carrier:
		s = r.Mesh.Cluster.Leader(ctx, bus.DataStream(rig.Job, head.Fence))
	case registry:
		s = r.Mesh.Cluster.Leader(ctx, "KV_"+bus.RegistryBucket)
	}
	if s == nil {
		return victim{}, fmt.Errorf("no server leads the stream for %s", f)
	}
	return victim{s.Process, s.Name, nil, harness.HTTPReady(s.Monitor + "/healthz")}, nil
}

// inflict does the harm; the returned function undoes it.
func (v victim) inflict(tb testing.TB, f fault) (heal func()) {
	tb.Helper()
	if !v.Running() {
		tb.Fatalf("%s had ended by itself; end of its log:\n%s", v.name, v.LogTail(4<<10))
	}
	must := func(err error) {
		if err != nil {
			tb.Fatal(err)
		}
	}
	switch f.what {
	case "killed":
		v.Kill()
		if _, err := v.Wait(context.WithoutCancel(tb.Context())); err == nil || !strings.Contains(err.Error(), "killed") {
			tb.Fatalf("%s did not end by SIGKILL: %v", v.name, err)
		}
		return func() { must(v.Start(tb.Context())) }
	case "frozen":
		must(v.Pause())
		return func() { must(v.Resume()) }
	}
	v.way.Part(partitions[f.what])
	return v.way.Heal
}
