package control

import (
	"context"
	"fmt"
	"slices"

	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/spec"
)

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
