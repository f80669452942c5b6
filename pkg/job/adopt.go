package job

import (
	"time"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/position"
)

// AdoptOrder asks a job at rest to go on from what the ledgers of its sinks say, because they know more than the bus: it was put
// back to an older copy, or is another one. The job takes the ledgers' life for its own, counts on above everything that they
// have seen, and its sources are read from the ledgers' positions on. Whoever asks has read the ledgers and seen that they agree.
type AdoptOrder struct {
	// Seq numbers the orders of a job.
	Seq uint64 `json:"seq"`
	// Life is that of the ledgers, Fence the highest they have been claimed with.
	Life  string      `json:"life"`
	Fence fence.Token `json:"fence"`
	// Rows are the epochs that the ledgers hold, by sink.
	Rows map[string]epoch.Ref `json:"rows"`
	// Positions are those of the ledgers, by reader.
	Positions map[plan.SubtaskID]position.Position `json:"positions"`
	// Trust says that whoever asks answers for slots that the spec names: nobody but the job has moved them.
	Trust bool `json:"trust,omitempty"`
	// Over is the durable epoch that whoever asks has seen; zero when there was none.
	Over epoch.Ref `json:"over,omitzero"`
}

// Adopted is the last order that a job was given.
type Adopted struct {
	AdoptOrder

	// Left is the life that the job had until then, when it was another one: nothing of it is needed any more.
	Left string `json:"left,omitempty"`
	// As is the epoch that begins the chain anew.
	As epoch.Ref `json:"as"`
}

// Adopting asks a FAILED or SUSPENDED job to go on from the ledgers of its sinks. The order's sequence is filled in.
func (i Intent) Adopting(o AdoptOrder, request string, at time.Time) Intent {
	o.Seq = 1
	if i.Adopt != nil {
		o.Seq = i.Adopt.Seq + 1
	}
	i.Adopt = &o
	return i.ask(WishRunning, request, at)
}

// adopts reports whether a user's order to take ledgers over has still to be carried out.
func (s *State) adopts() bool {
	i := s.Intent
	return i != nil && i.Wish == WishRunning && i.Adopt != nil && i.Adopt.Seq > s.Head.Handled.Adopt
}

// adoptLedgers carries the order out, for a job at rest: store a manifest that begins the chain anew where the ledgers are, then make it
// durable in the same CAS that begins the attempt. It stages nothing, so it is committed as it is.
func (s *State) adoptLedgers(m Moment) []Effect {
	h, o, a := s.Head, s.Intent.Adopt, &s.Attempt
	refuse := func(format string, args ...any) []Effect {
		return s.refuse(m, OrderAdopt, o.Seq, format, args...)
	}
	if why := a.Barred; why != "" {
		a.Barred = ""
		return refuse("%s", why)
	}
	var over epoch.Ref
	if h.Durable != nil {
		over = h.Durable.Ref
	}
	if over != o.Over {
		return refuse("epoch %s is durable by now; it was %s when the order was given", refText(over), refText(o.Over))
	}
	at := h.NextEpoch
	for _, row := range o.Rows {
		at = max(at, row.Epoch+1)
	}
	if a.Cut == nil || a.Cut.Manifest.Kind != epoch.Restore || a.Cut.Ref.Epoch != at {
		cut := epoch.Cut{Epoch: at, Kind: epoch.Restore, Term: s.Term, Triggered: m.At, Completed: m.At}
		built := epoch.Begin(h.Job, o.Life, o.Rows, o.Positions, cut, max(h.Fence, o.Fence))
		b, err := built.Bytes()
		if err != nil {
			return refuse("%s", err)
		}
		a.Cut = &Cut{Ref: epoch.Ref{Epoch: at, Digest: epoch.Digest(b)}, Manifest: built, Bytes: b}
	}
	if a.Manifest == nil || a.Manifest.Ref != a.Cut.Ref {
		return s.ask(OpStoreManifest, m.At, StoreManifest{Manifest: a.Cut.Manifest, Bytes: a.Cut.Bytes, Ref: a.Cut.Ref})
	}
	next := s.draft()
	next.Adopted = &Adopted{AdoptOrder: *o, As: a.Manifest.Ref}
	if h.Life != o.Life {
		next.Adopted.Left = h.Life
	}
	next.Life, next.Fence = o.Life, max(h.Fence, o.Fence)
	next.Durable, next.Committed, next.NextEpoch = a.Manifest, at, at+1
	next.Restarts, next.Skipped = nil, 0
	// Orders and savepoints belong to the history that was left.
	next.Resnapshot, next.Restored, next.Applied, next.Savepoints = nil, nil, nil, nil
	next.Handled.Adopt = o.Seq
	return s.attempt(m, next, Reason{Code: "ADOPTED", Request: s.Intent.Request, Since: m.At}, 0)
}
