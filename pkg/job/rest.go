package job

import (
	"slices"

	"weir.dev/weir/pkg/plan"
)

// rest looks after a job no attempt of which runs: its data streams go, what it made outside the bus is dropped once it
// is over for good, and a user may begin again.
func (s *State) rest(m Moment) []Effect {
	h := s.Head
	if s.Intent != nil {
		if effects, done := s.again(m); done {
			return effects
		}
		next := s.draft()
		if saved, told := s.saves(m, &next); saved {
			return s.write(m, next, told...)
		}
	}
	var effects []Effect
	if s.Dropped < h.Fence {
		effects = s.ask(OpDropStreams, m.At, DropStreams{Fence: h.Fence})
	}
	if !h.Phase.over() {
		return effects
	}
	if h.Release == nil || !h.Release.Done {
		return append(effects, s.handOver(m)...)
	}
	if h.Phase == Deleted && h.SpecDigest != "" {
		if s.Erased != h.Life {
			return append(effects, s.ask(OpErase, m.At, Erase{Life: h.Life, Fence: h.Fence})...)
		}
		// What is left of a deleted job: its name and its counters.
		bare := Head{
			Job: h.Job, Life: h.Life, Phase: Deleted, Fence: h.Fence, NextEpoch: h.NextEpoch,
			Handled: h.Handled, Release: h.Release, Reason: h.Reason,
		}
		return append(effects, s.write(m, bare)...)
	}
	return effects
}

// over reports whether the life has ended for good: FAILED and SUSPENDED jobs may go on.
func (p Phase) over() bool { return p == Finished || p == Cancelled || p == Deleted }

// again does what a user's wish asks of a job at rest.
func (s *State) again(m Moment) ([]Effect, bool) {
	h, i := s.Head, s.Intent
	switch {
	case i.Wish == WishDeleted && h.Phase != Deleted:
		return s.end(m, s.draft(), Deleted, Reason{Code: "DELETED", Request: i.Request}), true
	case i.Wish == WishCancelled && !h.Phase.over():
		return s.end(m, s.draft(), Cancelled, Reason{Code: "CANCELLED", Request: i.Request}), true
	case i.Wish != WishRunning:
		return nil, false
	case !h.Phase.over() && i.Resume > h.Handled.Resume:
		next := s.draft()
		next.Handled.Resume, next.Restarts = i.Resume, nil
		return s.attempt(m, next, Reason{Code: "RESUMED", Request: i.Request, Since: m.At}, 0), true
	case !h.Phase.over() && s.adopts():
		return s.adoptLedgers(m), true
	case !h.Phase.over() && s.restores():
		return s.restore(m), true
	case !h.Phase.over() && s.ordered():
		next := s.draft()
		next.Restarts = nil
		return s.order(m, next, Reason{Request: i.Request, Since: m.At}), true
	case h.Phase.over() && i.Start > h.Handled.Start && s.Life != "" && h.Release != nil && h.Release.Done:
		// Nothing of the last life may be left to clean up when its record is written over.
		if h.SpecDigest != "" && s.Erased != h.Life {
			return s.ask(OpErase, m.At, Erase{Life: h.Life, Fence: h.Fence}), true
		}
		return s.newLife(m, *h), true
	}
	return nil, false
}

// handOver has what the life made outside the bus dropped by a process that can reach the sources. It goes round until
// every source is released; a process that dies, or says that it could not, is replaced by another.
func (s *State) handOver(m Moment) []Effect {
	h := s.Head
	if s.Spec == nil && h.Fence != 0 {
		if t := s.Attempt.Trouble; t == nil {
			return s.ask(OpReadSpec, m.At, ReadSpec{Digest: h.SpecDigest})
		}
	}
	r := Release{}
	if h.Release != nil {
		r = *h.Release
	}
	var open []plan.Vertex
	if s.Spec != nil && h.Fence != 0 {
		open = slices.DeleteFunc(s.Spec.sources(), func(v plan.Vertex) bool { return slices.Contains(r.Released, v.Name) })
	}
	next := s.draft()
	if len(open) == 0 {
		// Nothing is left, or no spec that could say what there was: then no attempt of the life ever ran.
		next.Release = &Release{Try: r.Try, Released: r.Released, Done: true}
		return s.write(m, next)
	}
	if r.Node != "" && s.alive(r.Placement) || !s.NodesKnown || m.At.Before(s.ReleaseAfter) {
		return nil
	}
	at, names := s.releaser(open)
	if len(names) == 0 {
		return nil
	}
	next.Release = &Release{Placement: at, Try: r.Try + 1, Sources: names, Released: r.Released}
	return s.write(m, next)
}

// alive reports whether the very process is there; while the list of nodes is not settled, a missing one may be.
func (s *State) alive(p plan.Placement) bool {
	i := slices.IndexFunc(s.Nodes, func(n LiveNode) bool { return n.Node.Node == p.Node })
	if i < 0 {
		return !s.Settled
	}
	return s.Nodes[i].Incarnation == p.Incarnation
}

// releaser chooses the process that can release the most of the open sources; the first by name among equals.
func (s *State) releaser(open []plan.Vertex) (at plan.Placement, names []string) {
	for _, n := range slices.SortedFunc(slices.Values(s.Nodes), func(a, b LiveNode) int {
		return compareText(a.Node.Node, b.Node.Node)
	}) {
		var can []string
		for _, v := range open {
			if n.Can(v.Capability) {
				can = append(can, v.Name)
			}
		}
		if len(can) > len(names) {
			at, names = n.Placement, can
		}
	}
	return at, names
}

func compareText(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// noteRelease takes the answer of the process that was asked. An answer to an older request counts for nothing.
func (s *State) noteRelease(e ReleaseSeen) {
	h := s.Head
	if h == nil || !h.Phase.over() || h.Release == nil || h.Release.Done {
		return
	}
	r := h.Release
	if e.Fact.Request != (ReleaseID{Life: h.Life, Try: r.Try}) || e.Fact.Node != r.Node {
		return
	}
	next := *h
	done := Release{Try: r.Try, Released: r.Released}
	if len(e.Fact.Fault) == 0 {
		done.Released = append(slices.Clone(r.Released), r.Sources...)
	} else {
		s.ReleaseAfter = e.At.Add(releaseRetry)
	}
	next.Release = &done
	s.Head = &next
}
