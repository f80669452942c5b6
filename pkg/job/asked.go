package job

import "weir.dev/weir/pkg/epoch"

// Asked follows, over the heads of a job, which epoch somebody waits for. The zero Asked is ready.
type Asked struct {
	// Epoch was begun because it was asked for, or is a later one; zero when nobody waits. Whoever has answered sets it to zero.
	Epoch epoch.ID

	seq uint64
}

// See takes a head in and reports whether an ask is new in it. A bus that has come back with what it knew before counts from there.
func (a *Asked) See(h *Head) (news bool) {
	if h.Handled.EpochSeq == a.seq {
		return false
	}
	a.seq, a.Epoch = h.Handled.EpochSeq, h.Newest()
	return true
}

// Newest is the last epoch that was begun; zero before the first.
func (h *Head) Newest() epoch.ID {
	if h.InFlight != nil {
		return h.InFlight.Epoch
	}
	return max(h.NextEpoch, 1) - 1
}
