package job

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/plan"
)

// decide says what follows from what is known. Nothing is decided while a head write is under way: its outcome decides
// what is next.
func (s *State) decide(m Moment) []Effect {
	switch {
	case !s.Known, s.Unsure:
		return s.ask(OpReadHead, m.At, ReadHead{})
	case s.Writing != nil, m.At.Before(s.Hold[OpWriteHead]):
		return nil
	case s.Head == nil:
		return s.create(m)
	case s.Head.Term != s.Term:
		return s.takeOver(m)
	case s.Head.Phase.AtRest():
		return s.rest(m)
	}
	if effects, ended := s.obey(m); ended {
		return effects
	}
	if s.Spec == nil {
		if t := s.Attempt.Trouble; t != nil && t.Final {
			return s.fail(m, s.draft(), t.Reason)
		}
		return s.ask(OpReadSpec, m.At, ReadSpec{Digest: s.Head.SpecDigest})
	}
	if s.Head.Phase == Created {
		return s.attempt(m, s.draft(), Reason{Code: "STARTED"}, 0)
	}
	if s.ordered() && s.Head.Drain == nil {
		return s.order(m, s.draft(), Reason{Request: s.Intent.Request, Since: m.At})
	}
	if t := s.Attempt.Trouble; t != nil {
		return s.recover(m, s.draft(), *t)
	}
	if d := s.Head.Drain; d != nil && !d.Deadline.IsZero() && !m.At.Before(d.Deadline) {
		return s.fail(m, s.draft(), codeReason(fault.JobDrainTimeout, "epoch %d is committed, newest durable is %s",
			s.Head.Committed, durableText(s.Head)))
	}
	if !s.chained() {
		return s.ask(OpFetchChain, m.At, FetchChain{Durable: *s.Head.Durable, Committed: s.Head.Committed})
	}
	if s.Head.Phase == Starting {
		return s.start(m)
	}
	return s.run(m)
}

func durableText(h *Head) string {
	if h.Durable == nil {
		return "none"
	}
	return h.Durable.Epoch.String()
}

// create writes the first record of a job that a user wants.
func (s *State) create(m Moment) []Effect {
	if s.Intent == nil || s.Intent.Wish != WishRunning || s.Life == "" {
		return nil
	}
	return s.newLife(m, Head{Job: s.Job, NextEpoch: 1})
}

// newLife begins a life on a record: fence and nextEpoch go on counting, so that nothing of an older life can be taken
// for the new one's.
func (s *State) newLife(m Moment, old Head) []Effect {
	h := Head{
		Job: s.Job, Life: s.Life, Phase: Created, Fence: old.Fence, NextEpoch: old.NextEpoch,
		SpecDigest: s.Intent.SpecDigest,
		Handled:    Handled{Start: s.Intent.Start, Resume: s.Intent.Resume, EpochSeq: s.Intent.EpochSeq},
		Reason:     Reason{Code: "SUBMITTED", Request: s.Intent.Request},
	}
	if r := s.Intent.Resnapshot; r != nil {
		h.Handled.Resnapshot = r.Seq // a new life copies everything
	}
	if a := s.Intent.Applied; a != nil {
		h.Handled.Applied = a.Seq // a new life begins with the newest spec
	}
	if p := s.Intent.Savepoint; p != nil {
		h.Handled.Savepoint = p.Seq
	}
	if r := s.Intent.Restore; r != nil {
		h.Handled.Restore = r.Seq
	}
	if a := s.Intent.Adopt; a != nil {
		h.Handled.Adopt = a.Seq
	}
	return s.write(m, h, s.notice(NoticeState, m, &h))
}

// takeOver puts this leader's term into the record: from then on nothing an older leader writes can land. The attempt
// goes on as it is; only the deadline of the epoch in flight starts again, on this leader's clock.
func (s *State) takeOver(m Moment) []Effect {
	h := s.draft()
	if f := h.InFlight; f != nil {
		again := *f
		again.Deadline = m.At.Add(f.Deadline.Sub(f.Triggered))
		again.Triggered = m.At
		h.InFlight = &again
	}
	s.Attempt.Began = m.At
	return s.write(m, h, s.notice(NoticeTakeover, m, &h))
}

// obey does what a user's wish asks of a job under way: CANCEL and DELETE act at once, in every phase, SUSPEND while nothing
// moves.
func (s *State) obey(m Moment) (effects []Effect, ended bool) {
	if s.Intent == nil {
		return nil, false
	}
	switch s.Intent.Wish {
	case WishCancelled:
		return s.end(m, s.draft(), Cancelled, Reason{Code: "CANCELLED", Request: s.Intent.Request}), true
	case WishDeleted:
		return s.end(m, s.draft(), Deleted, Reason{Code: "DELETED", Request: s.Intent.Request}), true
	case WishSuspended:
		// An attempt that has not begun has nothing to save that is not durable.
		if p := s.Head.Phase; p == Created || p == Starting {
			return s.end(m, s.draft(), Suspended, Reason{Code: "SUSPENDED", Request: s.Intent.Request}), true
		}
	case WishRunning, WishDrained:
	}
	return nil, false
}

