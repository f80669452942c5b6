package cdcpostgres

import (
	"context"
	"sync"

	"weir.dev/weir/services/cdc-postgres/internal/pgrepl"
)

// item is one step of the log as it arrived: a chunk with the tables its Relation messages describe, in order.
type item struct {
	session int // of the link, that received it
	chunk   pgrepl.Chunk
	tables  []*described
	located []located // where keys lie that only the server can order
	// asText says that nothing follows: the log must be sent again from the reader's position in the text format.
	asText bool
}

// queue carries items from the goroutine that receives to the one that emits, bounded by bytes. A full queue stops the
// receiver and so the server; the goroutine that sends status messages does not pass through here.
type queue struct {
	limit int
	ready chan struct{} // holds a token when there may be an item or an error
	space chan struct{} // holds a token when there may be room

	mu    sync.Mutex
	items []item
	bytes int
	err   error
}

func newQueue(limit int) *queue {
	return &queue{limit: limit, ready: make(chan struct{}, 1), space: make(chan struct{}, 1)}
}

func token(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// push waits for room. An item larger than the limit passes alone.
func (q *queue) push(ctx context.Context, it item) error {
	size := len(it.chunk.Data)
	for {
		q.mu.Lock()
		if q.bytes == 0 || q.bytes+size <= q.limit {
			q.items = append(q.items, it)
			q.bytes += size
			q.mu.Unlock()
			token(q.ready)
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

// fail ends the queue behind what is in it. The first error stays.
func (q *queue) fail(err error) {
	q.mu.Lock()
	if q.err == nil {
		q.err = err
	}
	q.mu.Unlock()
	token(q.ready)
}

// pop returns the next item; ok is false when there is none yet. The error comes after the last item.
func (q *queue) pop() (it item, ok bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.items) == 0 {
		return item{}, false, q.err
	}
	it = q.items[0]
	q.items[0] = item{}
	q.items = q.items[1:]
	q.bytes -= len(it.chunk.Data)
	token(q.space)
	return it, true, nil
}
