package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/job"
)

// EventQuery says which events are wanted.
type EventQuery struct {
	// Job is the one they are of; empty for all.
	Job string
	// Since leaves out what was stored before, by the server's clock; the zero time begins with the oldest that is kept.
	Since time.Time
	// Newest leaves out all but so many of those that are there already; zero keeps all.
	Newest int
	// Follow goes on with what happens from now on, until the context ends.
	Follow bool
}

// eventPatience is how long a reading of the event stream may stand still before it is given up.
const eventPatience = 5 * time.Second

// Event is a notice as it was read. A message that is none has Err, and the subject is all that is known of it.
type Event struct {
	Subject string
	Notice  job.Notice
	Err     error
}

// Events hands the events of a query over, in the order in which they were stored. Each is handed over once, also when
// the connection is lost in between. Events decide nothing and are written behind what they tell: one that a leader did
// not come to write is missing. It ends with the error of each, with that of the context, or, unless it follows, with nil.
func (c *Client) Events(ctx context.Context, q EventQuery, each func(Event) error) error {
	name := q.Job
	if name == "" {
		name = "*"
	}
	w := c.conn.WatchEvents(ctx, name, q.Since)
	defer w.Close()
	r := eventReader{query: q, each: each}
	still := time.NewTimer(eventPatience)
	defer still.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-still.C:
			if !r.begun {
				return fmt.Errorf("read events: %w", errors.Join(errStill, r.trouble))
			}
		case u, ok := <-w.Updates():
			if !ok {
				return fmt.Errorf("read events: %w", bus.ErrClosed)
			}
			still.Reset(eventPatience)
			if done, err := r.take(u); done || err != nil {
				return err
			}
		}
	}
}

// errStill is the end of a reading that nobody answers.
var errStill = fault.Mark(fault.Transient, errors.New("the event stream gives no answer"))

// eventReader puts the updates of a watch in order: nothing twice, and of the past only what was asked for.
type eventReader struct {
	query EventQuery
	each  func(Event) error
	// begun says that the past has been handed over; kept are the newest of it until then.
	begun bool
	kept  []Event
	// revision and at are of the newest message that was read. A stream that was made anew counts from 1 again, and its
	// messages are younger.
	revision uint64
	at       time.Time
	// trouble is why the watch started again.
	trouble error
}

// take takes one update in; done says that everything that was asked for has been handed over.
func (r *eventReader) take(u bus.Update) (done bool, err error) {
	switch u.Kind {
	case bus.Put:
		if u.Entry.Revision <= r.revision && !u.Entry.Time.After(r.at) {
			return false, nil
		}
		r.revision, r.at = u.Entry.Revision, u.Entry.Time
		return false, r.put(eventOf(u.Entry))
	case bus.CaughtUp:
		if r.begun {
			return false, nil
		}
		r.begun = true
		for _, e := range r.kept {
			if err := r.each(e); err != nil {
				return false, err
			}
		}
		r.kept = nil
		return !r.query.Follow, nil
	case bus.Resync:
		r.trouble = u.Err
		if errors.Is(u.Err, bus.ErrDenied) {
			return false, fmt.Errorf("read events: %w", u.Err)
		}
	case bus.Deleted, bus.Expired: // nobody removes single events
	}
	return false, nil
}

func (r *eventReader) put(e Event) error {
	if r.begun || r.query.Newest == 0 {
		return r.each(e)
	}
	if r.kept = append(r.kept, e); len(r.kept) > r.query.Newest {
		r.kept = r.kept[1:]
	}
	return nil
}

func eventOf(e bus.Entry) Event {
	ev := Event{Subject: e.Key}
	if err := json.Unmarshal(e.Value, &ev.Notice); err != nil {
		ev.Err = fault.Wrap(err, fault.BusCodec, e.Key, fmt.Sprintf("message %d is no event: %s", e.Revision, err))
	}
	return ev
}
