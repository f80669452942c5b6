package cdcpostgres

import (
	"context"
	"sync"
)

// half is one side of the source, in a loop of its own.
type half struct {
	wake  chan struct{}
	mu    sync.Mutex
	calls []func()
}

func newHalf() *half { return &half{wake: make(chan struct{}, 1)} }

// post has f run in the half's loop, behind what was posted before.
func (h *half) post(f func()) {
	h.mu.Lock()
	h.calls = append(h.calls, f)
	h.mu.Unlock()
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// call posts f and waits for it.
func (h *half) call(ctx context.Context, f func()) {
	done := make(chan struct{})
	h.post(func() { f(); close(done) })
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// settle runs what was posted.
func (h *half) settle() {
	select {
	case <-h.wake:
	default:
	}
	h.mu.Lock()
	calls := h.calls
	h.calls = nil
	h.mu.Unlock()
	for _, f := range calls {
		f()
	}
}
