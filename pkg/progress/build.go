package progress

import (
	"fmt"
	"slices"

	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/spec"
)

// Build makes a job's status of an observation.
func Build(o Observation) Status {
	h := o.Head
	s := Status{
		Job: h.Job, Life: h.Life, Phase: h.Phase, Fence: uint64(h.Fence), Term: h.Term, Reason: h.Reason, At: o.At,
		Epoch: o.epochs(), Guarantee: o.guarantee(), Why: []string{}, Sources: []Source{}, Sinks: []Sink{},
	}
	for _, k := range o.Spec.Sinks {
		s.Sinks = append(s.Sinks, o.sink(k))
	}
	for _, src := range o.Spec.Sources {
		s.Sources = append(s.Sources, o.source(src, &s))
	}
	s.Findings = o.findings(&s)
	for _, f := range s.Findings {
		if f.Note {
			continue
		}
		s.Why = append(s.Why, f.Text)
		if f.Remedy != "" {
			s.Why = append(s.Why, "remedy: "+f.Remedy)
		}
	}
	return s
}

func (o *Observation) epochs() Epochs {
	h := o.Head
	e := Epochs{Committed: uint64(h.Committed), Skipped: h.Skipped, Restarts: len(h.Restarts), Delay: o.delay()}
	if h.Durable != nil {
		e.Durable, e.DurableAt = uint64(h.Durable.Epoch), h.Durable.At
	}
	if f := h.InFlight; f != nil {
		e.InFlight, e.InFlightSince = uint64(f.Epoch), f.Triggered
		for _, id := range o.behindBarrier() {
			e.WaitsFor = append(e.WaitsFor, id.String())
		}
	}
	return e
}

// behindBarrier lists the subtasks that have not acknowledged the epoch in flight. Committers acknowledge none.
func (o *Observation) behindBarrier() []plan.SubtaskID {
	f := o.Head.InFlight
	if f == nil || o.Plan == nil || o.Plan.Fence != o.Head.Fence {
		return nil
	}
	var waits []plan.SubtaskID
	for _, id := range o.Plan.Subtasks() {
		if v, ok := o.Plan.Vertex(id.Vertex); !ok || v.Role == plan.Committer {
			continue
		}
		if a, ok := o.Acks[id]; !ok || a.Epoch < f.Epoch {
			waits = append(waits, id)
		}
	}
	return waits
}

func (o *Observation) sink(k spec.Sink) Sink {
	s := Sink{Name: k.Name, Type: k.Type, Mode: string(k.Mode), Dead: o.Letters[k.Name]}
	if row, ok := o.Head.Claimed[k.Name]; ok {
		s.Claimed = &row
	}
	if fact, ok := o.commit(k.Name); ok {
		s.Committed, s.Waiting = uint64(fact.Epoch), fact.Waiting
	}
	return s
}

func (o *Observation) commit(sink string) (job.CommittedFact, bool) {
	f, ok := o.Commits[plan.SubtaskID{Vertex: plan.CommitterOf(sink)}]
	return f, ok
}

// guarantee judges what holds: less than was asked while a restored job repeats rows at sinks where that shows.
func (o *Observation) guarantee() Guarantee {
	g := Guarantee{Asked: o.Spec.Guarantee, Effective: o.Spec.Guarantee}
	r := o.Head.Restored
	if r == nil || !r.Repeat || o.Head.Durable == nil || !slices.ContainsFunc(o.Spec.Sinks, func(k spec.Sink) bool { return k.Mode != spec.Upsert }) {
		return g
	}
	if o.Durable != nil && r.Passed(o.Durable) {
		return g
	}
	g.Effective = spec.AtLeastOnce
	g.Why = fmt.Sprintf("rows between epoch %d and epoch %d come again", r.From.Epoch, r.Over.Epoch)
	return g
}
