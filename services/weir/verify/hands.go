package verify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/services/weir/verify/process"
)

// aim waits until a few epochs have been committed and then for a part of one, as the seed has it: faults come at any phase.
func (t *trial) aim(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, recoverTime, errors.New("it took too long"))
	defer cancel()
	left := 2 + t.rng.IntN(3)
	seen := t.journal.now().head.Committed
	s, _, err := t.journal.await(ctx, "epochs to be committed", max(t.journal.length()-1, 0), func(h job.Head) bool {
		if h.Phase == job.Running && h.Committed > seen {
			seen = h.Committed
			left--
		}
		return left <= 0 || h.Phase.AtRest()
	})
	if err != nil {
		return err
	}
	if h := s.head; h.Phase.AtRest() {
		return fmt.Errorf("the job is %s: %s %s", h.Phase, h.Reason.Code, h.Reason.Text)
	}
	return process.Pause(ctx, time.Duration(t.rng.Int64N(int64(250*time.Millisecond))))
}

// leader is the coordinator that holds the leader's lease.
func (t *trial) leader(ctx context.Context) (*node, error) {
	var owner struct{ Node string }
	err := eventually(ctx, func() error {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		leases, err := t.conn.Bucket(ctx, bus.LeasesBucket)
		if err != nil {
			return err
		}
		e, err := leases.Get(ctx, bus.LeaderKey)
		if err != nil {
			return err
		}
		return json.Unmarshal(e.Value, &owner)
	})
	if err != nil {
		return nil, fmt.Errorf("find the leader: %w", err)
	}
	return t.named(owner.Node)
}

// kill strikes processes with SIGKILL.
func (t *trial) kill(ctx context.Context, what string, nodes ...*node) error {
	var names []string
	for _, n := range nodes {
		names = append(names, n.name)
	}
	return t.strike("SIGKILL of "+what+" ("+strings.Join(names, ", ")+")", func() (string, error) { return killed(ctx, nodes...) })
}

// back starts processes again under their names.
func back(ctx context.Context, nodes ...*node) error {
	for _, n := range nodes {
		if err := n.Start(ctx); err != nil {
			return err
		}
	}
	return nil
}

// workers are the processes that run the job's tasks.
func (t *trial) workers() []*node { return append(t.of(t.src.role()), t.of(sinks)...) }

// whileHeld does something while the copy's next commit is held.
func (t *trial) whileHeld(ctx context.Context, do func() error) error {
	release, err := t.dst.hold(ctx)
	if err != nil {
		return err
	}
	return errors.Join(do(), release())
}

// killHeld kills the committer of the copy while its commit is held.
func (t *trial) killHeld(ctx context.Context, what string) error {
	var n *node
	err := t.whileHeld(ctx, func() error {
		commit, err := t.dst.heldUp(ctx, t)
		if err != nil {
			return err
		}
		if n, err = t.holder(ctx, copyCommitter()); err != nil {
			return err
		}
		return t.kill(ctx, what+" ("+commit+")", n)
	})
	if err != nil {
		return err
	}
	if err := t.recovered(ctx); err != nil {
		return err
	}
	return back(ctx, n)
}

// refusals count what an owner that has been replaced is refused: by the target's ledger, by the leader, by receivers, and by the
// registry, which does not renew its lease. Which one it meets first is up to the scheduler.
var refusals = [...]string{
	"weir_sink_commit_fenced_total", "weir_coordinator_facts_refused_total", "weir_gate_refused_total", "weir_node_lease_lost_total",
}

// refused adds up what the nodes have counted; those that do not answer have counted nothing.
func refused(ctx context.Context, nodes ...*node) map[string]float64 {
	sums := make(map[string]float64)
	for _, n := range nodes {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		text, err := process.Get(ctx, n.http+"/metrics")
		cancel()
		if err != nil {
			continue
		}
		for _, name := range refusals {
			sums[name] += process.Sum(string(text), name)
		}
	}
	return sums
}

// zombie freezes a process that owns something until another has taken over, lets it go on and waits until it has been refused.
func (t *trial) zombie(ctx context.Context, what string, z *node, prove func() (string, error)) error {
	own := refused(ctx, z)
	err := t.strike("SIGSTOP of "+what+" ("+z.name+") for longer than its lease, then SIGCONT", func() (string, error) {
		if err := z.Pause(); err != nil {
			return "", err
		}
		return prove()
	})
	if err != nil {
		return errors.Join(err, z.Resume())
	}
	if err := t.recovered(ctx); err != nil {
		return errors.Join(err, z.Resume())
	}
	var others []*node
	for _, n := range t.nodes {
		if n != z && n.Running() {
			others = append(others, n)
		}
	}
	before := refused(ctx, others...)
	for name, n := range own {
		before[name] += n
	}
	if err := z.Resume(); err != nil {
		return err
	}
	f := &t.faults[len(t.faults)-1]
	return t.until(ctx, "the zombie to be refused and counted", func(ctx context.Context) error {
		now := refused(ctx, append(others, z)...)
		for _, name := range refusals {
			if n := now[name] - before[name]; n > 0 {
				f.Evidence += fmt.Sprintf("; it came back and was refused: %s +%.0f", name, n)
				return nil
			}
		}
		return fmt.Errorf("%v, as before", now)
	})
}

// uncommitted waits for an epoch that is durable and that the copy does not have.
func (t *trial) uncommitted(ctx context.Context) (job.Head, error) {
	s, _, err := t.journal.await(ctx, "an epoch that is durable and not committed", t.journal.length(), func(h job.Head) bool {
		return h.Durable != nil && h.Committed < h.Durable.Epoch
	})
	return s.head, err
}

// copyCommitter is the vertex that commits to the copy.
func copyCommitter() plan.VertexID { return plan.CommitterOf(copying) }
