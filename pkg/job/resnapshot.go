package job

import (
	"slices"

	"weir.dev/weir/pkg/fence"
)

// Resnapshot is an order to the sources: tables are emptied at the sinks and copied again, while the log waits. It reaches
// an enumerator when that is opened and is kept by its state, so that it is done once however often attempts begin.
type Resnapshot struct {
	// Seq numbers the orders of a job.
	Seq uint64 `json:"seq"`
	// Tables are schema.table; none means all. A source looks after those that it captures.
	Tables []string `json:"tables,omitempty"`
	// Fence is, in a head, the first attempt that was given the order. An epoch of it or of a later one has it.
	Fence fence.Token `json:"fence,omitempty"`
}

// And returns the tables of two orders together.
func (r *Resnapshot) And(tables []string) []string {
	if len(r.Tables) == 0 || len(tables) == 0 {
		return nil
	}
	all := slices.Concat(r.Tables, tables)
	slices.Sort(all)
	return slices.Compact(all)
}

// Ordered returns the order of the head that no durable epoch has yet; nil when there is none.
func (h *Head) Ordered() *Resnapshot {
	if r := h.Resnapshot; r != nil && (h.Durable == nil || h.Durable.Fence < r.Fence) {
		return r
	}
	return nil
}

// resnapshots reports whether a user's order to copy tables anew has still to be given.
func (s *State) resnapshots() bool {
	i := s.Intent
	return i != nil && i.Wish == WishRunning && i.Resnapshot != nil && i.Resnapshot.Seq > s.Head.Handled.Resnapshot
}

// resnapshot gives the order to the attempt that is about to begin from h.
func (i *Intent) resnapshot(h *Head) {
	r := *i.Resnapshot
	r.Fence = h.Fence + 1
	h.Resnapshot, h.Handled.Resnapshot = &r, r.Seq
}
