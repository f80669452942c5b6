package registry

import (
	"context"
	"encoding/json"
	"fmt"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/plan"
)

// PutPlan stores an attempt's plan create-only under (fence, term) and returns its reference. Only the leader of the
// term may call it; calling it again with the same plan is success.
func (r *Registry) PutPlan(ctx context.Context, d *plan.Deployment, term uint64) (job.PlanRef, error) {
	b := d.Bytes()
	ref := job.PlanRef{Fence: d.Fence, Key: bus.PlanKey(d.Job, d.Fence, term), Digest: plan.Digest(b)}
	if err := r.once(ctx, ref.Key, b); err != nil {
		return job.PlanRef{}, fmt.Errorf("store plan of job %s, fence %d: %w", d.Job, d.Fence, err)
	}
	return ref, nil
}

// Plan reads a plan and checks its digest.
func (r *Registry) Plan(ctx context.Context, ref job.PlanRef) (*plan.Deployment, error) {
	e, err := r.reg.Get(ctx, ref.Key)
	if err != nil {
		return nil, fmt.Errorf("read plan %s: %w", ref.Key, err)
	}
	if got := plan.Digest(e.Value); got != ref.Digest {
		return nil, fault.New(fault.RegCorrupt, ref.Key, fmt.Sprintf("its digest is %s, the head says %s", got, ref.Digest))
	}
	var d plan.Deployment
	if err := json.Unmarshal(e.Value, &d); err != nil {
		return nil, fault.Wrap(err, fault.RegCorrupt, ref.Key, err.Error())
	}
	return &d, nil
}
