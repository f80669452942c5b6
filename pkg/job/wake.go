package job

import (
	"time"

	"weir.dev/weir/pkg/fault"
)

// Wake says when the machine wants a [Tick], seen from the time of the last event; zero for never. What was due by then
// has been decided by that event.
func (s *State) Wake(last time.Time) time.Time {
	var at time.Time
	want := func(t time.Time) {
		if t.After(last) && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	for _, t := range s.Hold {
		want(t)
	}
	if s.Deposed || !s.Known || s.Writing != nil || s.Head == nil {
		return at
	}
	h, a := s.Head, &s.Attempt
	if h.Phase.AtRest() {
		want(s.ReleaseAfter)
		return at
	}
	if h.Drain != nil && !h.Drain.Deadline.IsZero() {
		want(h.Drain.Deadline)
	}
	switch {
	case h.Phase == Starting && h.Plan == nil:
		want(h.RetryAt)
		if h.Reason.Code != string(fault.JobNoCapacity) {
			want(a.Began.Add(capacityGrace))
		}
	case h.Phase == Starting:
		want(a.Began.Add(StartTimeout))
	case h.Phase.Active() && a.Plan != nil && s.Spec != nil:
		if h.InFlight != nil {
			want(h.InFlight.Deadline)
		}
		if _, due, ok := s.due(h, Moment{At: last}); ok {
			want(due)
		}
		if h.Committed > s.Collected {
			want(s.CollectAt)
		}
	}
	return at
}
