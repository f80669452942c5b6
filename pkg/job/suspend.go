package job

import "weir.dev/weir/pkg/epoch"

// enterSuspend begins the stop that a user wants: a SAVEPOINT epoch, then rest, whether or not the sinks take commits. A drain
// under way is given up for it, unless nothing is left but to commit its last epoch.
func (s *State) enterSuspend(m Moment, h *Head) bool {
	if s.Intent == nil || s.Intent.Wish != WishSuspended || terminal(h) {
		return false
	}
	if h.Phase != Running && h.Phase != Draining {
		return false
	}
	h.Phase, h.Drain, h.SuspendFrom = Suspending, nil, h.NextEpoch
	h.Reason = Reason{Code: "SUSPENDING", Since: m.At, Request: s.request()}
	return true
}

// suspended reports whether the epoch that a suspension waits for is durable.
func suspended(h *Head) bool {
	return h.Phase == Suspending && h.Durable != nil && h.Durable.Kind == epoch.Savepoint && h.Durable.Epoch >= h.SuspendFrom
}
