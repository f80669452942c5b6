package job

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/position"
)

// run takes epochs. Everything that has become true since the last write of the head goes into one CAS: the durable
// epoch, the committed one, the next epoch in flight, the phase.
func (s *State) run(m Moment) []Effect {
	a := &s.Attempt
	if a.Plan == nil {
		return s.ask(OpFetchPlan, m.At, FetchPlan{Ref: *s.Head.Plan})
	}
	if c, found := s.lost(); found {
		return s.recover(m, s.draft(), c)
	}
	h := s.draft()
	var effects []Effect
	var say []Notice
	changed := false
	if h.InFlight != nil {
		why := ""
		switch f := h.InFlight; {
		case a.Manifest != nil && a.Manifest.Epoch == f.Epoch:
			h.Durable, h.InFlight, h.Skipped = a.Manifest, nil, 0
			h.settleOrders()
			if h.settleSavepoint(f) {
				say = append(say, s.savepoint(m, &h, f.Savepoint, f.Epoch, "kept"))
			}
			if c, found := s.uneven(m, &h); found {
				return s.recover(m, h, c)
			}
			changed = true
		case a.declined(f.Epoch) != "":
			why = a.declined(f.Epoch)
		case a.complete(f.Epoch):
			var c *cause
			if effects, c = s.seal(m, f); c != nil {
				return s.recover(m, h, *c)
			}
			if len(effects) == 0 && !s.Busy[OpStoreManifest] && !m.At.Before(f.Deadline) {
				why = "its manifest could not be stored"
			}
		case !m.At.Before(f.Deadline):
			why = a.lateText(f.Epoch)
		}
		if why != "" {
			notices, c := s.skip(m, &h, why)
			if c != nil {
				return s.recover(m, h, *c)
			}
			say = append(say, notices...)
			changed = true
		}
	}
	gained := s.committed(&h)
	grown := gained > h.Committed
	h.Committed = gained
	if terminal(&h) && h.Committed >= h.Durable.Epoch {
		return s.end(m, h, Finished, Reason{Code: "FINISHED", Request: s.request()})
	}
	if suspended(&h) {
		return s.end(m, h, Suspended, Reason{Code: "SUSPENDED", Request: s.request()})
	}
	if saved, told := s.saves(m, &h); saved {
		say = append(say, told...)
		changed = true
	}
	if s.restores() {
		h.refuse(OrderRestore, s.Intent.Restore.Seq, "the job is %s; it has to be SUSPENDED or FAILED", h.Phase)
		changed = true
	}
	if s.adopts() {
		h.refuse(OrderAdopt, s.Intent.Adopt.Seq, "the job is %s; it has to be FAILED or SUSPENDED", h.Phase)
		changed = true
	}
	if s.enterSuspend(m, &h) || s.enterDrain(m, &h) {
		say = append(say, s.notice(NoticeState, m, &h))
		changed = true
	}
	if s.explain(m, &h) {
		say = append(say, s.notice(NoticeState, m, &h))
		changed = true
	}
	kind, at, ok := s.due(&h, m)
	switch soon := ok && at.Sub(m.At) <= gatherCommits; {
	case ok && !m.At.Before(at):
		s.trigger(m, &h, kind)
		changed = true
	case grown && !soon && (h.InFlight == nil || a.Cut == nil):
		// Otherwise it goes with the next epoch in flight, or with the durable epoch whose manifest is being stored.
		changed = true
	}
	if changed {
		return append(effects, s.write(m, h, say...)...)
	}
	if h.Durable != nil && h.Committed > s.Collected && !m.At.Before(s.CollectAt) && h.InFlight == nil {
		s.Collected, s.CollectAt = h.Committed, m.At.Add(collectEvery)
		effects = append(effects, s.ask(OpCollect, m.At, Collect{
			Life: h.Life, Fence: h.Fence, Durable: *h.Durable, Committed: h.Committed,
		})...)
	}
	return effects
}

