package bus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
)

// PublisherConfig bounds what a publisher has under way. Zero values take the defaults.
type PublisherConfig struct {
	// MaxInFlightBytes bounds the payload bytes without acknowledgement; default 16 MiB. One message bigger than the
	// bound is sent when nothing else is under way.
	MaxInFlightBytes int64
	// MaxInFlight bounds the messages without acknowledgement; default 2048.
	MaxInFlight int
	// AckTimeout is how long an acknowledgement may take before the result counts as unknown; default 10 s. Without a
	// bound a lost acknowledgement would hold its place for ever.
	AckTimeout time.Duration
}

func (c PublisherConfig) withDefaults() PublisherConfig {
	if c.MaxInFlightBytes <= 0 {
		c.MaxInFlightBytes = 16 << 20
	}
	if c.MaxInFlight <= 0 {
		c.MaxInFlight = 2048
	}
	if c.AckTimeout <= 0 {
		c.AckTimeout = 10 * time.Second
	}
	return c
}

// Publisher writes messages to streams, in order, with many under way. It numbers them from 1.
//
// Nothing is ever sent twice: the client library's retries put a repeated message behind later ones. So any refused,
// lost or unanswered publish, and any loss of the connection while something is under way, ends the publisher: the error
// stays, every later call returns it, and what was sent after the failed message may or may not be stored.
//
// It is meant for one publishing goroutine; all methods are safe for concurrent use.
type Publisher struct {
	l       *link
	cfg     PublisherConfig
	release []func()

	sendMu sync.Mutex // held from numbering a message to having handed it to the connection: keeps the order
	prefix string
	sub    *nats.Subscription
	unhook func() bool

	through atomic.Uint64 // all messages up to this number are stored

	mu       sync.Mutex
	s        *session   // written with sendMu held too
	flight   []inFlight // messages through+1 .. next-1
	next     uint64
	bytes    int64
	err      error
	changed  chan struct{} // closed and replaced whenever through or err moves and somebody waits
	waiting  int
	timer    *time.Timer
	advanced chan struct{}
}

// inFlight is a message that was sent and whose place in the order is not yet freed.
type inFlight struct {
	subject string
	size    int64
	sent    time.Time
	stored  bool
}

// NewPublisher opens a publisher on one of the data connections.
func (c *Conn) NewPublisher(ctx context.Context, cfg PublisherConfig) (*Publisher, error) {
	l, release, err := c.take(ctx, &c.sending, publishersPerLane, "data out")
	if err != nil {
		return nil, fmt.Errorf("open publisher: %w", err)
	}
	p := &Publisher{
		l: l, cfg: cfg.withDefaults(), next: 1,
		changed: make(chan struct{}), advanced: make(chan struct{}, 1),
	}
	p.release = []func(){release, c.denied.watch(p)}
	p.timer = time.AfterFunc(p.cfg.AckTimeout, p.onTimer)
	p.timer.Stop()
	if err := p.bind(); err != nil {
		p.Close()
		return nil, fmt.Errorf("open publisher: %w", err)
	}
	return p, nil
}

// bind listens for acknowledgements on the current session. sendMu is held, or nobody knows p yet; nothing is under way.
func (p *Publisher) bind() error {
	s, err := p.l.session()
	if err != nil {
		return err
	}
	prefix := s.nc.NewInbox() + "."
	sub, err := s.nc.Subscribe(prefix+"*", func(m *nats.Msg) { p.onAck(m, prefix) })
	if err != nil {
		return unsent(err)
	}
	// An acknowledgement must never be dropped on this side; their number is bounded by MaxInFlight.
	if err := sub.SetPendingLimits(-1, -1); err != nil {
		return unsent(err)
	}
	p.mu.Lock()
	p.s = s
	p.mu.Unlock()
	p.prefix, p.sub = prefix, sub
	p.unhook = context.AfterFunc(s.life, func() { p.onBroken(s) })
	return nil
}

