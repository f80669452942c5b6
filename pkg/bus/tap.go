package bus

import (
	"context"
	"errors"
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
	s    *session
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
	if err := t.bind(ctx, subject); err != nil {
		l.close()
		return nil, fmt.Errorf("tap %s: %w", subject, c.denied.explain(err, subject))
	}
	return t, nil
}

func (t *Tap) bind(ctx context.Context, subject string) error {
	s, ctx, cancel, err := t.l.limit(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	if t.sub, err = s.subscribe(subject, t.msgs); err != nil {
		return err
	}
	t.s = s
	// The subscription is in force when the server has answered something sent after it.
	return foreign(s.nc.FlushWithContext(ctx))
}

// Next returns the next message that passes. A lost connection ends the tap with [ErrDisconnected].
func (t *Tap) Next(ctx context.Context) (Message, error) {
	select {
	case m := <-t.msgs:
		return Message{Subject: m.Subject, Header: Header(m.Header), Data: m.Data}, nil
	case <-t.s.life.Done():
		return Message{}, t.ended()
	case <-ctx.Done():
		return Message{}, context.Cause(ctx)
	}
}

func (t *Tap) ended() error {
	if _, err := t.l.session(); errors.Is(err, ErrClosed) {
		return ErrClosed
	}
	return fmt.Errorf("%w: the tap has ended", ErrDisconnected)
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
