package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/envelope"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/rows"
)

// headroom of max_payload is kept for headers.
const headroom = 8 << 10

// outbox numbers, tallies and publishes what a subtask sends. It is owned by the subtask's loop; only the gauge runs
// beside it.
type outbox struct {
	job   string
	fence fence.Token
	pub   Publisher
	edges []*outEdge
	// channels are all of them, for barriers and tallies; feedback is apart.
	channels []*outChannel
	feedback []*outChannel
	// passed is the last barrier sent, or the epoch the attempt was restored from.
	passed epoch.ID
	// last is the publisher's number of the last message.
	last    uint64
	claim   func(ctx context.Context, data []byte) (epoch.Object, error)
	payload int64
	buf     []byte
	gauge   *gauge
	meters  *meters
	// trace is what the envelopes of rows carry of their reader's span; nil when it is not sampled.
	trace map[string]string
}

// outEdge is one edge as this sender sees it.
type outEdge struct {
	partition plan.Partition
	channels  []*outChannel
	splitter  *rows.Splitter
	turn      int
}

// outChannel is the sending end of one channel.
type outChannel struct {
	channel plan.Channel
	subject string
	meter   *epoch.Meter
	seq     uint64
	window  *Window
}

// newOutbox makes the outbox of a subtask from the plan. It is nil for a subtask that sends nothing.
func newOutbox(d *plan.Deployment, self plan.SubtaskID, pub Publisher, maxPayload int64, g *gauge) *outbox {
	o := &outbox{job: d.Job, fence: d.Fence, pub: pub, payload: maxPayload - headroom, gauge: g}
	for _, e := range d.Outputs(self.Vertex) {
		edge := &outEdge{partition: e.Partition}
		for _, c := range d.Channels(e) {
			if c.From != self {
				continue
			}
			ch := &outChannel{
				channel: c, subject: bus.DataSubject(d.Job, d.Fence, c.To, c.From),
				meter: epoch.NewMeter(c), window: NewWindow(d.Window),
			}
			if e.Feedback {
				o.feedback = append(o.feedback, ch)
				continue
			}
			edge.channels = append(edge.channels, ch)
			o.channels = append(o.channels, ch)
		}
		if e.Feedback {
			continue
		}
		if e.Partition == plan.Hash && len(edge.channels) > 1 {
			edge.splitter = rows.NewSplitter(len(edge.channels))
		}
		o.edges = append(o.edges, edge)
	}
	return o
}

// Rows sends a batch down every edge. A batch for one receiver is encoded once, whatever the number of edges.
func (o *outbox) Rows(ctx context.Context, b *rows.Batch, position string) error {
	if b.NumRows() == 0 {
		return nil
	}
	whole := false
	for _, e := range o.edges {
		to := e.receivers()
		if e.splitter != nil {
			for i, part := range e.splitter.Split(b) {
				if part == nil {
					continue
				}
				if err := o.batch(ctx, e.channels[i:i+1], part, position, part == b && whole); err != nil {
					return err
				}
				whole = part == b
			}
			continue
		}
		if err := o.batch(ctx, to, b, position, whole); err != nil {
			return err
		}
		whole = true
	}
	return nil
}

// receivers is where the next whole batch of the edge goes.
func (e *outEdge) receivers() []*outChannel {
	switch {
	case e.partition == plan.Broadcast || len(e.channels) <= 1:
		return e.channels
	case e.partition == plan.Rebalance:
		at := e.turn % len(e.channels)
		e.turn++
		return e.channels[at : at+1]
	}
	return e.channels[:1]
}

// batch sends one encoded batch to some channels; encoded says that buf already holds it.
func (o *outbox) batch(ctx context.Context, to []*outChannel, b *rows.Batch, position string, encoded bool) error {
	if !encoded {
		var err error
		if o.buf, err = b.Encode(o.buf[:0]); err != nil {
			return err
		}
	}
	env := envelope.Envelope{
		Kind: envelope.Rows, Epoch: o.passed + 1, Table: string(b.Schema().Table()), RowCount: b.NumRows(),
		Position: position, Payload: o.buf, Trace: o.trace,
	}
	if int64(len(o.buf)) > o.payload {
		ref, err := o.check(ctx, o.buf)
		if err != nil {
			return err
		}
		env.Ref, env.Payload = ref, nil
	}
	for _, ch := range to {
		if err := o.room(ctx, ch, int64(len(env.Payload))); err != nil {
			return err
		}
		if err := o.send(ctx, ch, env); err != nil {
			return err
		}
	}
	return nil
}

// check stores a payload that no message can carry and returns the claim check.
func (o *outbox) check(ctx context.Context, data []byte) (string, error) {
	obj, err := o.claim(ctx, slices.Clone(data))
	if err != nil {
		return "", fmt.Errorf("store claim check of %d bytes: %w", len(data), err)
	}
	ref, err := json.Marshal(obj)
	return string(ref), err
}

// Status sends a message between an enumerator and a reader.
func (o *outbox) Status(ctx context.Context, to plan.SubtaskID, payload []byte) error {
	for _, ch := range slices.Concat(o.channels, o.feedback) {
		if ch.channel.To == to {
			if err := o.room(ctx, ch, int64(len(payload))); err != nil {
				return err
			}
			return o.send(ctx, ch, envelope.Envelope{Kind: envelope.Status, Payload: payload})
		}
	}
	return fmt.Errorf("send status: no channel to %s", to)
}

