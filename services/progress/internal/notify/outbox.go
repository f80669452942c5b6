package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"weir.dev/weir/pkg/bus"
)

// Key is the outbox's in the bucket weir_progress. It is no job's: their names begin with a letter.
const Key = "_webhook.outbox"

// Bounds of the outbox: it takes nothing in while it has so many events or bytes.
const (
	mostEvents = 64
	mostBytes  = 256 << 10
)

// outbox is the stored state.
type outbox struct {
	Version int `json:"version"`
	// Holder is the instance that sends, until it has not written for the hold.
	Holder string    `json:"holder"`
	Until  time.Time `json:"until"`
	// Mark is the last notice that was taken in, At when it was stored: a stream that was made anew counts from one.
	Mark uint64          `json:"mark"`
	At   time.Time       `json:"at"`
	Jobs map[string]told `json:"jobs"`
	// Pending are the events that were not delivered yet, oldest first.
	Pending []Event `json:"pending"`
}

// knows reports whether a notice was taken in before.
func (o *outbox) knows(e *bus.Entry) bool {
	return e.Time.Before(o.At) || e.Time.Equal(o.At) && e.Revision <= o.Mark
}

func (o *outbox) full() bool { return len(o.Pending) >= mostEvents }

// box reads and writes the outbox by compare-and-swap.
type box struct {
	bucket   *bus.Bucket
	revision uint64
}

func (b *box) load(ctx context.Context) (outbox, error) {
	o := outbox{Version: 1, Jobs: make(map[string]told)}
	e, err := b.bucket.Get(ctx, Key)
	switch {
	case errors.Is(err, bus.ErrNotFound):
		b.revision = 0
		return o, nil
	case err != nil:
		return o, fmt.Errorf("read the outbox: %w", err)
	}
	if err := json.Unmarshal(e.Value, &o); err != nil {
		return o, fmt.Errorf("read the outbox: %w", err)
	}
	if o.Jobs == nil {
		o.Jobs = make(map[string]told)
	}
	b.revision = e.Revision
	return o, nil
}

// save fails with [bus.ErrConflict] when another instance has written.
func (b *box) save(ctx context.Context, o *outbox) error {
	body, err := json.Marshal(o)
	if err != nil {
		return fmt.Errorf("encode the outbox: %w", err)
	}
	if b.revision == 0 {
		b.revision, err = b.bucket.Create(ctx, Key, body)
	} else {
		b.revision, err = b.bucket.Update(ctx, Key, body, b.revision)
	}
	if err != nil {
		return fmt.Errorf("write the outbox: %w", err)
	}
	return nil
}
