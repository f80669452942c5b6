package control

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"time"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/spec"
)

// Suspend has a job take a SAVEPOINT epoch and come to rest, whether or not its sinks take commits. With wait it returns when the
// job rests, as long as ctx allows.
func (c *Client) Suspend(ctx context.Context, name string, wait bool) (Asked, error) {
	if err := c.allowed(ctx, name, "suspend", job.Created, job.Starting, job.Running, job.Draining, job.Suspending); err != nil {
		return Asked{}, err
	}
	h, err := c.ask(ctx, name, job.Intent.Suspended, func(h *job.Head) bool { return h.Phase == job.Suspending || h.Phase.AtRest() })
	if err == nil && wait {
		h, err = c.Await(ctx, name, func(h *job.Head) (bool, error) { return h != nil && h.Phase.AtRest(), nil })
	}
	switch {
	case err != nil:
		return Asked{}, err
	case h.Phase == job.Failed:
		return asked(h, ""), reasonFault(h)
	}
	return asked(h, "weir job resume "+name), nil
}

// savepointName is the form of a savepoint's name.
var savepointName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`)

// TakeSavepoint has a running job take an epoch and keep it under a name. It returns when the epoch is durable and protected.
func (c *Client) TakeSavepoint(ctx context.Context, name, savepoint string) (Asked, error) {
	if !savepointName.MatchString(savepoint) {
		return Asked{}, fault.New(fault.CLISavepoint, savepoint, "a name is up to 32 lower-case letters, digits and dashes", "job", name)
	}
	if err := c.allowed(ctx, name, "savepoint", job.Running, job.Draining); err != nil {
		return Asked{}, err
	}
	h, err := c.savepoint(ctx, name, func(i job.Intent, request string, at time.Time) job.Intent {
		return i.Savepointed(savepoint, request, at)
	})
	if err != nil {
		return Asked{}, err
	}
	return asked(h, "weir savepoints delete "+name+" "+savepoint), nil
}

// DropSavepoint lets a savepoint go, and what its sources keep for it; those of a job at rest do so when it goes on.
func (c *Client) DropSavepoint(ctx context.Context, name, savepoint string) (Asked, error) {
	h, err := c.Head(ctx, name)
	if err != nil {
		return Asked{}, err
	}
	if _, ok := h.Savepoint(savepoint); !ok {
		return Asked{}, noSavepoint(h, savepoint)
	}
	h, err = c.savepoint(ctx, name, func(i job.Intent, request string, at time.Time) job.Intent {
		return i.Unsavepointed(savepoint, request, at)
	})
	if err != nil {
		return Asked{}, err
	}
	return asked(h, "nothing can"), nil
}

func noSavepoint(h *job.Head, savepoint string) error {
	names := []string{}
	for _, p := range h.Savepoints {
		names = append(names, p.Name)
	}
	return fault.New(fault.CLISavepoint, savepoint, fmt.Sprintf("the job has no such savepoint, only %q", names), "job", h.Job)
}

// savepoint gives an order about savepoints and waits, as long as ctx allows, until it was carried out or refused.
func (c *Client) savepoint(ctx context.Context, name string, change func(i job.Intent, request string, at time.Time) job.Intent) (*job.Head, error) {
	var seq uint64
	id := request()
	_, err := c.reg.Ask(ctx, name, func(i job.Intent) (job.Intent, error) {
		i = change(i, id, time.Now())
		seq = i.Savepoint.Seq
		return i, nil
	})
	if err != nil {
		return nil, fmt.Errorf("ask job %s: %w", name, err)
	}
	h, err := c.Await(ctx, name, func(h *job.Head) (bool, error) { return h != nil && (h.Handled.Savepoint >= seq || over(h.Phase)), nil })
	if err != nil {
		return nil, err
	}
	return h, refused(h, job.OrderSavepoint, seq)
}

// refused is the error of an order that the leader did not carry out.
func refused(h *job.Head, order string, seq uint64) error {
	if r := h.Refused; r != nil && r.Order == order && r.Seq == seq {
		return fault.New(fault.CLISavepoint, h.Job, r.Text, "job", h.Job)
	}
	return nil
}

// SavepointInfo is one savepoint, for people.
type SavepointInfo struct {
	Name  string    `json:"name"`
	Epoch epoch.ID  `json:"epoch"`
	At    time.Time `json:"at"`
	// Spec is the digest of the spec that ran then; Current says that it is the one that runs now.
	Spec    string `json:"spec"`
	Current bool   `json:"current"`
	// Positions are those of the readers at the savepoint's cut.
	Positions map[string]string `json:"positions"`
}

// Savepoints lists the savepoints of a job, oldest first.
func (c *Client) Savepoints(ctx context.Context, name string) ([]SavepointInfo, error) {
	h, err := c.Head(ctx, name)
	if err != nil {
		return nil, err
	}
	all := []SavepointInfo{}
	for _, p := range h.Savepoints {
		m, err := c.reg.Manifest(ctx, name, p.Durable.Ref)
		if err != nil {
			return nil, fmt.Errorf("read savepoint %s of %s: %w", p.Name, name, err)
		}
		info := SavepointInfo{
			Name: p.Name, Epoch: p.Durable.Epoch, At: p.Durable.At, Spec: p.SpecDigest, Current: p.SpecDigest == h.SpecDigest,
			Positions: make(map[string]string),
		}
		for id, s := range m.Subtasks {
			if !s.Position.IsZero() {
				info.Positions[id.String()] = s.Position.String()
			}
		}
		all = append(all, info)
	}
	return all, nil
}

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
	h, err := c.Head(ctx, name)
	if err != nil {
		return Asked{}, err
	}
	running, err := c.Spec(ctx, h)
	if err != nil {
		return Asked{}, fmt.Errorf("read the spec of %s: %w", name, err)
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
	if err := refused(h, job.OrderRestore, seq); err != nil {
		return Asked{}, err
	}
	h, err = c.Await(ctx, name, func(h *job.Head) (bool, error) {
		switch {
		case h == nil:
			return false, nil
		case h.Phase.AtRest():
			return false, reasonFault(h)
		}
		return h.Phase.Active(), nil
	})
	if err != nil {
		return Asked{}, err
	}
	return asked(h, "nothing can; what the sinks had is still there"), nil
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

// Guarantee is what a job keeps at the moment.
type Guarantee struct {
	// Asked is that of the spec, Effective what holds now.
	Asked     spec.Guarantee `json:"asked"`
	Effective spec.Guarantee `json:"effective"`
	// Why says what lowers it.
	Why string `json:"why,omitempty"`
}

// guarantee judges what holds for a job: less than was asked while a restored one repeats rows at sinks where that shows.
func (c *Client) guarantee(ctx context.Context, h *job.Head, j *spec.Job) Guarantee {
	g := Guarantee{Asked: j.Guarantee, Effective: j.Guarantee}
	r := h.Restored
	if r == nil || !r.Repeat || h.Durable == nil || !slices.ContainsFunc(j.Sinks, func(k spec.Sink) bool { return k.Mode != spec.Upsert }) {
		return g
	}
	now, err := c.reg.Manifest(ctx, h.Job, h.Durable.Ref)
	if err == nil && r.Passed(now) {
		return g
	}
	g.Effective = spec.AtLeastOnce
	g.Why = fmt.Sprintf("rows between epoch %d and epoch %d come again", r.From.Epoch, r.Over.Epoch)
	return g
}