// Publish sends one message and returns its number without waiting for the acknowledgement. It blocks while the bounds
// are reached, until ctx ends. Header and data are read before Publish returns; the caller may reuse them afterwards.
//
// Three failures do not end the publisher, because nothing was sent and no number was given: a message that is too big
// ([ErrTooBig]), a ctx that ends while waiting for room, and no connection while nothing is under way ([ErrDisconnected]).
func (p *Publisher) Publish(ctx context.Context, subject string, h Header, data []byte) (uint64, error) {
	if size, most := int64(len(data))+headerSize(h), p.l.payload(); size > most {
		return 0, fmt.Errorf("%w: %d bytes for %s, the server takes %d", ErrTooBig, size, subject, most)
	}
	p.sendMu.Lock()
	defer p.sendMu.Unlock()
	n, err := p.admit(ctx, subject, int64(len(data)))
	if err != nil {
		return 0, err
	}
	reply := p.prefix + strconv.FormatUint(n, 36)
	m := nats.Msg{Subject: subject, Reply: reply, Header: nats.Header(h), Data: data}
	if err := p.s.publish(&m); err != nil {
		p.fail(fmt.Errorf("publish message %d to %s: %w", n, subject, err))
		return 0, p.Err()
	}
	return n, nil
}

// admit waits for room and numbers a message.
func (p *Publisher) admit(ctx context.Context, subject string, size int64) (uint64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.await(ctx, func() bool {
		return len(p.flight) == 0 || len(p.flight) < p.cfg.MaxInFlight && p.bytes+size <= p.cfg.MaxInFlightBytes
	})
	if err != nil {
		return 0, err
	}
	if p.s.life.Err() != nil {
		// The next session. Nothing is under way: otherwise the loss would have ended the publisher.
		p.brokenLocked()
		if p.err != nil {
			return 0, p.err
		}
		p.mu.Unlock()
		err := p.bind()
		p.mu.Lock()
		if err != nil {
			return 0, fmt.Errorf("publish to %s: %w", subject, err)
		}
	}
	now := time.Now()
	if len(p.flight) == 0 {
		p.timer.Reset(p.cfg.AckTimeout)
	}
	n := p.next
	p.next++
	p.bytes += size
	p.flight = append(p.flight, inFlight{subject: subject, size: size, sent: now})
	return n, nil
}

// await blocks, with mu held on entry and exit, until ok, an error of the publisher, or the end of ctx.
func (p *Publisher) await(ctx context.Context, ok func() bool) error {
	for {
		if p.err != nil {
			return p.err
		}
		if ok() {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		changed := p.changed
		p.waiting++
		p.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		p.mu.Lock()
		p.waiting--
	}
}

// wake lets the waiters look again. mu is held.
func (p *Publisher) wake() {
	if p.waiting > 0 {
		close(p.changed)
		p.changed = make(chan struct{})
	}
	select {
	case p.advanced <- struct{}{}:
	default:
	}
}

var ackError = []byte(`"error":`)

func (p *Publisher) onAck(m *nats.Msg, prefix string) {
	n, err := strconv.ParseUint(m.Subject[len(prefix):], 36, 64)
	if err != nil {
		return // not one of our replies
	}
	// The full decoding is for refusals only; it would cost more than everything else here.
	if len(m.Data) == 0 || bytes.Contains(m.Data, ackError) {
		_, err = parsePubAck(m)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	first := p.next - uint64(len(p.flight))
	if n < first || n >= p.next {
		return // settled before
	}
	f := &p.flight[n-first]
	if err != nil {
		if errors.Is(err, ErrNoResponders) {
			// The subject belongs to no stream any more: this is how the bus ends an attempt.
			err = fmt.Errorf("%w: %w", ErrStreamGone, err)
		}
		p.failLocked(fmt.Errorf("publish message %d to %s: %w", n, f.subject, err))
		return
	}
	f.stored = true
	p.advance()
}

// advance frees the stored messages at the front. Acknowledgements of one stream come in order; those of several
// streams need not. mu is held.
func (p *Publisher) advance() {
	k := 0
	for k < len(p.flight) && p.flight[k].stored {
		p.bytes -= p.flight[k].size
		k++
	}
	if k == 0 || p.err != nil {
		return
	}
	clear(p.flight[:k])
	p.flight = p.flight[k:]
	p.through.Add(uint64(k))
	p.wake()
}

func (p *Publisher) onTimer() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.flight) == 0 || p.err != nil {
		return
	}
	head := p.flight[0]
	if age := time.Since(head.sent); age < p.cfg.AckTimeout {
		p.timer.Reset(p.cfg.AckTimeout - age)
		return
	}
	p.failLocked(fmt.Errorf("publish message %d to %s: %w: no acknowledgement within %s",
		p.through.Load()+1, head.subject, ErrUnknown, p.cfg.AckTimeout))
}

