package cdcmysql

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"weir.dev/weir/pkg/epoch"
)

// segment is how much of a table without a key a reader holds.
const segment = 16 << 10

// heap is a store that forgets what the last cut does not name as soon as something is read back. It can be told to stand still.
type heap struct {
	mu     sync.Mutex
	next   int
	data   map[string][]byte
	named  []epoch.Object // by the last cut
	puts   int            // how many more are answered
	gets   int
	bytes  int // of the largest object
	waits  chan struct{}
	waited bool
}

func newHeap() *heap {
	return &heap{data: make(map[string][]byte), puts: 1 << 30, gets: 1 << 30, waits: make(chan struct{})}
}

// allow lets so many more calls pass; the next one waits until its caller gives up, and waits is closed then.
func (h *heap) allow(puts, gets int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.puts, h.gets, h.waits, h.waited = puts, gets, make(chan struct{}), false
}

// name takes what a cut names.
func (h *heap) name(_ epoch.ID, enum, read []epoch.Object) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.named = slices.Concat(enum, read)
}

// pass takes one of the calls that are left.
func (h *heap) pass(ctx context.Context, left *int) error {
	h.mu.Lock()
	*left--
	blocked := *left < 0
	if blocked && !h.waited {
		h.waited = true
		close(h.waits)
	}
	h.mu.Unlock()
	if blocked {
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

func (h *heap) Put(ctx context.Context, data []byte) (epoch.Object, error) {
	if err := h.pass(ctx, &h.puts); err != nil {
		return epoch.Object{}, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.next++
	name := fmt.Sprint("object ", h.next)
	h.data[name], h.bytes = slices.Clone(data), max(h.bytes, len(data))
	return epoch.Object{Subject: name, Size: int64(len(data))}, nil
}

func (h *heap) Get(ctx context.Context, o epoch.Object) ([]byte, error) {
	if err := h.pass(ctx, &h.gets); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.ContainsFunc(h.named, func(n epoch.Object) bool { return n.Subject == o.Subject }) {
		return nil, fmt.Errorf("%s is read, which the last cut does not name", o.Subject)
	}
	return h.data[o.Subject], nil
}
