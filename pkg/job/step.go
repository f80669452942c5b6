package job

import (
	"slices"
	"time"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
)

// Step takes an event in and says what must be done. It is a pure function: no clock, no chance, no I/O. First the event
// is noted, then everything that follows from what is known is decided anew; so an event that came twice, late or
// never costs time at most.
//
//	            intent                 all ready              drain wished        terminal epoch committed
//	(none) ──► CREATED ──► STARTING ─────────────► RUNNING ───────────► DRAINING ───────────► FINISHED
//	                        ▲    ▲  │ permanent,    │  │                 │  │ timeout             │
//	                 resume │    └──┼───────────────┘  │    recovery     │  │                     │
//	                        │       ▼   exhausted      ▼   (fence + 1)   ▼  ▼                     │
//	                       FAILED ◄────────────────────────────────────────┘                     │
//	                        └──────── cancel ──► CANCELLED ──► (new life: CREATED) ◄──────────────┘
//	                                  delete ──► DELETED, from everywhere
func Step(s State, e Event) (State, []Effect) {
	if s.Deposed {
		return s, nil
	}
	m := e.moment()
	effects := s.note(e)
	if s.Deposed {
		return s, effects
	}
	return s, append(effects, s.decide(m)...)
}

// note records what the event says. s is the caller's copy.
func (s *State) note(e Event) []Effect {
	switch e := e.(type) {
	case Tick:
	case HeadRead:
		return s.noteHead(e)
	case HeadWritten:
		if s.Writing == nil {
			return nil
		}
		return s.adopt(e.Moment, *s.Writing, e.Revision)
	case HeadUnsure:
		s.Unsure = s.Writing != nil
	case IntentRead:
		s.Intent, s.Life = &e.Intent, e.Life
	case SpecRead:
		s.answered(OpReadSpec)
		s.Spec = &e.Spec
	case NodesRead:
		s.Nodes, s.Settled, s.NodesKnown = e.Nodes, e.Settled, true
		s.Roster.met(e.Moment, e.Nodes, e.Settled)
	case StreamsReset:
		s.answered(OpResetStreams)
		if e.Fence == s.Attempt.Fence {
			s.Attempt.Streams = true
		}
	case PlanStored:
		s.answered(OpStorePlan)
		if e.Ref.Fence == s.Attempt.Fence {
			s.Attempt.Stored, s.Attempt.Plan = &e.Ref, e.Plan
		}
	case PlanFetched:
		s.answered(OpFetchPlan)
		if e.Plan.Fence == s.Attempt.Fence {
			s.Attempt.Plan = e.Plan
		}
	case ChainFetched:
		s.answered(OpFetchChain)
		s.Chain = e.Links
	case ManifestFetched:
		s.answered(OpFetchManifest)
		if s.Intent != nil && s.Intent.Restore != nil {
			s.Attempt.Restoring = &Restoring{Seq: s.Intent.Restore.Seq, Source: e.Link}
		}
	case ManifestStored:
		s.answered(OpStoreManifest)
		if c := s.Attempt.Cut; c != nil && c.Ref == e.Durable.Ref {
			s.Attempt.Manifest = &e.Durable
		}
	case EffectFailed:
		s.noteFailedEffect(e)
	case Swept:
		s.noteSwept(e)
	case StreamLost:
		if e.Fence == s.Attempt.Fence {
			s.trouble(cause{Kind: RestartLoss, Reason: codeReason(fault.JobDataLost, "%s", e.Why)})
		}
	case ReadySeen:
		s.noteReady(e.Fact)
	case AckSeen:
		s.noteAck(e.Fact)
	case CommitSeen:
		s.noteCommit(e.Fact)
	case InputSeen:
		s.noteInput(e.Fact)
	case DrainedSeen:
		s.noteDrained(e.Fact)
	case FailureSeen:
		s.noteFailure(e.Fact)
	case ReleaseSeen:
		s.noteRelease(e)
	}
	return nil
}

// noteHead takes a reading in. While a write is under way the reading decides what became of it.
func (s *State) noteHead(e HeadRead) []Effect {
	s.answered(OpReadHead)
	h := e.View.Head
	switch {
	case s.Known && e.View.Revision < s.Revision:
		// A replica is late, or the registry went back. Nothing may be decided on this reading.
		if s.StaleSince.IsZero() {
			s.StaleSince = e.At
		}
		if e.At.Sub(s.StaleSince) > staleHeads {
			return s.stepDown(0, true)
		}
		s.Hold = with(s.Hold, OpReadHead, e.At.Add(retryEffect))
		return nil
	case h != nil && h.Term > s.Term:
		return s.stepDown(h.Term, false)
	case s.Writing != nil && h != nil && sameHead(h, s.Writing):
		return s.adopt(e.Moment, *s.Writing, e.View.Revision)
	}
	// Not what was being written: that write is lost, or may still land, which the next CAS will find out. Decide anew.
	s.Writing, s.Say, s.Unsure, s.StaleSince = nil, nil, false, time.Time{}
	s.Head, s.Revision, s.Known = h, e.View.Revision, true
	s.follow(e.Moment)
	return nil
}

