package registry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/job"
)

// Head reads a job's head record. A missing one is a View with a nil Head, not an error: it means stop.
func (r *Registry) Head(ctx context.Context, name string) (job.View, error) {
	e, err := r.reg.Get(ctx, bus.HeadKey(name))
	if errors.Is(err, bus.ErrNotFound) {
		return job.View{At: time.Now()}, nil
	}
	if err != nil {
		return job.View{}, fmt.Errorf("read head of job %s: %w", name, err)
	}
	return DecodeHead(e)
}

// Heads reads the heads of these jobs, or of all jobs when none is named, as one snapshot. Jobs without a head are
// absent from the result. A record that has not changed since the last call is the same one, so nobody may change it.
func (r *Registry) Heads(ctx context.Context, names ...string) (map[string]job.View, error) {
	patterns := []string{bus.HeadPattern}
	if len(names) > 0 {
		patterns = patterns[:0]
		for _, n := range names {
			patterns = append(patterns, bus.HeadKey(n))
		}
	}
	es, err := r.reg.GetMany(ctx, patterns...)
	if err != nil {
		return nil, fmt.Errorf("read heads: %w", err)
	}
	views := make(map[string]job.View, len(es))
	for _, e := range es {
		name, _, ok := JobOf(e.Key)
		if !ok {
			continue
		}
		v, err := r.heads.decode(e)
		if err != nil {
			return nil, err
		}
		views[name] = v
	}
	if len(names) == 0 {
		r.heads.keep(views)
	}
	return views, nil
}

// Mark is where the registry is: while it does not change, no head does.
func (r *Registry) Mark(ctx context.Context) (bus.Mark, error) {
	m, err := r.reg.Mark(ctx)
	if err != nil {
		return m, fmt.Errorf("look at the registry: %w", err)
	}
	return m, nil
}

// DecodeHead reads an entry of a head key.
func DecodeHead(e bus.Entry) (job.View, error) {
	var h job.Head
	if err := decode(e, &h); err != nil {
		return job.View{}, err
	}
	if err := checkVersion(e.Key, h.Version, job.HeadVersion); err != nil {
		return job.View{}, err
	}
	return job.View{Head: &h, Revision: e.Revision, At: time.Now()}, nil
}

// WatchHeads follows the heads of all jobs; entries are read by [DecodeHead], their keys by [JobOf].
func (r *Registry) WatchHeads(ctx context.Context) *bus.Watch {
	return r.reg.Watch(ctx, bus.HeadPattern)
}

// WatchHead follows one job's head.
func (r *Registry) WatchHead(ctx context.Context, name string) *bus.Watch {
	return r.reg.Watch(ctx, bus.HeadKey(name))
}

// WriteHead stores a head by CAS on the revision last read, 0 for "must not exist". Only the leader may call it.
// bus.ErrConflict: another write came first. bus.ErrUnknown: it may have been stored, or may yet be.
func (r *Registry) WriteHead(ctx context.Context, h *job.Head, expect uint64) (revision uint64, err error) {
	b, err := encode(h)
	if err != nil {
		return 0, fmt.Errorf("encode head of job %s: %w", h.Job, err)
	}
	if expect == 0 {
		revision, err = r.reg.Create(ctx, bus.HeadKey(h.Job), b)
	} else {
		revision, err = r.reg.Update(ctx, bus.HeadKey(h.Job), b, expect)
	}
	if err != nil {
		return 0, fmt.Errorf("write head of job %s: %w", h.Job, err)
	}
	return revision, nil
}