// end brings the job to rest from h: the epoch in flight is skipped, everything durable is kept.
func (s *State) end(m Moment, h Head, p Phase, r Reason) []Effect {
	if r.Since.IsZero() {
		r.Since = m.At
	}
	r.Remedy = strings.ReplaceAll(r.Remedy, "<job>", s.Job) // whoever saw the fault may not have known the job
	h.Committed = s.committed(&h)
	h.Phase, h.InFlight, h.Drain, h.RetryAt, h.Reason, h.SuspendFrom = p, nil, nil, time.Time{}, r, 0
	if h.Saving != nil {
		h.refuse(OrderSavepoint, h.Saving.Seq, "the job came to rest before the epoch was durable")
	}
	return s.write(m, h, s.notice(NoticeState, m, &h))
}

// fail brings the job to rest until a person acts on the remedy.
func (s *State) fail(m Moment, h Head, r Reason) []Effect { return s.end(m, h, Failed, r) }

// attempt begins an attempt from h: the fence goes up at once, and with it everything the attempt before still does is
// refused; the new one is placed after the pause.
func (s *State) attempt(m Moment, h Head, r Reason, pause time.Duration) []Effect {
	kind := NoticeState
	if h.Phase != Created && !h.Phase.AtRest() {
		kind = NoticeRecovery
	}
	h.Committed = s.committed(&h)
	h.Fence++
	h.Phase, h.Plan, h.InFlight, h.Skipped, h.Claimed, h.RetryAt = Starting, nil, nil, 0, nil, time.Time{}
	if pause > 0 {
		h.RetryAt = m.At.Add(pause)
	}
	h.Reason = r
	return s.write(m, h, s.notice(kind, m, &h))
}

// recover gives the attempt up: another one from the newest durable epoch of h, unless the reason or the restart policy
// says that only a person can help.
func (s *State) recover(m Moment, h Head, c cause) []Effect {
	if c.Reason.Since.IsZero() {
		c.Reason.Since = m.At
		if c.Kind == RestartAway && c.Reason.Code == h.Reason.Code {
			c.Reason.Since = h.Reason.Since
		}
	}
	if c.Final {
		return s.fail(m, h, c.Reason)
	}
	set := s.settings()
	recent := slices.DeleteFunc(slices.Clone(h.Restarts), func(r Restart) bool { return m.At.Sub(r.At) > set.Window })
	used := 0
	for _, r := range recent {
		if r.Kind == c.Kind {
			used++
		}
	}
	if budget, limited := budgetOf(c.Kind, set.Cap); limited && used >= budget {
		r := codeReason(fault.JobRestartsExhausted, "%d restarts within %s; the last reason: %s %s",
			used, set.Window, c.Reason.Code, c.Reason.Text)
		r.Subtask = c.Reason.Subtask
		if c.Reason.Remedy != "" {
			r.Remedy += " " + c.Reason.Remedy
		}
		return s.fail(m, h, r)
	}
	h.Restarts = append(recent, Restart{At: m.At, Kind: c.Kind, Durable: durableEpoch(&h)})
	// What no budget bounds is not kept for ever either.
	h.Restarts = h.Restarts[max(0, len(h.Restarts)-maxRestarts(set.Cap)):]
	return s.attempt(m, h, c.Reason, s.pause(h.Restarts, m.Roll))
}

// lost names the first subtask whose process is gone, or came back as another incarnation.
func (s *State) lost() (c cause, found bool) {
	if !s.NodesKnown {
		return cause{}, false
	}
	for _, id := range s.Attempt.Plan.Subtasks() {
		at := s.Attempt.Plan.Placements[id]
		i := slices.IndexFunc(s.Nodes, func(n LiveNode) bool { return n.Node.Node == at.Node })
		var why string
		switch {
		case i < 0 && !s.Settled:
			continue
		case i < 0:
			why = fmt.Sprintf("the lease of %s has expired", at.Node)
		case s.Nodes[i].Incarnation != at.Incarnation:
			why = fmt.Sprintf("%s has been started again", at.Node)
		case s.Nodes[i].Leaving:
			r := Reason{Code: "HANDOVER", Subtask: &id, Text: at.Node + " is leaving"}
			return cause{Kind: RestartFree, Reason: r}, true
		default:
			continue
		}
		r := codeReason(fault.JobNodeLost, "%s", why)
		r.Subtask = &id
		return cause{Kind: RestartLoss, Reason: r}, true
	}
	return cause{}, false
}

