package bus

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/plan"
)

// ReceiverConfig names what a receiver reads. Zero Heartbeat and PullBytes take the defaults.
type ReceiverConfig struct {
	Job     string
	Fence   fence.Token
	Subtask plan.SubtaskID
	// Heartbeat of the server while nothing is delivered; default 1 s.
	Heartbeat time.Duration
	// PullBytes bounds what one pull brings; default and least max_payload + 128 KiB.
	PullBytes int
}

// ackWait is never meant to fire: delayed acknowledgement holds messages for as long as an epoch takes, and a repeat
// would break the order.
const ackWait = 365 * 24 * time.Hour

// unheard is the pause before a consumer that nobody knows is looked for: in a cluster it may be known elsewhere already.
const unheard = 10 * time.Millisecond

// Paces of a receiver, in heartbeats. Pulls are short as long as messages come, so that the heartbeats of one that follows
// the last message are few; one that follows a pull without a message is long, and its heartbeats are rare. A loss is found
// that much later then, and nobody waits for it: what is sent on such a channel finds it at once, and so do the receivers
// that are at work.
const (
	briskExpiry = 5
	calmBeat    = 20
	calmExpiry  = 60
)

// receiveBatch bounds the number of messages of one pull.
const receiveBatch = 1024

// Receiver reads all channels into one subtask: one durable consumer in memory with explicit acknowledgement. It is for
// one goroutine, except for Delivery.Ack, which may be called anywhere.
type Receiver struct {
	l        *link
	pull     *puller
	release  func()
	cfg      ReceiverConfig
	stream   string
	created  time.Time // of the stream
	lastSeq  uint64    // highest stream sequence received
	consumed uint64    // last consumer sequence received
	doubt    error     // what made loss possible, until examine has decided
	closed   bool
	accepted int           // messages handed out
	acked    *atomic.Int64 // and acknowledged since
	pending  int           // unacknowledged when the receiver was opened
}

// Delivery is one message. Its data belongs to the holder.
type Delivery struct {
	Subject string
	Header  Header
	Data    []byte
	// Seq is the stream sequence. It orders nothing across attempts and proves nothing; Weir-Seq does.
	Seq uint64
	// Redelivered says that the server believes to have delivered it before. With acknowledgement waits of a year this
	// happens only when somebody meddles with the consumer.
	Redelivered bool

	l     *link
	reply string
	acked *atomic.Int64
	done  atomic.Bool
}

var ackBody = []byte("+ACK")

// Ack tells the server to drop the message. It does not wait and cannot fail: an acknowledgement that goes down with its
// connection is noticed by Next.
func (d *Delivery) Ack() {
	if !d.done.Swap(true) {
		d.acked.Add(1)
	}
	_ = d.l.publish(d.reply, "", ackBody)
}

// OpenReceiver makes the subtask's consumer, or takes over the one that exists, and is ready to read.
//
// MaxAckPending is unlimited, because at the default of 1000 unacknowledged messages the server stops delivering and a
// barrier behind them never arrives. [ErrStreamGone] when the attempt has no data stream.
func (c *Conn) OpenReceiver(ctx context.Context, cfg ReceiverConfig) (*Receiver, error) {
	if cfg.Heartbeat <= 0 {
		cfg.Heartbeat = time.Second
	}
	r, err := c.openReceiver(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open receiver %s on %s: %w", cfg.Subtask, DataStream(cfg.Job, cfg.Fence), err)
	}
	return r, nil
}

func (c *Conn) openReceiver(ctx context.Context, cfg ReceiverConfig) (*Receiver, error) {
	stream, name := DataStream(cfg.Job, cfg.Fence), EscapeToken(cfg.Subtask.String())
	info, err := c.ctl.streamInfo(ctx, stream)
	if err != nil {
		return nil, gone(c.denied.explain(err, "$JS.API.STREAM.INFO."+stream))
	}
	s, octx, cancel, err := c.ctl.limit(ctx)
	if err != nil {
		return nil, err
	}
	defer cancel()
	filter := DataFilter(cfg.Job, cfg.Fence, cfg.Subtask)
	cons, err := s.js.CreateOrUpdateConsumer(octx, stream, jetstream.ConsumerConfig{
		Durable:       name,
		Description:   "Weir: all channels into " + cfg.Subtask.String(),
		FilterSubject: filter,
		DeliverPolicy: jetstream.DeliverAllPolicy,
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       ackWait,
		MaxAckPending: -1,
		MaxDeliver:    -1,
		MemoryStorage: true,
		Metadata:      cfg.metadata(info.Config.Metadata[metaLife]),
	})
	if err != nil {
		return nil, gone(c.denied.explain(foreign(err), "$JS.API.CONSUMER.CREATE."+stream+"."+name+"."+filter))
	}
	l, release, err := c.take(ctx, &c.receiving, receiversPerLane, "data in")
	if err != nil {
		return nil, err
	}
	pull, err := newPuller(l, stream, name, receiveBatch, cfg.PullBytes,
		pace{expires: briskExpiry * cfg.Heartbeat, heartbeat: cfg.Heartbeat},
		pace{expires: calmExpiry * cfg.Heartbeat, heartbeat: calmBeat * cfg.Heartbeat})
	if err != nil {
		release()
		return nil, err
	}
	return &Receiver{
		l: l, pull: pull, release: release, cfg: cfg, stream: stream, created: info.Created,
		consumed: cons.CachedInfo().Delivered.Consumer, pending: cons.CachedInfo().NumAckPending, acked: new(atomic.Int64),
	}, nil
}

// metadata explains the consumer; the life is that of its stream, when it says one.
func (c ReceiverConfig) metadata(life string) map[string]string {
	m := map[string]string{
		metaRole: roleInput, metaJob: c.Job, metaFence: c.Fence.String(), metaVertex: string(c.Subtask.Vertex),
		metaSubtask: c.Subtask.String(),
	}
	if life != "" {
		m[metaLife] = life
	}
	return m
}

