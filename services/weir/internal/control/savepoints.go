package control

import (
	"context"
	"fmt"
	"regexp"
	"time"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/job"
)

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
	err := c.intend(ctx, name, func(i job.Intent, request string, at time.Time) job.Intent {
		i = change(i, request, at)
		seq = i.Savepoint.Seq
		return i
	})
	if err != nil {
		return nil, err
	}
	h, err := c.Await(ctx, name, func(h *job.Head) (bool, error) { return h != nil && (h.Handled.Savepoint >= seq || over(h.Phase)), nil })
	if err != nil {
		return nil, err
	}
	return h, refused(h, fault.CLISavepoint, job.OrderSavepoint, seq)
}

// refused is the error of an order that the leader did not carry out.
func refused(h *job.Head, code fault.Code, order string, seq uint64) error {
	if r := h.Refused; r != nil && r.Order == order && r.Seq == seq {
		return fault.New(code, h.Job, r.Text, "job", h.Job)
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
		for id, at := range m.Positions() {
			info.Positions[id.String()] = at.String()
		}
		all = append(all, info)
	}
	return all, nil
}
