package task

import (
	"context"
	"errors"
	"sync"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/job"
)

// Orders is what a node's reading of the head record means for its subtasks. Each replaces the one before; nothing is
// lost by that, because every part only grows within an attempt.
type Orders struct {
	// Head is the newest record of this attempt.
	Head job.Head
	// Emit lets the sources go, Drain tells them to fix their end.
	Emit, Drain bool
	// Barrier is the epoch to inject; Covered is what was durable when it was handed out (T4).
	Barrier epoch.ID
	Kind    epoch.Kind
	Covered epoch.ID
	// Durable may be made visible by committers; nil until the attempt runs.
	Durable *job.Durable
	// Committed is visible at every sink.
	Committed epoch.ID
}

// mailbox collects what happens to a subtask until its loop looks. The number of messages in it is bounded by the
// windows of the channels.
type mailbox struct {
	mu      sync.Mutex
	letters []Message
	orders  *Orders
	err     error
	// wake is readable when there may be something new.
	wake chan struct{}
}

func newMailbox() *mailbox { return &mailbox{wake: make(chan struct{}, 1)} }

func (m *mailbox) change(f func()) {
	m.mu.Lock()
	f()
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

func (m *mailbox) put(l Message)  { m.change(func() { m.letters = append(m.letters, l) }) }
func (m *mailbox) order(o Orders) { m.change(func() { m.orders = &o }) }
func (m *mailbox) end(err error)  { m.change(func() { m.err = errors.Join(m.err, err) }) }

// take empties the mailbox. The wake signal is taken first, so that what comes meanwhile wakes again.
func (m *mailbox) take() (letters []Message, orders *Orders, err error) {
	select {
	case <-m.wake:
	default:
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	letters, orders, err = m.letters, m.orders, m.err
	m.letters, m.orders = nil, nil
	return letters, orders, err
}

// stallPatience is how long a receiver may be stalled: longer than a replicated stream needs for a new leader. After it
// what was delivered and never arrived counts as lost.
const stallPatience = 12 * time.Second

// pump moves messages from the bus into the mailbox until ctx or the stream ends.
func (m *mailbox) pump(ctx context.Context, r Receiver) {
	var stalled time.Time
	for {
		l, err := r.Next(ctx)
		switch {
		case err == nil:
			stalled = time.Time{}
			m.put(l)
			continue
		case ctx.Err() != nil:
			return
		case errors.Is(err, bus.ErrStalled) && stalled.IsZero():
			stalled = time.Now()
			continue
		case errors.Is(err, bus.ErrStalled) && time.Since(stalled) < stallPatience:
			continue
		}
		m.end(err)
		return
	}
}
