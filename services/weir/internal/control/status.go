package control

import (
	"context"
	"fmt"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/progress"
	"weir.dev/weir/pkg/progress/gather"
	"weir.dev/weir/pkg/spec"
)

// The parts of a job's status are those of package progress: there is one reading of a job, whoever asks.
type (
	// Status is what is known of one job at one moment.
	Status = progress.Status
	// Source is the progress of one source, Reader that of one of its readers, Sink that of one sink.
	Source = progress.Source
	Reader = progress.Reader
	Sink   = progress.Sink
	// Guarantee is what a job keeps at the moment.
	Guarantee = progress.Guarantee
)

// Status reads everything about one job.
func (c *Client) Status(ctx context.Context, name string) (Status, error) {
	o, err := c.observe(ctx, name)
	if err != nil {
		return Status{}, err
	}
	return progress.Build(o), nil
}

// observe reads what is known of a job.
func (c *Client) observe(ctx context.Context, name string) (progress.Observation, error) {
	h, err := c.Head(ctx, name)
	if err != nil {
		return progress.Observation{}, err
	}
	return gather.New(c.conn, c.reg).Look(ctx, h)
}

// Jobs reads the heads of all jobs that are not deleted, by name.
func (c *Client) Jobs(ctx context.Context) ([]job.Head, error) {
	read, err := gather.New(c.conn, c.reg).Heads(ctx)
	if err != nil {
		return nil, err
	}
	heads := make([]job.Head, len(read))
	for i, h := range read {
		heads[i] = *h
	}
	return heads, nil
}

// Spec reads the spec a head runs.
func (c *Client) Spec(ctx context.Context, h *job.Head) (*spec.Job, error) {
	return c.reg.Spec(ctx, h.Job, h.SpecDigest)
}

// current reads a job's head and the spec it runs.
func (c *Client) current(ctx context.Context, name string) (*job.Head, *spec.Job, error) {
	h, err := c.Head(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	j, err := c.Spec(ctx, h)
	if err != nil {
		return nil, nil, fmt.Errorf("read the spec of %s: %w", name, err)
	}
	return h, j, nil
}

// History reads every manifest that is still kept, oldest first.
func (c *Client) History(ctx context.Context, h *job.Head) ([]epoch.Link, error) {
	if h.Durable == nil {
		return nil, nil
	}
	return c.reg.History(ctx, h.Job, h.Durable.Ref)
}