// Barrier sends barrier n on every channel and returns the tallies of the cut (T3). It waits for no window: the reserve
// of the stream's limit is for barriers. It returns when the barriers are stored, so that a lost one is noticed now and
// not at the deadline of the epoch.
func (o *outbox) Barrier(ctx context.Context, n epoch.ID, payload []byte) (map[plan.Channel]epoch.Tally, error) {
	cut, span := make(map[plan.Channel]epoch.Tally, len(o.channels)), carried(ctx)
	for _, ch := range o.channels {
		cut[ch.channel] = ch.meter.Total()
		if err := o.send(ctx, ch, envelope.Envelope{Kind: envelope.Barrier, Epoch: n, Payload: payload, Trace: span}); err != nil {
			return nil, err
		}
	}
	o.passed = n
	if err := o.pub.WaitAcked(ctx, o.last); err != nil {
		return nil, fmt.Errorf("send barrier %d: %w", n, err)
	}
	return cut, nil
}

func (o *outbox) send(ctx context.Context, ch *outChannel, env envelope.Envelope) error {
	env.Fence, env.Seq = o.fence, ch.seq+1
	n, err := o.pub.Publish(ctx, ch.subject, env.Header(), env.Payload)
	if err != nil {
		return fmt.Errorf("send %s %d on %s: %w", env.Kind, env.Seq, ch.channel, err)
	}
	o.meters.sent(ctx, &env)
	ch.seq++
	o.last = n
	body := env.Payload
	if env.Ref != "" {
		body = []byte(env.Ref)
	}
	ch.meter.Count(ch.meter.Digest(env.Seq, string(env.Kind), env.Table, body), env.RowCount)
	ch.window.Sent(n, int64(len(env.Payload)))
	return nil
}

// room waits until the window of a channel takes a message of this size.
func (o *outbox) room(ctx context.Context, ch *outChannel, size int64) error {
	var since time.Time
	for {
		if err := o.readings(); err != nil {
			return err
		}
		if ch.window.Half() || !ch.window.Room(size) { // a big message may wait for an empty window
			o.ask(ch)
		}
		if ch.window.Room(size) {
			if !since.IsZero() {
				o.meters.waited(ctx, time.Since(since))
			}
			return nil
		}
		if since.IsZero() {
			since = time.Now()
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-o.pub.Advanced():
			if err := o.pub.Err(); err != nil {
				return err
			}
		case r := <-o.gauge.answers:
			if err := o.apply(r); err != nil {
				return err
			}
		}
	}
}

// readings takes what the gauge has found, without waiting.
func (o *outbox) readings() error {
	select {
	case r := <-o.gauge.answers:
		return o.apply(r)
	default:
		return nil
	}
}

// ask lets the gauge look at every channel that is half full, unless it is already at it.
func (o *outbox) ask(ch *outChannel) {
	if o.gauge.busy {
		return
	}
	acked := o.pub.AckedThrough()
	q := question{filter: ch.subject, stored: map[*outChannel]uint64{ch: ch.window.Stored(acked)}}
	q.delay = ch.window.delay
	for _, other := range o.channels {
		if other != ch && other.window.Half() {
			q.filter = ""
			q.stored[other] = other.window.Stored(acked)
			q.delay = min(q.delay, other.window.delay)
		}
	}
	o.gauge.busy = true
	o.gauge.questions <- q
}

func (o *outbox) apply(r answer) error {
	o.gauge.busy = false
	if r.err != nil {
		if errors.Is(r.err, bus.ErrStreamGone) || errors.Is(r.err, bus.ErrDenied) || errors.Is(r.err, bus.ErrClosed) {
			return r.err
		}
		// No answer says nothing; the window stays as it is and the question is asked again, later.
		for ch := range r.stored {
			ch.window.Left(0, 0)
		}
		return nil
	}
	for ch, stored := range r.stored {
		ch.window.Left(stored, r.counts[ch.subject])
	}
	return nil
}

// gauge asks the stream how much of each channel is left, so that the loop need not wait for the answer. One question is
// under way at a time.
type gauge struct {
	bus       Bus
	job       string
	fence     fence.Token
	questions chan question
	answers   chan answer
	// busy belongs to the loop.
	busy bool
}

type question struct {
	filter string
	stored map[*outChannel]uint64
	delay  time.Duration
}

type answer struct {
	stored map[*outChannel]uint64
	counts map[string]uint64
	err    error
}

func newGauge(b Bus, d *plan.Deployment) *gauge {
	return &gauge{bus: b, job: d.Job, fence: d.Fence, questions: make(chan question, 1), answers: make(chan answer, 1)}
}

// run answers until ctx ends.
func (g *gauge) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case q := <-g.questions:
			t := time.NewTimer(q.delay)
			select {
			case <-t.C:
			case <-ctx.Done():
				t.Stop()
				return
			}
			counts, err := g.bus.Counts(ctx, g.job, g.fence, q.filter)
			g.answers <- answer{stored: maps.Clone(q.stored), counts: counts, err: err}
		}
	}
}
