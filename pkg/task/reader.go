package task

import (
	"context"
	"fmt"

	"weir.dev/weir/pkg/envelope"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/position"
	"weir.dev/weir/pkg/report"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/source"
)

// read is the loop of a reader. Between two polls, which end at safe points, it takes what the enumerator has sent in the
// order of the channel; a barrier is answered there (I4).
func (s *Subtask) read(ctx context.Context) error {
	o := newOrigin(s)
	cfg, err := o.config(ctx)
	if err != nil {
		return err
	}
	r, err := s.cfg.Source.OpenReader(ctx, cfg)
	if err != nil {
		return fmt.Errorf("open reader: %w", err)
	}
	defer s.release("reader", r)
	s.reporting(func(e *report.Envelope) {
		v := r.Report()
		e.Reader = &v
	})
	s.ready(nil)
	align := epoch.NewAlign[Message](1, s.restored())
	out := output{s}
	for {
		letters, err := s.look()
		if err != nil {
			return err
		}
		for _, m := range letters {
			p, ok, err := s.admit(ctx, m)
			if err != nil {
				return err
			}
			if !ok {
				continue
			}
			switch p.Envelope.Kind {
			case envelope.Status:
				err = r.Receive(p.Envelope.Payload)
			case envelope.Barrier:
				if align.Barrier(0, p.Envelope.Epoch).Dropped {
					s.counters.BarriersDropped.Add(1)
					s.meters.dropBarrier(ctx)
					break
				}
				var about note
				if about, err = parseNote(&p.Envelope); err == nil {
					err = o.cut(under(ctx, &p.Envelope), p.Envelope.Epoch, about, r.Snapshot)
				}
			default:
				err = misplaced(p)
			}
			if err != nil {
				return fmt.Errorf("%s from the enumerator: %w", p.Envelope.Kind, err)
			}
			m.Ack()
		}
		o.confirm(r.Confirm)
		if n := s.asked.Epoch; n != 0 && o.last >= n {
			s.asked.Epoch = 0
			if l, ok := r.(source.Looker); ok {
				l.Look()
			}
		}
		if !s.orders.Emit {
			if err := s.wait(ctx, 0); err != nil {
				return err
			}
			continue
		}
		if err := o.drain(ctx, r.Drain); err != nil {
			return err
		}
		if o.drained {
			if err := s.wait(ctx, drainedPause); err != nil {
				return err
			}
		}
		st, err := r.Poll(ctx, out, s.box.wake)
		if err != nil {
			return fmt.Errorf("read: %w", err)
		}
		o.heed(st)
	}
}

// output is how a reader emits.
type output struct{ s *Subtask }

func (o output) Emit(ctx context.Context, b rows.Batch, at position.Position) error {
	s := o.s
	s.counters.Rows.Add(uint64(b.NumRows()))
	if s.from != nil && s.first.Load() == nil && !at.IsZero() {
		first := at // a copy, so that at stays off the heap
		s.first.Store(&first)
	}
	s.tables.emitted(&b)
	s.spans.emitting(ctx, s.out.passed+1)
	s.out.trace = s.spans.rows
	return s.out.Rows(ctx, &b, at.String())
}

func (o output) Tell(ctx context.Context, payload []byte) error {
	to := plan.SubtaskID{Vertex: plan.EnumeratorOf(o.s.vertex.Name)}
	return o.s.out.Status(ctx, to, payload)
}

var _ source.Output = output{}
