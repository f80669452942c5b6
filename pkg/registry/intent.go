package registry

import (
	"context"
	"errors"
	"fmt"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/spec"
)

// Intent reads what users want of a job, with its revision; the zero Intent and revision 0 when nobody asked yet.
func (r *Registry) Intent(ctx context.Context, name string) (job.Intent, uint64, error) {
	e, err := r.reg.Get(ctx, bus.IntentKey(name))
	if errors.Is(err, bus.ErrNotFound) {
		return job.Intent{}, 0, nil
	}
	if err != nil {
		return job.Intent{}, 0, fmt.Errorf("read intent of job %s: %w", name, err)
	}
	i, err := DecodeIntent(e)
	return i, e.Revision, err
}

// DecodeIntent reads an entry of an intent key.
func DecodeIntent(e bus.Entry) (job.Intent, error) {
	var i job.Intent
	if err := decode(e, &i); err != nil {
		return job.Intent{}, err
	}
	return i, checkVersion(e.Key, i.Version, job.IntentVersion)
}

// WatchIntents follows the intents of all jobs; entries are read by [DecodeIntent], their keys by [JobOf].
func (r *Registry) WatchIntents(ctx context.Context) *bus.Watch {
	return r.reg.Watch(ctx, bus.IntentPattern)
}

// Ask changes what users want of a job: change gets the present intent (the zero one when there is none) and returns the
// new one, made by a method of [job.Intent]. It is called again when another request came first. An outcome that nobody
// knows is read back by the request id.
func (r *Registry) Ask(ctx context.Context, name string, change func(job.Intent) (job.Intent, error)) (job.Intent, error) {
	for {
		old, rev, err := r.Intent(ctx, name)
		if err != nil {
			return job.Intent{}, err
		}
		wanted, err := change(old)
		if err != nil {
			return job.Intent{}, err
		}
		b, err := encode(wanted)
		if err != nil {
			return job.Intent{}, fmt.Errorf("encode intent of job %s: %w", name, err)
		}
		if rev == 0 {
			_, err = r.reg.Create(ctx, bus.IntentKey(name), b)
		} else {
			_, err = r.reg.Update(ctx, bus.IntentKey(name), b, rev)
		}
		switch {
		case err == nil:
			return wanted, nil
		case errors.Is(err, bus.ErrUnknown):
			now, _, again := r.Intent(ctx, name)
			if again == nil && now.Request == wanted.Request && wanted.Request != "" {
				return wanted, nil
			}
			return job.Intent{}, fmt.Errorf("ask job %s: %w", name, errors.Join(err, again))
		case !errors.Is(err, bus.ErrConflict):
			return job.Intent{}, fmt.Errorf("ask job %s: %w", name, err)
		}
		if err := ctx.Err(); err != nil {
			return job.Intent{}, fmt.Errorf("ask job %s: %w", name, err)
		}
	}
}

func specKey(name, digest string) string { return bus.SpecKey(name) + "." + digest }

// PutSpec stores a spec under its digest, before the intent that names it. Its references are kept as written.
func (r *Registry) PutSpec(ctx context.Context, j *spec.Job) (digest string, err error) {
	digest = j.Digest()
	// Two texts of one digest may differ in layout; the first one stays.
	if _, err := r.reg.Get(ctx, specKey(j.Name, digest)); err == nil {
		return digest, nil
	}
	if err := r.once(ctx, specKey(j.Name, digest), j.Canonical()); err != nil && !errors.Is(err, bus.ErrConflict) {
		return "", fmt.Errorf("store spec of job %s: %w", j.Name, err)
	}
	return digest, nil
}

// Spec reads a stored spec. The error is a *fault.Error when the spec itself is wrong.
func (r *Registry) Spec(ctx context.Context, name, digest string) (*spec.Job, error) {
	e, err := r.reg.Get(ctx, specKey(name, digest))
	if err != nil {
		return nil, fmt.Errorf("read spec %s of job %s: %w", digest, name, err)
	}
	return spec.Parse(e.Value, "job "+name)
}
