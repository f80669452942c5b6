package cdcpostgres

import (
	"context"
	"fmt"
	"time"

	"weir.dev/weir/pkg/position"
	"weir.dev/weir/pkg/source"
)

const (
	// maxBatchRows ends a batch however small its rows are.
	maxBatchRows = 8192
	// linger is how long a row waits for others to share its batch.
	linger = 5 * time.Millisecond
)

// grown ends the batch of a table that has become large enough. The size of the builder costs a look at every column,
// so it is asked only when the bytes on the wire say that it may have changed much.
func (r *reader) grown(ctx context.Context, out source.Output, t *table, size int) error {
	n := t.builder.Rows()
	if t.since.IsZero() {
		t.since = time.Now()
		r.pending = append(r.pending, t)
	}
	t.unseen += size + 32
	if n < maxBatchRows && t.unseen < r.look {
		return nil
	}
	t.unseen = 0
	if n < maxBatchRows && int64(t.builder.Bytes()) < r.batch {
		return nil
	}
	return r.flush(ctx, out, t)
}

// flushOld ends the batches that have waited long enough.
func (r *reader) flushOld(ctx context.Context, out source.Output) error {
	now := time.Now()
	for len(r.pending) > 0 && now.Sub(r.pending[0].since) >= linger {
		if err := r.flush(ctx, out, r.pending[0]); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) flushAll(ctx context.Context, out source.Output) error {
	for len(r.pending) > 0 {
		if err := r.flush(ctx, out, r.pending[0]); err != nil {
			return err
		}
	}
	return nil
}

// flush emits the rows of one table.
func (r *reader) flush(ctx context.Context, out source.Output, t *table) error {
	for i := range r.pending {
		if r.pending[i] == t {
			r.pending = append(r.pending[:i], r.pending[i+1:]...)
			break
		}
	}
	t.since, t.unseen = time.Time{}, 0
	n := t.builder.Rows()
	if n == 0 {
		return nil
	}
	b, err := t.builder.Flush()
	if err != nil {
		return r.undecodable(err)
	}
	var at position.Position // none for the rows of a chunk
	if r.tracker != nil {
		at = r.tracker.Position().Public()
	}
	if err := out.Emit(ctx, *b, at); err != nil {
		return fmt.Errorf("emit rows of %s: %w", t.id(), err)
	}
	r.input = true
	r.progress.emitted(ctx, t.counter, n, b.Ts(n-1))
	return nil
}
