package job

import (
	"encoding/json"
	"fmt"
	"strings"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/plan"
)

// counts reports whether a fact may be acted on: only those of the head's own fence, and only from subtasks of its plan.
// Nothing with an older fence is acted on, and a newer one than the head's does not exist. Before the plan has been read
// every subtask's facts are kept; they are looked up by the plan's names only.
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

func (s *State) noteReady(f ReadyFact) {
	if a := &s.Attempt; s.counts(f.Fence, f.Subtask) {
		a.Ready = with(a.Ready, f.Subtask, f)
		a.Waiting = without(a.Waiting, f.Subtask)
	}
}

// noteAck keeps the newest ack of a subtask; one for an epoch that was never handed out is refused.
func (s *State) noteAck(f AckFact) {
	a := &s.Attempt
	if s.counts(f.Fence, f.Subtask) && f.Epoch >= a.Acks[f.Subtask].Epoch && f.Epoch < s.newest().NextEpoch {
		a.Acks = with(a.Acks, f.Subtask, f)
	}
}

func (s *State) noteCommit(f CommittedFact) {
	a := &s.Attempt
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
}

func (s *State) noteInput(f InputFact) {
	if a := &s.Attempt; s.counts(f.Fence, f.Subtask) {
		a.Input = max(a.Input, f.After+1)
		if f.Early {
			a.Early = max(a.Early, f.After+1)
		}
	}
}

func (s *State) noteDrained(f DrainedFact) {
	if a := &s.Attempt; s.counts(f.Fence, f.Subtask) {
		a.Drained = with(a.Drained, f.Subtask, true)
	}
}

func (s *State) noteFailure(f FailedFact) {
	if s.counts(f.Fence, f.Subtask) {
		s.trouble(causeOf(f))
	}
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
		if entry, _ := fault.Lookup(e.Code); entry.Away {
			c.Kind = RestartAway
		}
	case fault.Bug, fault.Fenced:
	}
	switch e.Code {
	case fault.JobSinkDown, fault.JobNoCapacity:
		c.Kind, c.Final = RestartFree, false
	case fault.JobDataLost:
		c.Kind, c.Final = RestartLoss, false
	default: // the class has decided
	}
	return c
}

// faultReason and codeReason put a fault into a head's reason.
func faultReason(e *fault.Error) Reason {
	var text strings.Builder
	text.WriteString(e.What)
	if e.Why != "" {
		text.WriteString(": " + e.Why)
	}
	if e.Where != "" {
		text.WriteString(" (" + e.Where + ")")
	}
	for _, p := range e.Problems {
		text.WriteString("; " + p.String())
	}
	return Reason{Code: string(e.Code), Text: text.String(), Remedy: e.Remedy}
}

func codeReason(code fault.Code, format string, args ...any) Reason {
	return faultReason(fault.New(code, "", fmt.Sprintf(format, args...)))
}
