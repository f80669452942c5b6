package ha

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/itest/mesh"
	"weir.dev/weir/itest/rig"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/job"
)

// faults is how much harm is done, one of each kind; on a cluster a lease of 12 s has to run out for most of it. ITEST_FAULTS is
// for longer runs, such as 40, ITEST_FAULT for harm with a name such as "nats" only.
const faults = 3

// patience is how long a fault may keep epochs from becoming durable before the test gives up. It is no promise.
const patience = 90 * time.Second

// TestEveryFault does harm to every process of a mesh that could lose any of them, one after the other, and holds the
// targets against the source in the end.
func TestEveryFault(t *testing.T) {
	seed := rig.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	r := rig.Start(t, rig.Config{
		Roles: []mesh.Role{
			mesh.Coordinator, mesh.Coordinator, mesh.CDCPostgres, mesh.CDCPostgres, mesh.Sink, mesh.Sink, mesh.Sink,
		},
		Rate: 80, Seed: seed, Cluster: 3, Relayed: true,
	})
	replicated(t, r)
	next(t, r, time.Now())

	took := make(map[string][]time.Duration)
	began := time.Now()
	for i, f := range deck(rng, harness.Number(t, "ITEST_FAULTS", faults), os.Getenv("ITEST_FAULT")) {
		if err := harness.Pause(t.Context(), time.Duration(rng.Int64N(int64(time.Second)))); err != nil {
			t.Fatal(err)
		}
		head, v := aim(t, r, rng, f)
		before := r.Applied()
		since := time.Now()
		heal := v.inflict(t, f)
		if f.at == leader {
			succeeded(t, r, v.name, head)
		}
		m := next(t, r, since)
		after := committed(t, r, m.Epoch)
		down := m.Completed.Sub(since)
		took[f.String()] = append(took[f.String()], down)
		why := "same attempt"
		if after.Fence != head.Fence {
			why = fmt.Sprintf("%d attempts later", after.Fence-head.Fence)
		}
		t.Logf("fault %2d at %5.1f s: %-26s %-14s durable again after %6.2f s, %s, %d transactions meanwhile",
			i+1, since.Sub(began).Seconds(), f, v.name, down.Seconds(), why, r.Applied()-before)
		if f.coordinator() && after.Fence != head.Fence {
			t.Errorf("%s: fence %d became %d; restarts %+v", f, head.Fence, after.Fence, after.Restarts)
		}
		heal()
		harness.Await(t, patience, v.name+" to be ready again", v.ready)
		next(t, r, time.Now())
	}
	report(t, took)
	r.Verdict(t)
}

// replicated makes sure that the mesh has found the cluster by itself.
func replicated(t *testing.T, r *rig.Rig) {
	t.Helper()
	if ttl := r.Records.TTL(); ttl != 12*time.Second {
		t.Errorf("leases last %s on a cluster", ttl)
	}
	for _, s := range r.Mesh.Cluster.Servers {
		for _, stream := range []string{"KV_weir_registry", "KV_weir_leases", "WEIR_STATE", "WEIR_ACK", "WEIR_EVENT"} {
			harness.Await(t, patience, stream+" on "+s.Name, func(ctx context.Context) error {
				if kept, err := s.Keeps(ctx, stream); err != nil || !kept {
					return fmt.Errorf("%t: %w", kept, err)
				}
				return nil
			})
		}
	}
}

// aim waits until the victim of a fault is known: the job runs, somebody leads, streams have their leaders.
func aim(t *testing.T, r *rig.Rig, rng *rand.Rand, f fault) (head job.Head, v victim) {
	t.Helper()
	harness.Await(t, patience, "the victim of "+f.String(), func(ctx context.Context) error {
		var err error
		if head, err = r.Records.Now(ctx, rig.Job); err != nil {
			return err
		}
		if head.Phase != job.Running {
			return fmt.Errorf("the job is %s", head.Phase)
		}
		v, err = find(ctx, r, rng, f, head)
		return err
	})
	return head, v
}