func (s *State) stepDown(term uint64, regressed bool) []Effect {
	s.Deposed = true
	return []Effect{StepDown{Term: term, Regressed: regressed}}
}

// adopt makes a stored record the known one and tells what became true with it.
func (s *State) adopt(m Moment, h Head, revision uint64) []Effect {
	before := s.Head
	say := s.Say
	s.Head, s.Revision, s.Known = &h, revision, true
	s.Writing, s.Say, s.Unsure, s.StaleSince = nil, nil, false, time.Time{}
	if c := s.Attempt.Cut; c != nil && h.Durable != nil && h.Durable.Ref == c.Ref {
		s.Attempt.calms(s.last(), c.Manifest)
		// I5: the chain grows only by what the head now names. A restore may have left the newest of it.
		if i := slices.IndexFunc(s.Chain, func(l epoch.Link) bool { return l.Ref == c.Manifest.Prev }); i >= 0 {
			s.Chain = s.Chain[:i+1]
		}
		s.Chain = append(slices.Clip(s.Chain), epoch.Link{Ref: c.Ref, Manifest: c.Manifest})
		s.Attempt.Cut, s.Attempt.Manifest = nil, nil
	}
	for len(s.Chain) > 1 && s.Chain[1].Ref.Epoch <= h.Committed {
		s.Chain = s.Chain[1:]
	}
	if f := h.InFlight; f != nil && (before == nil || before.InFlight == nil || before.InFlight.Epoch != f.Epoch) {
		s.Attempt.Triggered = m.At
	}
	s.follow(m)
	if before != nil && before.Plan == nil && h.Plan != nil {
		s.Attempt.Began = m.At // what was waited for before, capacity or a pause, is not the subtasks' time
	}
	effects := make([]Effect, 0, len(say))
	for _, n := range say {
		effects = append(effects, Announce{Notice: n})
	}
	return effects
}

// follow forgets what belongs to another fence or life than the head's.
func (s *State) follow(m Moment) {
	switch {
	case s.Head == nil:
		s.Attempt = Attempt{}
		return
	case s.Attempt.Fence != s.Head.Fence:
		s.Attempt = Attempt{Fence: s.Head.Fence, Began: m.At}
	}
	if s.Spec != nil && s.Spec.Digest != s.Head.SpecDigest {
		s.Spec = nil
	}
	if s.Head.Durable == nil {
		s.Chain = nil
	}
}

// noteFailedEffect puts an effect on hold, or takes its failure as the end of the attempt.
func (s *State) noteFailedEffect(e EffectFailed) {
	s.answered(e.Op)
	if e.Op == OpWriteHead {
		// It may have been stored: read back before anything else is decided, and do not hurry.
		s.Unsure = s.Writing != nil
		pause := retryEffect
		if e.Class == fault.Permanent {
			pause = maxBackoff
		}
		s.Hold = with(s.Hold, e.Op, e.At.Add(pause))
		return
	}
	if e.Class == fault.Transient {
		s.Hold = with(s.Hold, e.Op, e.At.Add(retryEffect))
		return
	}
	c := cause{Kind: RestartFailure, Reason: faultReason(e.Fault), Final: e.Class == fault.Permanent}
	if s.Head != nil && s.Head.Phase.AtRest() && (e.Op == OpFetchChain || e.Op == OpFetchManifest || e.Op == OpStoreManifest) {
		s.Attempt.Barred = faultReason(e.Fault).Code + " " + faultReason(e.Fault).Text // a restore was under way
		return
	}
	switch e.Op {
	case OpReadSpec, OpFetchChain, OpFetchManifest:
		// Nothing can run without them; another attempt would not find them either.
		c.Final = true
	case OpDropStreams, OpCollect, OpErase, OpReadHead:
		s.Hold = with(s.Hold, e.Op, e.At.Add(maxBackoff))
		return
	case OpResetStreams, OpStorePlan, OpFetchPlan, OpStoreManifest, OpWriteHead:
	}
	s.trouble(c)
}

func (s *State) noteSwept(e Swept) {
	s.answered(e.Op)
	switch e.Op {
	case OpDropStreams:
		s.Dropped = max(s.Dropped, e.Fence)
	case OpErase:
		if s.Head != nil {
			s.Erased = s.Head.Life
		}
	case OpCollect, OpWriteHead, OpReadHead, OpReadSpec, OpResetStreams, OpStorePlan, OpFetchPlan, OpFetchChain,
		OpFetchManifest, OpStoreManifest:
	}
}

// trouble keeps the first reason to give the attempt up; a final one replaces a passing one.
func (s *State) trouble(c cause) {
	if t := s.Attempt.Trouble; t == nil || c.Final && !t.Final {
		s.Attempt.Trouble = &c
	}
}
