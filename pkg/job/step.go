package job

import (
	"encoding/json"
	"fmt"
	"time"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/plan"
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
	case ReadySeen, AckSeen, CommitSeen, InputSeen, DrainedSeen, FailureSeen, ReleaseSeen:
		s.noteFact(e)
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
		// I5: the chain grows only by what the head now names.
		s.Chain = append(s.Chain[:len(s.Chain):len(s.Chain)], epoch.Link{Ref: c.Ref, Manifest: c.Manifest})
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
	switch e.Op {
	case OpReadSpec, OpFetchChain:
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
	case OpCollect, OpWriteHead, OpReadHead, OpReadSpec, OpResetStreams, OpStorePlan, OpFetchPlan, OpFetchChain, OpStoreManifest:
	}
}

// trouble keeps the first reason to give the attempt up; a final one replaces a passing one.
func (s *State) trouble(c cause) {
	if t := s.Attempt.Trouble; t == nil || c.Final && !t.Final {
		s.Attempt.Trouble = &c
	}
}

// noteFact takes in what a subtask says. Only facts of the head's own fence count, and only from subtasks of its plan:
// nothing with an older fence is acted on, and a newer one than the head's does not exist.
func (s *State) noteFact(e Event) {
	a := &s.Attempt
	switch e := e.(type) {
	case ReadySeen:
		if f := e.Fact; s.counts(f.Fence, f.Subtask) {
			a.Ready = with(a.Ready, f.Subtask, f)
			a.Waiting = without(a.Waiting, f.Subtask)
		}
	case AckSeen:
		// The newest one counts; one for an epoch that was never handed out is refused.
		if f := e.Fact; s.counts(f.Fence, f.Subtask) && f.Epoch >= a.Acks[f.Subtask].Epoch && f.Epoch < s.newest().NextEpoch {
			a.Acks = with(a.Acks, f.Subtask, f)
		}
	case CommitSeen:
		f := e.Fact
		if !s.counts(f.Fence, f.Subtask) {
			return
		}
		if f.Waiting != nil {
			a.Waiting = with(a.Waiting, f.Subtask, *f.Waiting)
		} else {
			a.Waiting = without(a.Waiting, f.Subtask)
		}
		if f.Epoch > a.Committed[f.Subtask] {
			a.Committed = with(a.Committed, f.Subtask, f.Epoch)
		}
	case InputSeen:
		if f := e.Fact; s.counts(f.Fence, f.Subtask) {
			a.Input = max(a.Input, f.After+1)
			if f.Early {
				a.Early = max(a.Early, f.After+1)
			}
		}
	case DrainedSeen:
		if f := e.Fact; s.counts(f.Fence, f.Subtask) {
			a.Drained = with(a.Drained, f.Subtask, true)
		}
	case FailureSeen:
		if f := e.Fact; s.counts(f.Fence, f.Subtask) {
			s.trouble(causeOf(f))
		}
	case ReleaseSeen:
		s.noteRelease(e)
	default:
	}
}

// counts reports whether a fact may be acted on. Before the plan has been read every subtask's facts are kept; they are
// looked up by the plan's names only.
func (s *State) counts(f fence.Token, id plan.SubtaskID) bool {
	if s.Head == nil || f != s.Head.Fence || s.Head.Phase.AtRest() {
		return false
	}
	if s.Attempt.Plan == nil {
		return true
	}
	v, ok := s.Attempt.Plan.Vertex(id.Vertex)
	return ok && id.Index < v.Parallelism
}

// causeOf classifies a failed subtask.
func causeOf(f FailedFact) cause {
	var e fault.Error
	if err := json.Unmarshal(f.Fault, &e); err != nil {
		e = *fault.New(fault.AppInternal, f.Subtask.String(), "the subtask's fault cannot be read: "+err.Error())
	}
	var class fault.Class
	if err := class.UnmarshalText([]byte(f.Class)); err != nil {
		class = e.Class()
	}
	c := cause{Kind: RestartFailure, Reason: faultReason(&e)}
	c.Reason.Subtask = &f.Subtask
	switch class {
	case fault.Permanent, fault.Poison:
		// A row that can never apply reaches the leader only where dead letters are off.
		c.Final = true
	case fault.Transient:
		c.Kind = RestartLoss
	case fault.Bug, fault.Fenced:
	}
	switch e.Code {
	case fault.JobSinkDown, fault.JobNoCapacity:
		c.Kind, c.Final = RestartFree, false
	case fault.JobDataLost:
		c.Kind, c.Final = RestartLoss, false
	}
	return c
}

// faultReason and codeReason put a fault into a head's reason.
func faultReason(e *fault.Error) Reason {
	text := e.What
	if e.Why != "" {
		text += ": " + e.Why
	}
	if e.Where != "" {
		text += " (" + e.Where + ")"
	}
	for _, p := range e.Problems {
		text += "; " + p.String()
	}
	return Reason{Code: string(e.Code), Text: text, Remedy: e.Remedy}
}

func codeReason(code fault.Code, format string, args ...any) Reason {
	return faultReason(fault.New(code, "", fmt.Sprintf(format, args...)))
}