// Next returns the next message and blocks until there is one.
//
// After missed heartbeats or a lost connection it looks at stream and consumer: [ErrStreamGone] when one is gone, was
// made anew, or has gone back, or when messages or acknowledgements went down with a connection; [ErrStalled] when messages
// were delivered that have not arrived, or when the server gives no answer; otherwise nothing is missing and it reads on. After ErrStalled Next may be called again and looks again first.
// ctx's error changes nothing either. Others are final: [ErrClosed], [ErrTooBig].
func (r *Receiver) Next(ctx context.Context) (*Delivery, error) {
	for {
		if r.closed {
			return nil, ErrClosed
		}
		if r.doubt != nil {
			if err := r.examine(ctx); err != nil {
				return nil, fmt.Errorf("receive from %s: %w", r.stream, err)
			}
			r.doubt = nil
		}
		m, err := r.pull.fetch(ctx)
		switch {
		case err == nil:
			return r.accept(m)
		case errors.Is(err, errIdle):
		case errors.Is(err, ErrNotFound):
			return nil, fmt.Errorf("receive from %s: %w: %w", r.stream, ErrStreamGone, err)
		case errors.Is(err, ErrStalled), errors.Is(err, ErrDisconnected), errors.Is(err, ErrNoResponders):
			r.doubt = err
			if errors.Is(err, ErrNoResponders) && !pause(ctx, unheard) {
				return nil, context.Cause(ctx)
			}
		default:
			return nil, fmt.Errorf("receive from %s: %w", r.stream, err)
		}
	}
}

func (r *Receiver) accept(m *nats.Msg) (*Delivery, error) {
	md, err := parseMeta(m.Reply)
	if err != nil {
		return nil, err
	}
	r.consumed = max(r.consumed, md.consumerSeq)
	r.lastSeq = max(r.lastSeq, md.streamSeq)
	r.accepted++
	return &Delivery{
		Subject: m.Subject, Header: Header(m.Header), Data: m.Data, Seq: md.streamSeq, Redelivered: md.delivered > 1,
		l: r.l, reply: m.Reply, acked: r.acked,
	}, nil
}

// examine decides what a silence meant; nil: nothing is lost. Without a connection it tries again for as long as three
// heartbeats, then says ErrStalled.
func (r *Receiver) examine(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, missedHeartbeats*r.cfg.Heartbeat)
	defer cancel()
	var unacked error // as long as nobody has said otherwise
	for {
		err := r.compare(limited)
		if errors.Is(err, errUnacked) {
			unacked = err
		}
		if err == nil || errors.Is(err, ErrStreamGone) || errors.Is(err, ErrClosed) {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !pause(limited, r.cfg.Heartbeat/10) {
			if unacked != nil {
				return fmt.Errorf("%w: %w", ErrStreamGone, unacked)
			}
			return fmt.Errorf("%w: %w: %w", ErrStalled, r.doubt, err)
		}
	}
}

// errUnacked: acknowledgements went down with a connection. The messages stay in the stream for ever, its senders think
// that nobody reads them and stop.
var errUnacked = errors.New("acknowledgements are lost")

// compare holds what the server says about stream and consumer against what was received.
func (r *Receiver) compare(ctx context.Context) error {
	info, err := r.l.streamInfo(ctx, r.stream)
	if errors.Is(err, ErrNotFound) {
		return fmt.Errorf("%w: %w", ErrStreamGone, err)
	}
	if err != nil {
		return err
	}
	if !info.Created.Equal(r.created) {
		return fmt.Errorf("%w: the stream was made anew at %s", ErrStreamGone, info.Created.Format(time.RFC3339Nano))
	}
	if info.State.LastSeq < r.lastSeq {
		return fmt.Errorf("%w: last sequence %d is below %d that was received", ErrStreamGone, info.State.LastSeq, r.lastSeq)
	}
	open := r.accepted - int(r.acked.Load()) + r.pending // before the server is asked: it may only know of more of them
	var ci jetstream.ConsumerInfo
	err = r.l.request(ctx, "$JS.API.CONSUMER.INFO."+r.stream+"."+EscapeToken(r.cfg.Subtask.String()), nil, &ci)
	if errors.Is(err, ErrNotFound) {
		return fmt.Errorf("%w: %w", ErrStreamGone, err)
	}
	if err != nil {
		return err
	}
	// What was delivered into a connection that broke, maybe while the silence before it was looked into, never arrives
	// and is not repeated. Messages that wait unread on this side are not missing. Heartbeats among them hide some that
	// are for as long as the connection lives, which may still bring them; see [puller.bind].
	broken := errors.Is(r.doubt, errReplaced) || r.pull.severed() // before counting: then nothing more comes
	if missing := int64(ci.Delivered.Consumer) - int64(r.consumed) - int64(len(r.pull.msgs)); missing > 0 {
		err := fmt.Errorf("%d messages delivered and not received", missing)
		if broken {
			return fmt.Errorf("%w: connection lost: %w", ErrStreamGone, err)
		}
		return err
	}
	if lost := ci.NumAckPending - open - len(r.pull.msgs); lost > 0 {
		return fmt.Errorf("%w: of %d messages", errUnacked, lost)
	}
	return nil
}

// Buffered is the number of messages received and not yet taken by Next.
func (r *Receiver) Buffered() int { return len(r.pull.msgs) }

// Close stops reading. The consumer stays until its stream goes. It may be called twice, by the goroutine of Next.
func (r *Receiver) Close() {
	if r.closed {
		return
	}
	r.closed = true
	r.pull.close()
	r.release()
}
