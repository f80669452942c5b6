package control

import (
	"context"
	"fmt"

	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/plan"
)

// Intent reads what a user asked of a job last.
func (c *Client) Intent(ctx context.Context, name string) (job.Intent, error) {
	i, _, err := c.reg.Intent(ctx, name)
	if err != nil {
		return i, fmt.Errorf("read the intent of %s: %w", name, err)
	}
	return i, nil
}

// Deployment reads the plan that a head names.
func (c *Client) Deployment(ctx context.Context, ref job.PlanRef) (*plan.Deployment, error) {
	return c.reg.Plan(ctx, ref)
}

// Nodes reads the leases of all processes that host subtasks.
func (c *Client) Nodes(ctx context.Context) ([]job.NodeLease, error) { return c.reg.Nodes(ctx) }
