package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// link is one NATS connection that is kept alive: when a session ends another is opened, with jittered backoff, until
// close. Nothing survives a session: whoever subscribed on it does so again on the next, and thereby learns that
// something may be lost.
//
// The client library could reconnect by itself. It then hides the interruption from readers and writers, and its flush
// after each reconnect takes a timer from a pool of the process, which is fatal between two synctest bubbles. For the
// same reason its calls with a bare time-out (Flush, RTT, NextMsg, Request) are not used; those with a context are free
// of it.
type link struct {
	open func(ctx context.Context, closed nats.ConnHandler) (*nats.Conn, error)
	log  *slog.Logger
	back func() // called after each later session has begun; may be nil
	stop context.CancelFunc
	done chan struct{}

	mu         sync.Mutex
	cur        *session // nil while there is none
	closed     bool
	maxPayload int64
}

// session is the life of one connection.
type session struct {
	nc *nats.Conn
	js jetstream.JetStream
	// life ends with it, cause errBroken. Whatever was under way then, in either direction, may be lost.
	life context.Context //nolint:containedctx // it is what the session is
	end  context.CancelCauseFunc
}

// newLink opens the first session and keeps the link alive in the background.
func newLink(
	ctx context.Context, open func(context.Context, nats.ConnHandler) (*nats.Conn, error), log *slog.Logger, back func(),
) (*link, error) {
	l := &link{open: open, log: log, back: back, done: make(chan struct{})}
	s, err := l.begin(ctx)
	if err != nil {
		return nil, err
	}
	keepCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
	l.stop = stop
	go l.keep(keepCtx, s)
	return l, nil
}

// begin opens a session and makes it the current one.
func (l *link) begin(ctx context.Context) (*session, error) {
	s := new(session)
	s.life, s.end = context.WithCancelCause(context.WithoutCancel(ctx))
	nc, err := l.open(ctx, func(*nats.Conn) { l.ended(s) })
	if err != nil {
		s.end(err)
		return nil, err
	}
	js, err := jetstream.New(nc)
	if err != nil {
		s.end(err)
		nc.Close()
		return nil, err
	}
	s.nc, s.js = nc, js
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cur, l.maxPayload = s, nc.MaxPayload()
	return s, nil
}

// ended is told of the end of a session, by the library or by keep, once or more.
func (l *link) ended(s *session) {
	s.end(errBroken)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cur == s {
		l.cur = nil
	}
}

// keep opens session after session.
func (l *link) keep(ctx context.Context, s *session) {
	defer close(l.done)
	for {
		select {
		case <-s.life.Done():
			l.ended(s) // again, in case it ended before it became current
		case <-ctx.Done():
			s.nc.Close() // first: what is still sent must fail
			l.ended(s)
			return
		}
		l.log.WarnContext(ctx, "connection lost", "error", fmt.Sprint(s.nc.LastError()))
		for attempt := 1; ; attempt++ {
			if !pause(ctx, reconnectDelay(attempt)) {
				return
			}
			next, err := l.begin(ctx)
			if err == nil {
				s = next
				break
			}
			if attempt == 1 || attempt%32 == 0 {
				l.log.DebugContext(ctx, "cannot reconnect", "attempt", attempt, "error", err.Error())
			}
		}
		l.log.InfoContext(ctx, "connection back", "server", s.nc.ConnectedServerName())
		if l.back != nil {
			l.back()
		}
	}
}

// reconnectDelay grows from 50 ms to 2 s and is spread over half of that, so that a fleet does not return at once.
func reconnectDelay(attempts int) time.Duration {
	d := min(50*time.Millisecond<<min(max(attempts-1, 0), 6), 2*time.Second)
	return d/2 + rand.N(d/2)
}

// session returns the current session, ErrDisconnected or ErrClosed.
func (l *link) session() (*session, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return nil, ErrClosed
	case l.cur == nil:
		return nil, ErrDisconnected
	}
	return l.cur, nil
}

// await returns the current session, or the next one when it begins before ctx and opTimeout end.
func (l *link) await(ctx context.Context) (*session, error) {
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	for {
		s, err := l.session()
		if !errors.Is(err, ErrDisconnected) || !pause(ctx, 10*time.Millisecond) {
			return s, err
		}
	}
}

// payload is the server's max_payload as last seen.
func (l *link) payload() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.maxPayload
}

// publish sends a message that nobody acknowledges. An error says that it was not sent or only in part.
func (l *link) publish(subject, reply string, data []byte) error {
	s, err := l.session()
	if err != nil {
		return err
	}
	return s.publish(&nats.Msg{Subject: subject, Reply: reply, Data: data})
}

