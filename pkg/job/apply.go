package job

import (
	"time"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fence"
)

// Applied is an order to run a life with another spec from its durable epoch on, or with the same one but with the tables
// that its patterns match today. Whoever asks has seen to it that the two specs differ only in what may change within a
// life. It reaches an enumerator when that is opened and is kept by its state, so that it is done once however often
// attempts begin.
type Applied struct {
	// Seq numbers the orders of a job.
	Seq uint64 `json:"seq"`
	// SpecDigest names the spec; the spec itself is stored before the order.
	SpecDigest string `json:"specDigest"`
	// Fence is, in a head, the first attempt that was given the order.
	Fence fence.Token `json:"fence,omitempty"`
	// Epoch is, in a head, the first durable epoch that has it; zero until there is one.
	Epoch epoch.ID `json:"epoch,omitempty"`
}

// Applying asks a life under way, or a FAILED or SUSPENDED one, to go on with this spec from its durable epoch.
func (i Intent) Applying(specDigest, request string, at time.Time) Intent {
	next := Applied{Seq: 1, SpecDigest: specDigest}
	if i.Applied != nil {
		next.Seq = i.Applied.Seq + 1
	}
	i.Applied, i.SpecDigest = &next, specDigest
	return i.ask(WishRunning, request, at)
}

// applied reports whether a user's order to run another spec has still to be given.
func (s *State) applied() bool {
	i := s.Intent
	return i != nil && i.Wish == WishRunning && i.Applied != nil && i.Applied.Seq > s.Head.Handled.Applied
}

// apply gives the order to the attempt that is about to begin from h.
func (i *Intent) apply(h *Head) {
	a := *i.Applied
	a.Fence, a.Epoch = h.Fence+1, 0
	h.Applied, h.Handled.Applied, h.SpecDigest = &a, a.Seq, a.SpecDigest
}

// settleOrders notes that the newest durable epoch has the orders of its attempt.
func (h *Head) settleOrders() {
	if a := h.Applied; a != nil && a.Epoch == 0 && h.Durable.Fence >= a.Fence {
		done := *a
		done.Epoch = h.Durable.Epoch
		h.Applied = &done
	}
}
