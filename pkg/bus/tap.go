package bus

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"
)

// Message is one message as it passes by.
type Message struct {
	Subject string
	Header  Header
	Data    []byte
}

// Tap shows what is published to subjects from now on, for people. It reads by core NATS, because a work-queue stream
// refuses a second consumer; it disturbs nobody and may miss messages.
type Tap struct {
	l    *link
	sub  *nats.Subscription
	msgs chan *nats.Msg
}

// tapBuffer is the number of messages kept for a slow reader; beyond it they are dropped and counted.
const tapBuffer = 1024

// Tap opens a tap on a connection of its own, so that a slow reader cannot cost the service its control connection.
func (c *Conn) Tap(ctx context.Context, subject string) (*Tap, error) {
	l, err := c.dial(ctx, "tap", nil)
	if err != nil {
		return nil, fmt.Errorf("tap %s: %w", subject, foreign(err))
	}
	t := &Tap{l: l, msgs: make(chan *nats.Msg, tapBuffer)}
	if t.sub, err = l.nc.ChanSubscribe(subject, t.msgs); err != nil {
		l.close()
		return nil, fmt.Errorf("tap %s: %w", subject, foreign(err))
	}
	// The subscription is in force when the server has answered something sent after it.
	fctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	if err := l.nc.FlushWithContext(fctx); err != nil {
		l.close()
		return nil, fmt.Errorf("tap %s: %w", subject, c.denied.explain(foreign(err), subject))
	}
	return t, nil
}

// Next returns the next message that passes.
func (t *Tap) Next(ctx context.Context) (Message, error) {
	select {
	case m := <-t.msgs:
		if m == nil {
			return Message{}, ErrClosed
		}
		return Message{Subject: m.Subject, Header: Header(m.Header), Data: m.Data}, nil
	case <-ctx.Done():
		return Message{}, context.Cause(ctx)
	}
}

// Dropped is the number of messages that a slow reader has missed.
func (t *Tap) Dropped() int {
	n, err := t.sub.Dropped()
	if err != nil {
		return 0
	}
	return n
}

// Close ends the tap.
func (t *Tap) Close() { t.l.close() }
