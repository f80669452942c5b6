package job

import (
	"fmt"
	"slices"
	"time"

	"weir.dev/weir/pkg/epoch"
)

// MaxSavepoints bounds the savepoints of a job: each may keep the source's log from being forgotten.
const MaxSavepoints = 16

// SavepointOrder asks for an epoch to be kept under a name, or for a kept one to be let go.
type SavepointOrder struct {
	// Seq numbers the orders of a job.
	Seq  uint64 `json:"seq"`
	Name string `json:"name"`
	// Drop lets the savepoint of that name go.
	Drop bool `json:"drop,omitempty"`
}

// Savepoint is a durable epoch that is kept under a name until a user lets it go. While the head names it, its manifest and
// the states in it are no garbage, and sources whose upstream forgets what is confirmed keep what it needs.
type Savepoint struct {
	Name    string  `json:"name"`
	Durable Durable `json:"durable"`
	// SpecDigest is the spec that ran then.
	SpecDigest string `json:"specDigest"`
}

// Saving is a savepoint that was asked for and is not durable yet.
type Saving struct {
	Seq  uint64 `json:"seq"`
	Name string `json:"name"`
}

// Refusal is an order that was not carried out; it stays until the next one.
type Refusal struct {
	// Order is savepoint, restore or adopt, Seq its number.
	Order string `json:"order"`
	Seq   uint64 `json:"seq"`
	Text  string `json:"text"`
}

// The names of orders in a [Refusal].
const (
	OrderSavepoint = "savepoint"
	OrderRestore   = "restore"
	OrderAdopt     = "adopt"
)

// Savepointed asks for an epoch to be taken and kept under a name.
func (i Intent) Savepointed(name, request string, at time.Time) Intent {
	return i.savepoint(SavepointOrder{Name: name}, request, at)
}

// Unsavepointed asks for a savepoint to be let go.
func (i Intent) Unsavepointed(name, request string, at time.Time) Intent {
	return i.savepoint(SavepointOrder{Name: name, Drop: true}, request, at)
}

// savepoint leaves the wish as it is.
func (i Intent) savepoint(o SavepointOrder, request string, at time.Time) Intent {
	o.Seq = 1
	if i.Savepoint != nil {
		o.Seq = i.Savepoint.Seq + 1
	}
	i.Savepoint = &o
	return i.ask(i.Wish, request, at)
}

// Savepoint finds a savepoint by name.
func (h *Head) Savepoint(name string) (Savepoint, bool) {
	i := slices.IndexFunc(h.Savepoints, func(p Savepoint) bool { return p.Name == name })
	if i < 0 {
		return Savepoint{}, false
	}
	return h.Savepoints[i], true
}

// Kept lists the epochs that sources must be able to go back to: of the savepoints, and of the one that is being taken.
func (h *Head) Kept() []epoch.ID {
	var all []epoch.ID
	for _, p := range h.Savepoints {
		all = append(all, p.Durable.Epoch)
	}
	if f := h.InFlight; f != nil && f.Savepoint != "" {
		all = append(all, f.Epoch)
	}
	return all
}

// refuse answers an order that cannot be carried out.
func (h *Head) refuse(order string, seq uint64, format string, args ...any) {
	h.Refused = &Refusal{Order: order, Seq: seq, Text: fmt.Sprintf(format, args...)}
	switch order {
	case OrderSavepoint:
		h.Handled.Savepoint, h.Saving = seq, nil
	case OrderRestore:
		h.Handled.Restore = seq
	case OrderAdopt:
		h.Handled.Adopt = seq
	}
}

// refuse answers an order to a job at rest that cannot be carried out.
func (s *State) refuse(m Moment, order string, seq uint64, format string, args ...any) []Effect {
	h := s.draft()
	h.refuse(order, seq, format, args...)
	return s.write(m, h)
}

// saves takes a user's order about savepoints into h, once, and tells of one that is let go. A savepoint is taken while the job
// runs; one is let go at any time.
func (s *State) saves(m Moment, h *Head) (saved bool, say []Notice) {
	if s.Intent == nil || s.Intent.Savepoint == nil {
		return false, nil
	}
	o := s.Intent.Savepoint
	if o.Seq <= h.Handled.Savepoint || h.Saving != nil && h.Saving.Seq == o.Seq {
		return false, nil
	}
	kept, taken := h.Savepoint(o.Name)
	switch {
	case o.Drop && !taken:
		h.refuse(OrderSavepoint, o.Seq, "there is no savepoint %q", o.Name)
	case o.Drop:
		h.Savepoints = slices.DeleteFunc(slices.Clone(h.Savepoints), func(p Savepoint) bool { return p.Name == o.Name })
		h.Handled.Savepoint = o.Seq
		say = append(say, s.savepoint(m, h, o.Name, kept.Durable.Epoch, "let go"))
	case taken:
		h.refuse(OrderSavepoint, o.Seq, "there is a savepoint %q already", o.Name)
	case len(h.Savepoints) >= MaxSavepoints:
		h.refuse(OrderSavepoint, o.Seq, "there are %d savepoints already", len(h.Savepoints))
	case !h.Phase.Active():
		h.refuse(OrderSavepoint, o.Seq, "the job is %s; a savepoint is taken while it runs", h.Phase)
	default:
		h.Saving = &Saving{Seq: o.Seq, Name: o.Name}
	}
	return true, say
}

// savepoint tells what has become of a savepoint.
func (s *State) savepoint(m Moment, h *Head, name string, at epoch.ID, what string) Notice {
	n := s.notice(NoticeSavepoint, m, h)
	n.Epoch, n.Reason = at, Reason{Code: "SAVEPOINT", Text: fmt.Sprintf("savepoint %q is %s: epoch %d", name, what, at), Request: s.request()}
	return n
}

// settleSavepoint keeps the epoch that has just become durable, if it is the one that was asked for, and says so.
func (h *Head) settleSavepoint(f *InFlight) (kept bool) {
	if h.Saving == nil || f.Savepoint != h.Saving.Name {
		return false
	}
	h.Savepoints = append(slices.Clip(h.Savepoints), Savepoint{Name: f.Savepoint, Durable: *h.Durable, SpecDigest: h.SpecDigest})
	h.Handled.Savepoint, h.Saving = h.Saving.Seq, nil
	return true
}
