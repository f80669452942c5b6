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
	"weir.dev/weir/pkg/position"
	"weir.dev/weir/pkg/report"
	"weir.dev/weir/pkg/source"
)

// drainedPause is how often a half that is past its end is polled: it has nothing to emit, but connections to keep.
const drainedPause = time.Second

// note is the payload of a barrier. It is the same on every channel and passed on unchanged.
type note struct {
	Kind epoch.Kind `json:"kind"`
	// Durable is the epoch that was durable when the barrier was injected: what it and all before it cover is settled,
	// whatever the receiver has heard of it (T4).
	Durable epoch.ID `json:"durable,omitempty"`
}

func parseNote(e *envelope.Envelope) (note, error) {
	var n note
	if err := json.Unmarshal(e.Payload, &n); err != nil {
		return n, fault.Wrap(err, fault.BusCodec, "barrier "+e.Epoch.String(), "the payload is not a barrier's note")
	}
	return n, nil
}

// origin is what the two halves of a source have in common: a state to cut, an end to be told, epochs to confirm.
type origin struct {
	s *Subtask
	// last is the newest barrier passed; cuts are those not yet confirmed, oldest first.
	last      epoch.ID
	cuts      []heldCut
	confirmed epoch.ID
	draining  bool
	drained   bool
	input     bool
	declined  string // why the next cut is none
}

type heldCut struct {
	epoch epoch.ID
	cut   source.Cut
}

func newOrigin(s *Subtask) *origin { return &origin{s: s, last: s.restored()} }

// config is what the connector is opened with.
func (o *origin) config(ctx context.Context) (source.Config, error) {
	s := o.s
	src, ok := s.cfg.Spec.Source(s.vertex.Name)
	if !ok {
		return source.Config{}, fmt.Errorf("source %s is not in the spec", s.vertex.Name)
	}
	readers, _ := s.cfg.Plan.Vertex(plan.VertexID(s.vertex.Name))
	cfg := source.Config{
		Identity: s.identity, Source: src, Resolve: s.cfg.Resolve, Readers: readers.Parallelism,
		MaxTransactionRows: s.cfg.Spec.Epoch.MaxTransactionRows, Batch: s.cfg.Plan.Window.Batch,
		Store: s.store.state(), Segment: segmentSize, Logger: s.cfg.Logger,
	}
	if s.cfg.Hold != nil {
		cfg.Hold = s.cfg.Hold(s.identity)
	}
	if r := s.cfg.Resnapshot; r != nil && s.vertex.Role == plan.Enumerator {
		cfg.Again = &source.Again{Seq: r.Seq, Tables: r.Tables}
	}
	if s.vertex.Role == plan.Enumerator {
		cfg.Applied = s.cfg.Applied
	}
	if r := s.cfg.Restored; r != nil && s.vertex.Role == plan.Enumerator {
		cfg.Restored = &source.Restored{Seq: r.Seq, Epoch: r.From.Epoch}
	}
	if s.cfg.Restore == nil {
		return cfg, nil
	}
	if a := s.cfg.Adopted; a != nil && s.vertex.Role == plan.Enumerator {
		cfg.Adopted = &source.Adopted{Left: a.Left, Trust: a.Trust, Positions: make(map[int]position.Position)}
		for id, at := range a.Positions {
			if id.Vertex == readers.ID {
				cfg.Adopted.Positions[id.Index] = at
			}
		}
	}
	m, err := s.cfg.Records.Manifest(ctx, s.identity.Job, s.cfg.Restore.Ref)
	if err != nil {
		return cfg, fmt.Errorf("restore from epoch %s: %w", s.restored(), err)
	}
	s.from = &report.Restore{Epoch: uint64(s.restored())}
	if st, ok := m.Subtasks[s.cfg.Subtask]; ok {
		if !st.Position.IsZero() {
			s.from.Position = report.ExactOf(st.Position)
		}
		if cfg.Restore, err = s.store.load(ctx, st.State); err != nil {
			return cfg, fmt.Errorf("restore from epoch %s: %w", s.restored(), err)
		}
	}
	if s.vertex.Role != plan.Enumerator {
		return cfg, nil
	}
	for i := 0; ; i++ {
		st, ok := m.Subtasks[plan.SubtaskID{Vertex: readers.ID, Index: i}]
		if !ok {
			return cfg, nil
		}
		part, err := s.store.load(ctx, st.State)
		if err != nil {
			return cfg, fmt.Errorf("restore from epoch %s: %w", s.restored(), err)
		}
		cfg.Parts = append(cfg.Parts, part)
	}
}

// cut passes a barrier: snapshot, barrier on every output, ack (T3). snapshot must not wait for the source. The span in
// ctx is that of who asked for it.
func (o *origin) cut(
	ctx context.Context, n epoch.ID, about note, snapshot func(epoch.ID) (source.Cut, error),
) (err error) {
	s := o.s
	ctx, span := s.spans.start(ctx, "snapshot", n)
	defer func() { finish(span, err) }()
	s.spans.emitted(ctx)
	began := time.Now()
	cut, err := snapshot(n)
	if err != nil {
		return fmt.Errorf("snapshot of epoch %s: %w", n, err)
	}
	payload, err := json.Marshal(about)
	if err != nil {
		return err
	}
	in := s.gate.Cut(n)
	out, err := s.out.Barrier(ctx, n, payload)
	if err != nil {
		return err
	}
	state, err := s.store.keep(ctx, cut.State, cut.Objects)
	if err != nil {
		return err
	}
	s.store.pass(n)
	took := time.Since(began)
	s.meters.cut(ctx, took)
	o.last, o.input = n, false
	o.cuts = append(o.cuts, heldCut{n, cut})
	s.tell(job.AckFact{
		Epoch: n, State: state, Position: cut.Position, Torn: cut.Torn, In: in, Out: out, Tables: s.tables.counts(),
		Nanos: map[string]int64{"snapshot": took.Nanoseconds()}, Declined: o.declined,
	})
	return nil
}

// confirm tells the connector of the newest committed epoch that this attempt took (T6). Cuts before it, committed or
// skipped, are covered by it.
func (o *origin) confirm(tell func(epoch.ID, source.Cut)) {
	to := o.s.orders.Committed
	if to <= o.confirmed {
		return
	}
	o.confirmed = to
	k := 0
	for k < len(o.cuts) && o.cuts[k].epoch <= to {
		k++
	}
	if k > 0 && o.cuts[k-1].epoch == to {
		tell(to, o.cuts[k-1].cut)
	}
	o.cuts = append(o.cuts[:0], o.cuts[k:]...)
}

// drain tells the connector once to fix its end.
func (o *origin) drain(ctx context.Context, tell func(context.Context) error) error {
	if o.draining || !o.s.orders.Drain {
		return nil
	}
	o.draining = true
	if err := tell(ctx); err != nil {
		return fmt.Errorf("drain: %w", err)
	}
	return nil
}

// heed turns what a poll found into facts.
func (o *origin) heed(st source.Status) {
	s := o.s
	if st.Input && !o.input {
		o.input = true
		s.cfg.Board.Open(envelope.Input, 0, job.InputFact{Fence: s.identity.Fence, Subtask: s.cfg.Subtask, After: o.last})
	}
	if st.Drained && !o.drained {
		o.drained = true
		s.cfg.Board.Open(envelope.Drained, 0, job.DrainedFact{Fence: s.identity.Fence, Subtask: s.cfg.Subtask})
	}
}