// start brings an attempt from its fence to RUNNING: streams, placement, plan, READY of every subtask, ledgers judged.
func (s *State) start(m Moment) []Effect {
	h, a := s.Head, &s.Attempt
	if h.Plan != nil {
		return s.gather(m)
	}
	if m.At.Before(h.RetryAt) {
		return nil
	}
	if !a.Streams {
		w, err := plan.WindowFor(&s.Spec.Plan)
		if err != nil {
			return s.fail(m, s.draft(), faultReason(fault.Of(err)))
		}
		return s.ask(OpResetStreams, m.At, ResetStreams{Fence: h.Fence, Life: h.Life, Window: w, Letters: s.Spec.Letters})
	}
	if a.Stored == nil {
		return s.place(m)
	}
	next := s.draft()
	ref := *a.Stored
	ref.Restore = h.Durable
	next.Plan = &ref
	if entry, _ := fault.Lookup(fault.Code(h.Reason.Code)); !entry.Away { // until a source is reached that was away, it is
		next.Reason = Reason{Code: "PLACED", Request: h.Reason.Request}
	}
	return s.write(m, next)
}

// place chooses nodes and stores the plan. Without room the attempt stays, and says so.
func (s *State) place(m Moment) []Effect {
	if !s.NodesKnown {
		return nil
	}
	d, err := plan.Deploy(s.Spec.Plan, plan.Attempt{Life: s.Head.Life, Fence: s.Head.Fence, Spec: s.Spec.Raw}, s.able())
	if err == nil {
		return s.ask(OpStorePlan, m.At, StorePlan{Plan: &d})
	}
	r := faultReason(fault.Of(err))
	if m.At.Sub(s.Attempt.Began) < capacityGrace || s.Head.Reason.Code == r.Code && s.Head.Reason.Text == r.Text {
		return nil
	}
	return s.stay(m, r)
}

// stay says why the attempt waits; it is no restart.
func (s *State) stay(m Moment, r Reason) []Effect {
	h := s.draft()
	r.Since = m.At
	if h.Reason.Code == r.Code {
		r.Since = h.Reason.Since
	}
	h.Reason = r
	return s.write(m, h, s.notice(NoticeState, m, &h))
}

// gather waits until every subtask is ready, then lets the sources go: RUNNING and the first epoch in one CAS.
func (s *State) gather(m Moment) []Effect {
	h, a := s.Head, &s.Attempt
	if a.Plan == nil {
		return s.ask(OpFetchPlan, m.At, FetchPlan{Ref: *h.Plan})
	}
	if c, found := s.lost(); found {
		return s.recover(m, s.draft(), c)
	}
	var missing []plan.SubtaskID
	for _, id := range a.Plan.Subtasks() {
		if r, ok := a.Ready[id]; !ok || r.Incarnation != a.Plan.Placements[id].Incarnation {
			missing = append(missing, id)
		}
	}
	if len(missing) == 0 {
		claimed, bad := judge(h, a.Plan, s.Chain, a.Ready)
		if bad != nil {
			return s.fail(m, s.draft(), *bad)
		}
		return s.letGo(m, claimed)
	}
	if t, down := a.targetDown(missing); down {
		// The clock stands still while the target cannot be reached.
		a.Began = m.At
		if h.Reason.Code == string(fault.JobSinkDown) {
			return nil
		}
		r := codeReason(fault.JobSinkDown, "%s", faultText(t))
		r.Subtask = &missing[0]
		return s.stay(m, r)
	}
	if m.At.Sub(a.Began) >= StartTimeout {
		r := codeReason(fault.JobStartTimeout, "%d of %d subtasks are not ready, first %s", len(missing), len(a.Plan.Subtasks()), missing[0])
		r.Subtask = &missing[0]
		return s.recover(m, s.draft(), cause{Kind: RestartStall, Reason: r})
	}
	return nil
}

// targetDown reports whether nothing but unreachable targets keeps the attempt from starting.
func (a *Attempt) targetDown(missing []plan.SubtaskID) (Trouble, bool) {
	for _, id := range missing {
		if _, ok := a.Waiting[id]; !ok {
			return Trouble{}, false
		}
	}
	return a.Waiting[missing[0]], true
}

// letGo ends the start: the sources may emit.
func (s *State) letGo(m Moment, claimed map[string]LedgerRow) []Effect {
	h := s.draft()
	h.Phase, h.Claimed = Running, claimed
	h.Reason = Reason{Code: "RUNNING"}
	if s.Intent != nil {
		h.Reason.Request = s.Intent.Request
	}
	if h.Drain != nil {
		h.Phase = Draining
	}
	s.enterDrain(m, &h)
	if kind, at, ok := s.due(&h, m); ok && !m.At.Before(at) {
		s.trigger(m, &h, kind)
	}
	return s.write(m, h, s.notice(NoticeState, m, &h))
}
