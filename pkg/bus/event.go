package bus

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
)

// PublishEvent stores an event for people: what happened to a job. Events decide nothing.
func (c *Conn) PublishEvent(ctx context.Context, job, kind string, data []byte) error {
	s := EventSubject(job, kind)
	if _, err := c.ctl.store(ctx, &nats.Msg{Subject: s, Data: data}); err != nil {
		return fmt.Errorf("publish event %s: %w", s, c.denied.explain(err, s))
	}
	return nil
}

// WatchEvents delivers the events of a job, or of all jobs for "*", stored since the given time, then each new one; the
// zero time is the oldest event kept. After a [Resync] they come again from the same time; Entry.Revision tells which
// are known.
func (c *Conn) WatchEvents(ctx context.Context, job string, since time.Time) *Watch {
	return c.watch(ctx, watchSpec{stream: EventStream, filter: EventFilter(job), since: since})
}
