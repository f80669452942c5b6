package halves

import (
	"context"
	"sync"
)

// Queue carries items from the goroutine that receives to the one that emits, bounded by bytes. A full queue stops the
// receiver and so the server.
type Queue[T any] struct {
	// Ready holds a token when there may be an item or an error.
	Ready chan struct{}

	limit int
	space chan struct{} // holds a token when there may be room

	mu    sync.Mutex
	items []sized[T]
	bytes int
	err   error
}

type sized[T any] struct {
	item T
	size int
}

// NewQueue makes an empty queue that holds about limit bytes.
func NewQueue[T any](limit int) *Queue[T] {
	return &Queue[T]{Ready: make(chan struct{}, 1), limit: limit, space: make(chan struct{}, 1)}
}

// Push waits for room. An item larger than the limit passes alone.
func (q *Queue[T]) Push(ctx context.Context, item T, size int) error {
	for {
		q.mu.Lock()
		if q.bytes == 0 || q.bytes+size <= q.limit {
			q.items = append(q.items, sized[T]{item, size})
			q.bytes += size
			q.mu.Unlock()
			Token(q.Ready)
			return nil
		}
		q.mu.Unlock()
		select {
		case <-q.space:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Fail ends the queue behind what is in it. The first error stays.
func (q *Queue[T]) Fail(err error) {
	q.mu.Lock()
	if q.err == nil {
		q.err = err
	}
	q.mu.Unlock()
	Token(q.Ready)
}

// Pop returns the next item; ok is false when there is none yet. The error comes after the last item.
func (q *Queue[T]) Pop() (item T, ok bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) == 0 {
		return item, false, q.err
	}
	it := q.items[0]
	q.items[0] = sized[T]{}
	q.items = q.items[1:]
	q.bytes -= it.size
	Token(q.space)
	return it.item, true, nil
}
