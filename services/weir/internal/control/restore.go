package control

import (
	"context"
	"fmt"
	"time"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/spec"
)

// Restoration says what to restore, and how.
type Restoration struct {
	// Savepoint is the name; empty is the newest committed epoch.
	Savepoint string
	// Repeat allows sinks that cannot fold two into one to get rows twice.
	Repeat bool
	// Spec, unless nil, is the spec to go on with. Only what may change within a life may differ.
	Spec *spec.Job
}

// Restore has a job at rest go on from a savepoint, or from its newest committed epoch. What its sinks have committed since stays
// there, and the rows come again: a sink in upsert mode ends up the same, any other gets them twice, which is refused unless
// wanted. It returns when the job runs.
func (c *Client) Restore(ctx context.Context, name string, r Restoration) (Asked, error) {
	if err := c.allowed(ctx, name, "restore", job.Suspended, job.Failed); err != nil {
		return Asked{}, err
	}
	h, running, err := c.current(ctx, name)
	if err != nil {
		return Asked{}, err
	}
	if err := c.restorable(ctx, h, running, r); err != nil {
		return Asked{}, err
	}
	digest := ""
	if r.Spec != nil {
		if _, err := inPlace(running, r.Spec); err != nil {
			return Asked{}, err
		}
		if digest, err = c.reg.PutSpec(ctx, r.Spec); err != nil {
			return Asked{}, fmt.Errorf("store the spec of %s: %w", name, err)
		}
	}
	var seq uint64
	change := func(i job.Intent, request string, at time.Time) job.Intent {
		if r.Spec != nil {
			i = i.Applying(digest, request, at)
		}
		i = i.Restoring(r.Savepoint, h.Durable.Ref, r.Repeat, request, at)
		seq = i.Restore.Seq
		return i
	}
	h, err = c.ask(ctx, name, change, func(h *job.Head) bool { return h.Handled.Restore >= seq || over(h.Phase) })
	if err != nil {
		return Asked{}, err
	}
	if err := refused(h, fault.CLISavepoint, job.OrderRestore, seq); err != nil {
		return Asked{}, err
	}
	if h, err = c.begun(ctx, name); err != nil {
		return Asked{}, err
	}
	return asked(h, "nothing can; what the sinks had is still there"), nil
}

// begun waits until a job that was at rest runs.
func (c *Client) begun(ctx context.Context, name string) (*job.Head, error) {
	return c.Await(ctx, name, func(h *job.Head) (bool, error) {
		switch {
		case h == nil:
			return false, nil
		case h.Phase.AtRest():
			return false, reasonFault(h)
		}
		return h.Phase.Active(), nil
	})
}

// restorable refuses early what the leader would refuse, and what would repeat rows where that shows.
func (c *Client) restorable(ctx context.Context, h *job.Head, j *spec.Job, r Restoration) error {
	if h.Durable == nil {
		return fault.New(fault.CLISavepoint, h.Job, "no epoch of the job is durable", "job", h.Job)
	}
	if r.Savepoint == "" {
		if h.Committed == 0 || h.Committed >= h.Durable.Epoch {
			return fault.New(fault.CLISavepoint, h.Job, fmt.Sprintf("epoch %d is committed and epoch %d durable: there is nothing to rewind", h.Committed, h.Durable.Epoch), "job", h.Job)
		}
		return nil
	}
	p, ok := h.Savepoint(r.Savepoint)
	if !ok {
		return noSavepoint(h, r.Savepoint)
	}
	if r.Repeat {
		return nil
	}
	newest, err := c.reg.Manifest(ctx, h.Job, h.Durable.Ref)
	if err != nil {
		return fmt.Errorf("read epoch %s of %s: %w", h.Durable.Epoch, h.Job, err)
	}
	for _, k := range j.Sinks {
		if at := newest.LedgerOf(k.Name, h.Durable.Ref); k.Mode != spec.Upsert && at.Epoch > p.Durable.Epoch {
			e := fault.New(fault.CLISavepoint, "sinks."+k.Name,
				fmt.Sprintf("the sink has rows up to epoch %d and the savepoint is epoch %d; in mode %s it would get what lies between twice", at.Epoch, p.Durable.Epoch, k.Mode), "job", h.Job)
			e.Remedy = "With --repeat the rows come again, and the job is shown as at_least_once until it has passed them."
			return e
		}
	}
	return nil
}
