package node

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/registry"
	"weir.dev/weir/pkg/source"
)

// holds gives subtasks names that one at a time may use, as leases.
type holds struct{ reg *registry.Registry }

// holder is the value of such a lease.
type holder struct {
	source.Identity

	// Nonce tells this hold from every other.
	Nonce string
}

// of makes the holds of a subtask.
func (h holds) of(by source.Identity) source.Hold {
	return func(ctx context.Context, name string) (context.Context, func(), error) {
		key := bus.HoldKey(name)
		value, err := json.Marshal(holder{by, rand.Text()})
		if err != nil {
			return nil, nil, fmt.Errorf("hold %s: %w", name, err)
		}
		lease, err := h.reg.Acquire(ctx, key, value)
		switch {
		case errors.Is(err, bus.ErrConflict):
			return nil, nil, h.held(ctx, name, key)
		case err != nil:
			return nil, nil, fmt.Errorf("hold %s: %w", name, err)
		}
		held, lose := context.WithCancelCause(ctx)
		var renewing sync.WaitGroup
		renewing.Go(func() { lose(lease.Keep(held)) })
		return held, sync.OnceFunc(func() {
			lose(context.Canceled)
			renewing.Wait()
			gone, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
			defer cancel()
			_ = lease.Release(gone) // else it expires
		}), nil
	}
}

// held says who has a name.
func (h holds) held(ctx context.Context, name, key string) error {
	e := &source.HeldError{Name: name}
	switch value, err := h.reg.Holder(ctx, key); {
	case errors.Is(err, bus.ErrNotFound): // it is free by now
		return e
	case err != nil:
		return fmt.Errorf("hold %s: %w", name, err)
	default:
		var by holder
		if err := json.Unmarshal(value, &by); err != nil {
			return fmt.Errorf("hold %s: %w", name, err)
		}
		e.By = by.Identity
		return e
	}
}