// onBroken ends the publisher at the end of its session when something is under way: the acknowledgement, if there is
// one, will never arrive. With nothing under way the publisher lives on.
func (p *Publisher) onBroken(s *session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.s == s {
		p.brokenLocked()
	}
}

func (p *Publisher) brokenLocked() {
	if n := len(p.flight); n > 0 {
		p.failLocked(fmt.Errorf("publish message %d to %s: %w: connection lost with %d messages under way",
			p.through.Load()+1, p.flight[0].subject, ErrUnknown, n))
	}
}

func (p *Publisher) onDenied(subject string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, f := range p.flight {
		if f.subject == subject {
			p.failLocked(fmt.Errorf("publish message %d to %s: %w", p.through.Load()+1+uint64(i), subject, ErrDenied))
			return
		}
	}
}

func (p *Publisher) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failLocked(err)
}

func (p *Publisher) failLocked(err error) {
	if p.err != nil {
		return
	}
	p.err = err
	p.flight, p.bytes = nil, 0
	p.timer.Stop()
	p.wake()
}

// Err is the error that ended the publisher, or nil.
func (p *Publisher) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// AckedThrough is the highest number for which it and all before it are stored. It never falls, and after an error it
// stays where it was.
func (p *Publisher) AckedThrough() uint64 { return p.through.Load() }

// Sent is the number of the last message handed to Publish.
func (p *Publisher) Sent() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.next - 1
}

// InFlight is the number and the payload bytes of messages without acknowledgement.
func (p *Publisher) InFlight() (messages int, bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.flight), p.bytes
}

// Advanced is signalled after AckedThrough has moved or the publisher has failed. Signals coalesce; it is for one
// reader, who then looks at AckedThrough and Err.
func (p *Publisher) Advanced() <-chan struct{} { return p.advanced }

// WaitAcked blocks until message n and all before it are stored.
func (p *Publisher) WaitAcked(ctx context.Context, n uint64) error {
	if p.through.Load() >= n {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.through.Load() < n {
		if err := p.await(ctx, func() bool { return p.through.Load() >= n }); err != nil {
			return err
		}
	}
	return nil
}

// Flush blocks until everything sent so far is stored.
func (p *Publisher) Flush(ctx context.Context) error {
	p.mu.Lock()
	n, err := p.next-1, p.err
	p.mu.Unlock()
	if err != nil {
		return err
	}
	return p.WaitAcked(ctx, n)
}

// Close ends the publisher without waiting; what is under way is left to its fate. Call Flush first to wait. It may be
// called twice, also while Publish blocks.
func (p *Publisher) Close() {
	p.fail(ErrClosed)
	p.sendMu.Lock()
	defer p.sendMu.Unlock()
	if p.sub != nil {
		p.unhook()
		_ = p.sub.Unsubscribe() // fails only when the connection is closed, which ends it as well
		p.sub = nil
	}
	for _, f := range p.release {
		f()
	}
	p.release = nil
}
