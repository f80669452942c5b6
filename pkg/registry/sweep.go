package registry

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fence"
)

// DropManifest removes every manifest stored under an epoch id. Only the leader may call it, and only for an id that
// nothing can name again.
func (r *Registry) DropManifest(ctx context.Context, name string, id epoch.ID) error {
	return r.reg.PurgeSubject(ctx, strings.TrimSuffix(bus.EpochKey(name, id, 0), "0")+"*")
}

// DropPlans removes the plans of the job's attempts below a fence. Only the leader may call it.
func (r *Registry) DropPlans(ctx context.Context, name string, below fence.Token) error {
	keys, err := r.reg.Keys(ctx, strings.TrimSuffix(bus.PlanKey(name, 0, 0), "0.0")+">")
	if err != nil {
		return fmt.Errorf("list plans of job %s: %w", name, err)
	}
	var failed []error
	for _, k := range keys {
		parts := strings.Split(k, ".")
		f, err := fence.ParseToken(parts[len(parts)-2])
		if err == nil && f < below {
			err = r.reg.PurgeSubject(ctx, k)
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// EraseJob removes every record of a job but its head and intent, which keep its counters, and its specs, one of which a
// new request may name already. Only the leader may call
// it, for a life that is over.
func (r *Registry) EraseJob(ctx context.Context, name string) error {
	var failed []error
	for _, part := range []string{".plan.>", ".epoch.>", ".savepoint.>"} {
		failed = append(failed, r.reg.PurgeSubject(ctx, strings.TrimSuffix(bus.HeadKey(name), ".head")+part))
	}
	return errors.Join(failed...)
}
