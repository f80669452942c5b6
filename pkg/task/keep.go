package task

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/pkg/telemetry"
)

// keeping has a source keep what savepoints need, beside the enumerator's loop: the barrier of a savepoint waits for it, everything
// else goes on. A source that keeps its log by itself has nothing to be asked.
type keeping struct {
	keeper source.Keeper // nil when there is nothing to be asked
	log    *slog.Logger
	wake   func()

	done   sync.WaitGroup // of the asking
	answer chan error
	busy   bool
	asked  bool       // at least once in this attempt
	all    []epoch.ID // what was asked for last
	taking epoch.ID   // the savepoint among them that was being taken
	taken  epoch.ID   // the last savepoint that was answered for
	why    string     // what keeps it from being one
}

func newKeeping(e source.Enumerator, log *slog.Logger, wake func()) *keeping {
	k, _ := e.(source.Keeper)
	return &keeping{keeper: k, log: log, wake: wake, answer: make(chan error, 1)}
}

// look takes an answer in and asks again, as long as ctx lives, when the head names other epochs.
func (k *keeping) look(ctx context.Context, h *job.Head) {
	if k.keeper == nil {
		return
	}
	select {
	case err := <-k.answer:
		k.busy, k.taken, k.why = false, k.taking, ""
		if err != nil {
			k.why = fault.Of(err).Error()
			k.log.WarnContext(ctx, "the source does not keep what savepoints need", slog.Any("epochs", k.all), telemetry.Err(err))
		}
	default:
	}
	all := h.Kept()
	if k.busy || k.asked && slices.Equal(all, k.all) {
		return
	}
	k.busy, k.asked, k.all, k.taking = true, true, all, 0
	if f := h.InFlight; f != nil && f.Savepoint != "" {
		k.taking = f.Epoch
	}
	taking := k.taking
	k.done.Go(func() {
		k.answer <- k.keeper.Keep(ctx, taking, all)
		k.wake()
	})
}

// passes reports whether the barrier of an epoch may pass. declined says why the epoch is to be none.
func (k *keeping) passes(h *job.Head, n epoch.ID) (declined string, ok bool) {
	f := h.InFlight
	switch {
	case k.keeper == nil, f == nil, f.Epoch != n, f.Savepoint == "":
		return "", true
	case k.taken == n:
		return k.why, true
	}
	return "", false
}