// succeeded waits until another coordinator than the one that was harmed has taken the job over.
func succeeded(t *testing.T, r *rig.Rig, old string, before job.Head) {
	t.Helper()
	harness.Await(t, patience, "another leader", func(ctx context.Context) error {
		h, err := r.Records.Now(ctx, rig.Job)
		if err == nil && h.Term <= before.Term {
			err = fmt.Errorf("term %d of %s", h.Term, old)
		}
		return err
	})
}

func now(t *testing.T, r *rig.Rig) (head job.Head) {
	t.Helper()
	harness.Await(t, patience, "the head record", func(ctx context.Context) (err error) {
		head, err = r.Records.Now(ctx, rig.Job)
		return err
	})
	return head
}

// committed waits until the sinks have an epoch.
func committed(t *testing.T, r *rig.Rig, e epoch.ID) (head job.Head) {
	t.Helper()
	harness.Await(t, patience, fmt.Sprintf("epoch %d to be committed", e), func(ctx context.Context) (err error) {
		if head, err = r.Records.Now(ctx, rig.Job); err == nil && head.Committed < e {
			err = fmt.Errorf("committed is %d: %s %s", head.Committed, head.Reason.Code, head.Reason.Text)
		}
		return err
	})
	return head
}

// next waits for an epoch that was triggered after a moment to be durable, and returns the first such.
func next(t *testing.T, r *rig.Rig, since time.Time) (first *epoch.Manifest) {
	t.Helper()
	harness.Await(t, patience, "an epoch that is triggered now to be durable", func(ctx context.Context) error {
		first = nil
		h, err := r.Records.Now(ctx, rig.Job)
		switch {
		case err != nil:
			return err
		case h.Phase.AtRest():
			t.Fatalf("the job is %s: %s %s", h.Phase, h.Reason.Code, h.Reason.Text)
		case h.Durable == nil:
			return errors.New("no epoch is durable yet")
		}
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		for ref := h.Durable.Ref; !ref.IsZero(); {
			m, err := r.Records.Manifest(ctx, rig.Job, ref)
			if err != nil && first == nil {
				return err
			}
			if err != nil || !m.Triggered.After(since) {
				break
			}
			first, ref = m, m.Prev
		}
		if first == nil {
			return fmt.Errorf("phase %s of attempt %s, epoch %d: %s %s", h.Phase, h.Fence, h.Durable.Epoch, h.Reason.Code, h.Reason.Text)
		}
		return nil
	})
	return first
}

// report prints the seconds from harm to durable epoch.
func report(t *testing.T, took map[string][]time.Duration) {
	t.Helper()
	line := func(name string, all []time.Duration) string {
		slices.Sort(all)
		at := func(q float64) float64 { return all[int(q*float64(len(all)-1)+0.5)].Seconds() }
		return fmt.Sprintf("%-32s %3d: p50 %6.2f s, p95 %6.2f s, max %6.2f s", name, len(all), at(0.5), at(0.95), at(1))
	}
	lines := []string{"from the fault to the next durable epoch that was triggered after it:"}
	var all []time.Duration
	kinds := make(map[string][]time.Duration)
	for _, name := range slices.Sorted(maps.Keys(took)) {
		lines = append(lines, line(name, took[name]))
		all = append(all, took[name]...)
		for _, what := range []string{"killed", "frozen"} {
			if strings.HasSuffix(name, what) {
				kinds["all that were "+what] = append(kinds["all that were "+what], took[name]...)
			}
		}
		if strings.Contains(name, "cut off") || strings.Contains(name, "hear") {
			kinds["all partitions"] = append(kinds["all partitions"], took[name]...)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		lines = append(lines, line(name, kinds[name]))
	}
	t.Log(strings.Join(append(lines, line("all", all)), "\n  "))
}