// seal builds the manifest of a complete epoch and has it stored. An epoch that does not balance is never stored: the
// attempt is given up.
func (s *State) seal(m Moment, f *InFlight) ([]Effect, *cause) {
	a := &s.Attempt
	if a.Cut == nil || a.Cut.Ref.Epoch != f.Epoch {
		var prev epoch.Ref
		if s.Head.Durable != nil {
			prev = s.Head.Durable.Ref
		}
		built, err := epoch.Build(a.Plan, epoch.Cut{
			Epoch: f.Epoch, Kind: f.Kind, Term: s.Term, Triggered: f.Triggered, Completed: m.At,
		}, s.last(), prev, a.Acks)
		if err != nil {
			code := fault.JobTallyMismatch
			if !errors.Is(err, epoch.ErrUnbalanced) {
				code = fault.AppInternal
			}
			return nil, &cause{Kind: RestartFailure, Reason: codeReason(code, "%s", err)}
		}
		b, err := built.Bytes()
		if err != nil {
			return nil, &cause{Kind: RestartFailure, Reason: codeReason(fault.AppInternal, "%s", err)}
		}
		a.Cut = &Cut{Ref: epoch.Ref{Epoch: f.Epoch, Digest: epoch.Digest(b)}, Manifest: built, Bytes: b}
	}
	return s.ask(OpStoreManifest, m.At, StoreManifest{Manifest: a.Cut.Manifest, Bytes: a.Cut.Bytes, Ref: a.Cut.Ref}), nil
}

// skip gives the epoch in flight up. What was staged stays and is covered by the next durable epoch. With too many
// barriers under way that nobody has answered, the attempt is given up instead of injecting more.
func (s *State) skip(m Moment, h *Head, why string) ([]Notice, *cause) {
	f := h.InFlight
	h.InFlight = nil
	h.Skipped++
	if h.Saving != nil && f.Savepoint == h.Saving.Name {
		h.refuse(OrderSavepoint, h.Saving.Seq, "epoch %d: %s", f.Epoch, why)
	}
	s.Attempt.Cut = nil
	n := s.notice(NoticeSkipped, m, h)
	n.Epoch, n.Reason = f.Epoch, codeReason(fault.JobEpochTimeout, "epoch %d: %s", f.Epoch, why)
	notices := []Notice{n}
	if h.Skipped%skippedAlarm == 0 {
		n.Kind = NoticeAlarm
		n.Reason.Text = codeReason(fault.JobEpochTimeout, "%d epochs in a row were skipped, last %d: %s", h.Skipped, f.Epoch, why).Text
		notices = append(notices, n)
	}
	if open := s.unanswered(h); open >= skippedRecover {
		r := codeReason(fault.JobEpochTimeout, "%d skipped barriers are unanswered, last %d: %s", open, f.Epoch, why)
		return nil, &cause{Kind: RestartStall, Reason: r}
	}
	return notices, nil
}

// unanswered counts the skipped barriers that some subtask has not answered.
func (s *State) unanswered(h *Head) int {
	oldest := h.NextEpoch - 1
	for _, id := range s.Attempt.Plan.Ackers() {
		oldest = min(oldest, s.Attempt.Acks[id].Epoch)
	}
	return int(min(epoch.ID(h.Skipped), h.NextEpoch-1-oldest))
}

// complete reports whether every subtask that must answer has answered for this epoch.
func (a *Attempt) complete(e epoch.ID) bool {
	return !slices.ContainsFunc(a.Plan.Ackers(), func(id plan.SubtaskID) bool { return a.Acks[id].Epoch != e })
}

// declined says why a subtask has no part of this epoch to give.
func (a *Attempt) declined(e epoch.ID) string {
	for _, id := range a.Plan.Ackers() {
		if ack := a.Acks[id]; ack.Epoch == e && ack.Declined != "" {
			return id.String() + ": " + ack.Declined
		}
	}
	return ""
}

// lateText names those who have not answered.
func (a *Attempt) lateText(e epoch.ID) string {
	var late []string
	for _, id := range a.Plan.Ackers() {
		if a.Acks[id].Epoch != e {
			late = append(late, id.String())
		}
	}
	return "no answer of " + strings.Join(late, " ")
}

// committed is the newest epoch on the chain that every committer has confirmed; it never goes back and never passes the
// durable one.
func (s *State) committed(h *Head) epoch.ID {
	a := &s.Attempt
	if a.Plan == nil || a.Fence != h.Fence || h.Durable == nil {
		return h.Committed
	}
	all := h.Durable.Epoch
	for _, id := range a.of(plan.Committer) {
		all = min(all, a.Committed[id])
	}
	if all == h.Durable.Epoch {
		return all
	}
	newest := h.Committed
	for _, l := range s.Chain {
		if l.Ref.Epoch <= all {
			newest = max(newest, l.Ref.Epoch)
		}
	}
	return newest
}

