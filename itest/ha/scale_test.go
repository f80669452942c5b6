package ha

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/itest/mesh"
	"weir.dev/weir/itest/rig"
	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/plan"
	records "weir.dev/weir/pkg/registry"
)

// pause is the goal for the longest time without a durable epoch while processes join and leave; what is judged is far from
// it, so that only a hand-over that does not work is found, such as one that waits for a lease to expire.
const (
	pause  = 2 * time.Second
	judged = 5 * time.Second
)

// TestScale lets a role grow from one process to three under load and shrink again. Nothing is lost, nothing waits long.
func TestScale(t *testing.T) {
	r := rig.Start(t, rig.Config{
		Roles: []mesh.Role{mesh.Coordinator, mesh.CDCPostgres, mesh.Sink}, Rate: 80, Seed: rig.Seed(t),
	})
	next(t, r, time.Now())
	seen := follow(t, r)

	first := r.Mesh.Of(mesh.Sink)[0].Node
	later := []*mesh.Member{r.Mesh.Add(t, mesh.Sink), r.Mesh.Add(t, mesh.Sink)}
	harness.Await(t, patience, "work on all three", func(ctx context.Context) error {
		return spread(ctx, r, 3)
	})
	next(t, r, time.Now())
	grown := now(t, r)
	for _, m := range later {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		code, err := m.Stop(ctx)
		cancel()
		if err != nil || code != 0 {
			t.Errorf("%s ended with %d: %v", m.Node, code, err)
		}
	}
	harness.Await(t, patience, "all work on "+first, func(ctx context.Context) error { return spread(ctx, r, 1) })
	next(t, r, time.Now())
	shrunk := now(t, r)

	longest, at := seen()
	t.Logf("longest pause between durable epochs %.2f s, before epoch %d, of %.0f s as the goal; %d attempts to grow, %d to shrink",
		longest.Seconds(), at, pause.Seconds(), grown.Fence-1, shrunk.Fence-grown.Fence)
	if longest > judged {
		t.Errorf("no epoch became durable for %s", longest)
	}
	for _, x := range shrunk.Restarts {
		if x.Kind != job.RestartFree {
			t.Errorf("a restart that was no move: %+v", x)
		}
	}
	r.Verdict(t)
}

// spread fails unless the subtasks of the sinks lie on so many processes.
func spread(ctx context.Context, r *rig.Rig, want int) error {
	h, err := r.Records.Now(ctx, rig.Job)
	if err != nil {
		return err
	}
	if h.Plan == nil || h.Phase != job.Running {
		return fmt.Errorf("the job is %s: %s", h.Phase, h.Reason.Text)
	}
	d, err := r.Records.Plan(ctx, *h.Plan)
	if err != nil {
		return err
	}
	on := make(map[string]int)
	for id, at := range d.Placements {
		if v, _ := d.Vertex(id.Vertex); v.Capability == plan.SinkCapability("postgres") {
			on[at.Node]++
		}
	}
	if len(on) != want {
		return fmt.Errorf("subtasks by process: %v", on)
	}
	return nil
}

// follow measures the pauses between durable epochs until the returned function is called, which tells the longest and the
// epoch that ended it.
func follow(t *testing.T, r *rig.Rig) (end func() (time.Duration, epoch.ID)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var longest time.Duration
	var before epoch.ID
	var done sync.WaitGroup
	done.Go(func() {
		w := r.Records.WatchHead(ctx, rig.Job)
		defer w.Close()
		var last *job.Durable
		for u := range w.Updates() {
			if u.Kind != bus.Put {
				continue
			}
			v, err := records.DecodeHead(u.Entry)
			if err != nil || v.Head.Durable == nil {
				continue
			}
			d := v.Head.Durable
			if last != nil && d.Epoch > last.Epoch && d.At.Sub(last.At) > longest {
				longest, before = d.At.Sub(last.At), d.Epoch
			}
			last = d
		}
	})
	t.Cleanup(func() { cancel(); done.Wait() })
	return func() (time.Duration, epoch.ID) {
		cancel()
		done.Wait()
		return longest, before
	}
}
