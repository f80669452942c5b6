package task

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"weir.dev/weir/pkg/envelope"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/sink"
)

// writer is the state of a writer's loop.
type writer struct {
	s       *Subtask
	w       sink.Writer
	align   *epoch.Align[letter]
	staging staging
	decoder rows.Decoder
	// passed is the last barrier handled, or the epoch the attempt was restored from.
	passed epoch.ID
	// queue holds messages that the loop has taken and may not process yet.
	queue    []Message
	maxBytes int64
	// loose takes messages of a channel whose barrier has passed before those of the others have: at_least_once.
	loose bool
	early bool
	// waited is when the present alignment began.
	waited time.Time
}

// letter is an admitted message of rows.
type letter struct {
	m Message
	p Passage
}

// write is the loop of a writer: take rows, stage at the cut, ack with everything uncovered.
func (s *Subtask) write(ctx context.Context) error {
	cfg, err := s.sinkConfig()
	if err != nil {
		return err
	}
	w, err := s.cfg.Sink.OpenWriter(ctx, cfg)
	if err != nil {
		return fmt.Errorf("open writer: %w", err)
	}
	defer s.release("writer", w)
	data, _ := s.cfg.Plan.Inputs(s.cfg.Subtask)
	l := &writer{
		s: s, w: w, align: epoch.NewAlign[letter](len(data), s.restored()), staging: staging{subtask: s.cfg.Subtask},
		passed: s.restored(), maxBytes: int64(s.cfg.Spec.Epoch.MaxBytes),
		loose: s.cfg.Plan.Guarantee == plan.AtLeastOnce,
	}
	l.number()
	s.ready(nil)
	for {
		letters, err := s.look()
		if err != nil {
			return err
		}
		l.queue = append(l.queue, letters...)
		n := 0
		for n < len(l.queue) && !l.full() {
			if err := l.handle(ctx, l.queue[n]); err != nil {
				return err
			}
			n++
		}
		clear(l.queue[:n])
		l.queue = append(l.queue[:0], l.queue[n:]...)
		if err := s.wait(ctx, 0); err != nil {
			return err
		}
	}
}

// sinkConfig is what a sink's connector is opened with.
func (s *Subtask) sinkConfig() (sink.Config, error) {
	sk, ok := s.cfg.Spec.Sink(s.vertex.Name)
	if !ok {
		return sink.Config{}, fmt.Errorf("sink %s is not in the spec", s.vertex.Name)
	}
	writers, _ := s.cfg.Plan.Vertex(plan.VertexID(s.vertex.Name))
	return sink.Config{
		Identity: s.identity, Sink: sk, Resolve: s.cfg.Resolve, Writers: writers.Parallelism,
		Sources: s.cfg.Spec.Sources, Store: s.store.staged(), Logger: s.cfg.Logger,
	}, nil
}

// number tells the writer the epoch that is open.
func (l *writer) number() {
	if w, ok := l.w.(sink.Numbered); ok {
		w.Number(l.passed + 1)
	}
}

// full reports whether the open epoch is so big that only a barrier may end it: then the windows fill and the sources
// stop. While an epoch is in flight messages are taken, because its barrier is behind them (⚑).
func (l *writer) full() bool {
	return l.s.orders.Head.InFlight == nil && l.w.Pending() > l.maxBytes
}

func (l *writer) handle(ctx context.Context, m Message) error {
	p, ok, err := l.s.admit(ctx, m)
	if err != nil || !ok {
		return err
	}
	switch p.Envelope.Kind {
	case envelope.Rows:
		if l.loose || l.align.Message(p.Input, letter{m, p}) {
			return l.deliver(ctx, letter{m, p})
		}
		return nil
	case envelope.Barrier:
		if err := l.barrier(ctx, p); err != nil {
			return err
		}
		m.Ack()
		return nil
	default:
		return misplaced(p)
	}
}

// deliver writes one message and acknowledges it: the writer has it now, and what it has is staged at the cut (T1).
func (l *writer) deliver(ctx context.Context, t letter) error {
	payload := t.p.Envelope.Payload
	if ref := t.p.Envelope.Ref; ref != "" {
		var o epoch.Object
		err := json.Unmarshal([]byte(ref), &o)
		if err != nil {
			return fault.Wrap(err, fault.BusCodec, t.p.Channel.String(), "the claim check cannot be read")
		}
		if payload, err = l.s.store.Get(ctx, o); err != nil {
			return fmt.Errorf("fetch claim check: %w", err)
		}
	}
	b, err := l.decoder.Decode(payload)
	if err != nil {
		return fault.Wrap(err, fault.BusCodec, t.p.Channel.String(), err.Error())
	}
	if b.NumRows() != t.p.Envelope.RowCount || string(b.Schema().Table()) != t.p.Envelope.Table {
		return fault.New(fault.BusCodec, t.p.Channel.String(), "the headers do not describe the rows")
	}
	if err := l.w.Write(ctx, *b); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	l.s.counters.Rows.Add(uint64(b.NumRows()))
	l.s.tables.written(b)
	l.s.spans.produced(t.p.Input, &t.p.Envelope)
	t.m.Ack()
	if !l.early && 2*l.w.Pending() >= l.maxBytes {
		l.early = true
		l.s.cfg.Board.Open(envelope.Input, 0, job.InputFact{
			Fence: l.s.identity.Fence, Subtask: l.s.cfg.Subtask, After: l.passed, Early: true,
		})
	}
	return nil
}

func (l *writer) barrier(ctx context.Context, p Passage) error {
	if _, open := l.align.Last(); !open {
		l.waited = time.Now()
	}
	out := l.align.Barrier(p.Input, p.Envelope.Epoch)
	switch {
	case out.Dropped:
		l.s.counters.BarriersDropped.Add(1)
		l.s.meters.dropBarrier(ctx)
	case out.Abandoned != 0:
		l.s.counters.Abandoned.Add(1)
		l.s.meters.abandon(ctx)
		l.waited = time.Now()
	case out.Aligned != 0:
		about, err := parseNote(&p.Envelope)
		if err != nil {
			return err
		}
		if err := l.cut(ctx, &p.Envelope, about); err != nil {
			return err
		}
	}
	for _, t := range out.Released {
		if err := l.deliver(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// cut makes everything before a barrier safe and acknowledges the epoch.
func (l *writer) cut(ctx context.Context, barrier *envelope.Envelope, about note) (err error) {
	s, n := l.s, barrier.Epoch
	aligned := time.Now()
	ctx, span := s.spans.staging(ctx, barrier, aligned)
	defer func() { finish(span, err) }()
	fresh, err := l.w.Stage(ctx, l.passed+1)
	if err != nil {
		return fmt.Errorf("stage epoch %s: %w", n, err)
	}
	staged := l.staging.cut(n, l.passed, about.Durable, fresh)
	align, stage := aligned.Sub(l.waited), time.Since(aligned)
	s.meters.staged(ctx, align, stage)
	l.passed, l.early = n, false
	l.number()
	s.store.pass(n)
	s.tell(job.AckFact{
		Epoch: n, Staged: staged, In: s.gate.Cut(n), Tables: s.tables.counts(),
		Nanos: map[string]int64{
			"align": align.Nanoseconds(), "stage": stage.Nanoseconds(),
		},
	})
	return nil
}