// due says which epoch is next and when. ok is false while none is to be taken.
func (s *State) due(h *Head, m Moment) (kind epoch.Kind, at time.Time, ok bool) {
	a, set := &s.Attempt, s.settings()
	switch {
	case h.InFlight != nil, !h.Phase.Active(), terminal(h):
		return "", time.Time{}, false
	case h.Phase == Draining && a.drained():
		return epoch.Terminal, m.At, true
	case h.Phase == Suspending, h.Saving != nil:
		if h.Skipped > 0 {
			return epoch.Savepoint, a.Triggered.Add(set.Interval), true
		}
		return epoch.Savepoint, m.At, true
	case s.uncommitted(h) >= set.MaxUncommitted:
		return "", time.Time{}, false
	case a.Triggered.IsZero(), s.Intent != nil && s.Intent.EpochSeq > h.Handled.EpochSeq, a.Early >= h.NextEpoch:
		// The first of an attempt or of a leader, one that a person asked for, one that a writer needs.
		return epoch.Periodic, m.At, true
	case a.Input >= h.NextEpoch, h.Skipped > 0:
		return epoch.Periodic, a.Triggered.Add(set.Interval), true
	}
	return epoch.Periodic, a.Triggered.Add(set.IdleInterval * time.Duration(min(1<<min(a.Calm, calmest), calmest))), true
}

// calms notes whether anything has moved in the epoch that has just become durable: input, or the position of a reader. Such an
// epoch is worth its writes because it moves what the source keeps for us; when it moved nothing the next one can wait longer.
func (a *Attempt) calms(before, now *epoch.Manifest) {
	if a.Input < now.Epoch && before != nil && maps.EqualFunc(maps.Collect(before.Positions()), maps.Collect(now.Positions()), position.Position.Equal) {
		a.Calm++
		return
	}
	a.Calm = 0
}

// uncommitted counts the durable epochs that some sink has still to commit.
func (s *State) uncommitted(h *Head) int {
	if h.Durable == nil {
		return 0
	}
	n := 0
	for _, l := range s.Chain {
		if l.Ref.Epoch > h.Committed && l.Ref.Epoch != h.Durable.Epoch {
			n++
		}
	}
	if h.Durable.Epoch > h.Committed {
		n++
	}
	return n
}

// trigger hands the next id out; it is never used again, whatever becomes of the epoch.
func (s *State) trigger(m Moment, h *Head, kind epoch.Kind) {
	h.InFlight = &InFlight{
		Epoch: h.NextEpoch, Kind: kind, Triggered: m.At, Deadline: m.At.Add(s.settings().Timeout),
	}
	if kind == epoch.Savepoint && h.Saving != nil {
		h.InFlight.Savepoint = h.Saving.Name
	}
	h.NextEpoch++
	if s.Intent != nil {
		h.Handled.EpochSeq = max(h.Handled.EpochSeq, s.Intent.EpochSeq)
	}
}

// drained reports whether every reader is past its end.
func (a *Attempt) drained() bool {
	readers := a.of(plan.Reader)
	return len(readers) > 0 && !slices.ContainsFunc(readers, func(id plan.SubtaskID) bool { return !a.Drained[id] })
}

// terminal reports whether the last epoch of this drain is durable: nothing is left but to commit it.
func terminal(h *Head) bool {
	return h.Drain != nil && h.Durable != nil && h.Durable.Kind == epoch.Terminal && h.Durable.Epoch >= h.Drain.From
}

// enterDrain begins a drain that a user wants, or that the sources have come to by themselves because they are finite.
func (s *State) enterDrain(m Moment, h *Head) bool {
	wished := s.Intent != nil && s.Intent.Wish == WishDrained
	if h.Phase != Running || !wished && !s.Attempt.drained() {
		return false
	}
	h.Phase, h.Drain = Draining, &DrainState{From: h.NextEpoch}
	h.Reason = Reason{Code: "DRAINING", Since: m.At}
	if wished {
		timeout := DefaultDrainTimeout
		if s.Intent.DrainTimeout > 0 {
			timeout = s.Intent.DrainTimeout
		}
		h.Drain.Deadline = m.At.Add(timeout)
		h.Reason.Request = s.request()
	}
	return true
}

// explain keeps the head's reason true about a target that takes no commits.
func (s *State) explain(m Moment, h *Head) bool {
	down := h.Reason.Code == string(fault.JobSinkDown)
	for _, id := range s.Attempt.of(plan.Committer) {
		if t, waits := s.Attempt.Waiting[id]; waits {
			if down {
				return false
			}
			h.Reason = codeReason(fault.JobSinkDown, "%s", faultText(t))
			h.Reason.Subtask, h.Reason.Since = &id, t.Since
			return true
		}
	}
	if down {
		h.Reason = Reason{Code: string(h.Phase), Since: m.At}
	}
	return down
}

// request is the id of the request that is being answered.
func (s *State) request() string {
	if s.Intent == nil {
		return ""
	}
	return s.Intent.Request
}

func durableEpoch(h *Head) epoch.ID {
	if h.Durable == nil {
		return 0
	}
	return h.Durable.Epoch
}