func (s *session) publish(m *nats.Msg) error {
	return unsent(s.nc.PublishMsg(m))
}

// subscribe reads a subject into ch, which stays open when the session ends.
func (s *session) subscribe(subject string, ch chan *nats.Msg) (*nats.Subscription, error) {
	sub, err := s.nc.ChanSubscribe(subject, ch)
	return sub, unsent(err)
}

// unsent is [foreign] for calls that wait for no answer. On a session that is closed already they have done nothing. A
// session closes a moment before the link knows: whoever asks the link in between is given one that is dead.
func unsent(err error) error {
	if errors.Is(err, nats.ErrConnectionClosed) {
		return fmt.Errorf("%w: %w", ErrDisconnected, err)
	}
	return foreign(err)
}

func (l *link) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.stop()
	<-l.done
}

// errBroken ends the requests that were under way when the connection was lost.
var errBroken = fmt.Errorf("%w: connection lost", ErrUnknown)

// limit bounds a request by opTimeout and by the session that carries it; the client library alone would let it wait
// for an answer that went down with the connection.
func (l *link) limit(ctx context.Context) (*session, context.Context, context.CancelFunc, error) {
	return l.limitTo(ctx, opTimeout)
}

func (l *link) limitTo(
	ctx context.Context, most time.Duration,
) (*session, context.Context, context.CancelFunc, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return nil, nil, nil, ErrClosed
	case l.cur == nil:
		return nil, nil, nil, ErrDisconnected
	}
	ctx, stop := context.WithTimeout(ctx, most)
	ctx, cancel := context.WithCancelCause(ctx)
	undo := context.AfterFunc(l.cur.life, func() { cancel(errBroken) })
	return l.cur, ctx, func() {
		undo()
		cancel(nil)
		stop()
	}, nil
}

// request asks the JetStream API and decodes the answer into resp. No reply in time is ErrUnknown.
func (l *link) request(ctx context.Context, subject string, req, resp any) error {
	s, ctx, cancel, err := l.limit(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	var body []byte
	if req != nil {
		if body, err = json.Marshal(req); err != nil {
			return err
		}
	}
	m, err := s.nc.RequestWithContext(ctx, subject, body)
	if err != nil {
		return foreign(err)
	}
	var refusal struct {
		Error *jetstream.APIError `json:"error"`
	}
	if err := json.Unmarshal(m.Data, &refusal); err != nil {
		return fmt.Errorf("decode answer of %s: %w", subject, err)
	}
	if refusal.Error != nil {
		return foreign(refusal.Error)
	}
	if resp == nil {
		return nil
	}
	if err := json.Unmarshal(m.Data, resp); err != nil {
		return fmt.Errorf("decode answer of %s: %w", subject, err)
	}
	return nil
}

// store publishes one message into a stream and waits for its acknowledgement. Retries of the client library are off:
// it would repeat a message whose first copy may be stored. It returns the stream sequence.
func (l *link) store(ctx context.Context, m *nats.Msg) (uint64, error) {
	s, ctx, cancel, err := l.limit(ctx)
	if err != nil {
		return 0, err
	}
	defer cancel()
	if int64(len(m.Data))+headerSize(Header(m.Header)) > s.nc.MaxPayload() {
		return 0, fmt.Errorf("%w: %d bytes for %s", ErrTooBig, len(m.Data), m.Subject)
	}
	r, err := s.nc.RequestMsgWithContext(ctx, m)
	if err != nil {
		return 0, foreign(err)
	}
	return parsePubAck(r)
}

// parsePubAck reads the stream's answer to a publish.
func parsePubAck(m *nats.Msg) (uint64, error) {
	if len(m.Data) == 0 && m.Header.Get("Status") == "503" {
		return 0, ErrNoResponders
	}
	var ack struct {
		Error  *jetstream.APIError `json:"error"`
		Stream string              `json:"stream"`
		Seq    uint64              `json:"seq"`
	}
	if err := json.Unmarshal(m.Data, &ack); err != nil {
		return 0, fmt.Errorf("%w: decode publish acknowledgement: %w", ErrUnknown, err)
	}
	if ack.Error != nil {
		return 0, foreign(ack.Error)
	}
	if ack.Stream == "" {
		return 0, fmt.Errorf("%w: publish acknowledgement names no stream", ErrUnknown)
	}
	return ack.Seq, nil
}
