package task

import (
	"context"
	"fmt"
	"time"

	"weir.dev/weir/pkg/envelope"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/report"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/pkg/telemetry"
)

// enumerate is the loop of an enumerator. It is where an epoch enters the data plane: the barrier that the head record
// asks for goes to the readers in band, behind everything the enumerator told them before.
func (s *Subtask) enumerate(ctx context.Context) error {
	o := newOrigin(s)
	cfg, err := o.config(ctx)
	if err != nil {
		return err
	}
	e, err := s.cfg.Source.OpenEnumerator(ctx, cfg)
	if err != nil {
		return fmt.Errorf("open enumerator: %w", err)
	}
	defer s.release("enumerator", e)
	s.reporting(func(r *report.Envelope) {
		v := e.Report()
		r.Enumerator = &v
	})
	s.ready(nil)
	dir := directory{s}
	keep := newKeeping(e, s.cfg.Logger, func() { s.box.change(func() {}) })
	asking, stop := context.WithCancel(ctx)
	defer keep.done.Wait()
	defer stop()
	var durable epoch.ID
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
			if p.Envelope.Kind != envelope.Status {
				return misplaced(p)
			}
			if err := e.Receive(p.Channel.From.Index, p.Envelope.Payload); err != nil {
				return fmt.Errorf("receive from reader %d: %w", p.Channel.From.Index, err)
			}
			m.Ack()
		}
		if d := s.orders.Durable; d != nil && d.Epoch > durable {
			durable = d.Epoch
			e.Durable(durable)
		}
		o.confirm(e.Confirm)
		if !s.orders.Emit {
			if err := s.wait(ctx, 0); err != nil {
				return err
			}
			continue
		}
		if err := o.drain(ctx, e.Drain); err != nil {
			return err
		}
		keep.look(asking, &s.orders.Head)
		declined, passes := keep.passes(&s.orders.Head, s.orders.Barrier)
		if n := s.orders.Barrier; n > o.last && passes {
			o.declined = declined
			if err := o.cut(s.ordered(ctx, n), n, note{s.orders.Kind, s.orders.Covered}, e.Snapshot); err != nil {
				return err
			}
		}
		if o.drained {
			if err := s.wait(ctx, drainedPause); err != nil {
				return err
			}
		}
		st, err := e.Poll(ctx, dir, s.box.wake)
		if err != nil {
			return fmt.Errorf("enumerate: %w", err)
		}
		o.heed(st)
	}
}

// ordered returns ctx under the leader's span of the epoch to inject.
func (s *Subtask) ordered(ctx context.Context, n epoch.ID) context.Context {
	if f := s.orders.Head.InFlight; f != nil && f.Epoch == n {
		return telemetry.Remote(ctx, f.Trace)
	}
	return ctx
}

// directory is how an enumerator speaks to its readers.
type directory struct{ s *Subtask }

func (d directory) Tell(ctx context.Context, reader int, payload []byte) error {
	to := plan.SubtaskID{Vertex: plan.VertexID(d.s.vertex.Name), Index: reader}
	return d.s.out.Status(ctx, to, payload)
}

var _ source.Directory = directory{}

// reporting publishes what Report returns from now on.
func (s *Subtask) reporting(fill func(*report.Envelope)) {
	f := func() report.Envelope {
		r := report.Envelope{
			Job: s.identity.Job, Subtask: s.cfg.Subtask.String(), Fence: uint64(s.identity.Fence),
			Sequence: s.seq.Add(1), Observed: time.Now().UTC(),
		}
		if s.from != nil {
			from := *s.from
			if p := s.first.Load(); p != nil {
				from.First = report.ExactOf(*p)
			}
			r.Restore = &from
		}
		fill(&r)
		return r
	}
	s.report.Store(&f)
}

func misplaced(p Passage) error {
	return fmt.Errorf("%s message on %s: no subtask of this role takes it", p.Envelope.Kind, p.Channel)
}
