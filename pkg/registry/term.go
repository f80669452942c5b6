package registry

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/fault"
)

// RaiseTerm takes the next term for a leader that holds the lease. Terms only grow, and no two leaders get the same.
func (r *Registry) RaiseTerm(ctx context.Context) (uint64, error) {
	for {
		var term, rev uint64
		e, err := r.reg.Get(ctx, bus.LeaderTermKey)
		switch {
		case err == nil:
			if term, err = strconv.ParseUint(string(e.Value), 10, 64); err != nil {
				return 0, fault.Wrap(err, fault.RegCorrupt, bus.LeaderTermKey, err.Error())
			}
			rev = e.Revision
		case !errors.Is(err, bus.ErrNotFound):
			return 0, fmt.Errorf("raise term: %w", err)
		}
		value := []byte(strconv.FormatUint(term+1, 10))
		if rev == 0 {
			_, err = r.reg.Create(ctx, bus.LeaderTermKey, value)
		} else {
			_, err = r.reg.Update(ctx, bus.LeaderTermKey, value, rev)
		}
		switch {
		case err == nil:
			return term + 1, nil
		case errors.Is(err, bus.ErrConflict), errors.Is(err, bus.ErrUnknown):
			// A term whose write is in doubt is never used; the next one is.
		default:
			return 0, fmt.Errorf("raise term: %w", err)
		}
		if err := ctx.Err(); err != nil {
			return 0, fmt.Errorf("raise term: %w", err)
		}
	}
}
