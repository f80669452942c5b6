package job

import (
	"maps"
	"slices"
	"time"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/position"
)

// RestoreOrder asks a job at rest to go on from the states of an older epoch: a savepoint, or the newest one that every sink has
// committed. The chain is not taken back: it goes on with a manifest of kind RESTORE that has those states and covers no rows,
// so that ledgers, fences and epoch ids go on counting (docs/adr/0021-restores-continue-the-chain.md).
type RestoreOrder struct {
	// Seq numbers the orders of a job.
	Seq uint64 `json:"seq"`
	// Savepoint is the name; empty for the newest committed epoch, when what came after it cannot be committed any more.
	Savepoint string `json:"savepoint,omitempty"`
	// Over is the durable epoch that whoever asks has seen: what its sinks may get twice was judged for it and no other.
	Over epoch.Ref `json:"over"`
	// Repeat says that a sink may get rows twice that it cannot fold into one.
	Repeat bool `json:"repeat,omitempty"`
}

// Restored is the last order that a life was given.
type Restored struct {
	RestoreOrder

	// From is the epoch whose states were taken, As the one that continues the chain with them.
	From Durable   `json:"from"`
	As   epoch.Ref `json:"as"`
	// Until is where the readers were at the epoch that was left: up to there rows come again.
	Until map[plan.SubtaskID]position.Position `json:"until,omitempty"`
}

// Passed reports whether every reader has come to where it was when the life was restored. A reader that is no more, or that
// had no position, has nothing to pass.
func (r *Restored) Passed(now *epoch.Manifest) bool {
	for id, until := range r.Until {
		s, there := now.Subtasks[id]
		if !there {
			continue
		}
		if order, ok := position.Compare(s.Position, until); !ok || order < 0 {
			return false
		}
	}
	return true
}

// Restoring is a restore under way: what the leader has gathered for it.
type Restoring struct {
	Seq uint64 `json:"seq"`
	// Source is the manifest whose states are taken.
	Source epoch.Link `json:"source"`
}

// Restoring asks a FAILED or SUSPENDED job to go on from a savepoint; an empty name asks for the newest committed epoch.
func (i Intent) Restoring(savepoint string, over epoch.Ref, repeat bool, request string, at time.Time) Intent {
	next := RestoreOrder{Seq: 1, Savepoint: savepoint, Over: over, Repeat: repeat}
	if i.Restore != nil {
		next.Seq = i.Restore.Seq + 1
	}
	i.Restore = &next
	return i.ask(WishRunning, request, at)
}

// restores reports whether a user's order to go on from an older epoch has still to be carried out.
func (s *State) restores() bool {
	i := s.Intent
	return i != nil && i.Wish == WishRunning && i.Restore != nil && i.Restore.Seq > s.Head.Handled.Restore
}

// restore carries the order out, for a job at rest: read the states, store the manifest that continues the chain with them, then
// make it durable in the same CAS that begins the attempt.
func (s *State) restore(m Moment) []Effect {
	o := s.Intent.Restore
	refuse := func(format string, args ...any) []Effect {
		return s.refuse(m, OrderRestore, o.Seq, format, args...)
	}
	h := s.Head
	if h.Durable == nil {
		return refuse("no epoch is durable")
	}
	if h.Durable.Ref != o.Over {
		return refuse("epoch %d is durable by now; it was %d when the order was given", h.Durable.Epoch, o.Over.Epoch)
	}
	a := &s.Attempt
	if why := a.Barred; why != "" {
		a.Barred = ""
		return refuse("%s", why)
	}
	if c := s.committed(h); c > h.Committed {
		// A committer had more to say before it was stopped.
		next := s.draft()
		next.Committed = c
		return s.write(m, next)
	}
	if !s.chained() {
		return s.ask(OpFetchChain, m.At, FetchChain{Durable: *h.Durable, Committed: h.Committed})
	}
	from, known := s.restorable(o.Savepoint)
	if !known {
		return refuse("there is no such savepoint, or no epoch is committed")
	}
	if a.Restoring == nil || a.Restoring.Seq != o.Seq || a.Restoring.Source.Ref != from.Ref {
		a.Cut = nil
		if i := slices.IndexFunc(s.Chain, func(l epoch.Link) bool { return l.Ref == from.Ref }); i >= 0 {
			a.Restoring = &Restoring{Seq: o.Seq, Source: s.Chain[i]}
		} else {
			return s.ask(OpFetchManifest, m.At, FetchManifest{Ref: from.Ref})
		}
	}
	if a.Cut == nil || a.Cut.Manifest.Kind != epoch.Restore || a.Cut.Ref.Epoch != h.NextEpoch {
		prev := s.Chain[len(s.Chain)-1]
		if o.Savepoint == "" {
			prev = a.Restoring.Source // what came after it is given up
		}
		built := epoch.Continue(a.Restoring.Source.Manifest, prev, epoch.Cut{
			Epoch: h.NextEpoch, Kind: epoch.Restore, Term: s.Term, Triggered: m.At, Completed: m.At,
		}, h.Fence)
		b, err := built.Bytes()
		if err != nil {
			return refuse("%s", err)
		}
		a.Cut = &Cut{Ref: epoch.Ref{Epoch: h.NextEpoch, Digest: epoch.Digest(b)}, Manifest: built, Bytes: b}
	}
	if a.Manifest == nil || a.Manifest.Ref != a.Cut.Ref {
		return s.ask(OpStoreManifest, m.At, StoreManifest{Manifest: a.Cut.Manifest, Bytes: a.Cut.Bytes, Ref: a.Cut.Ref})
	}
	next := s.draft()
	next.Durable, next.NextEpoch, next.Restarts = a.Manifest, h.NextEpoch+1, nil
	next.Restored = &Restored{RestoreOrder: *o, From: from, As: a.Manifest.Ref, Until: maps.Collect(s.last().Positions())}
	next.Handled.Restore = o.Seq
	next.Resnapshot = nil // orders given since belong to the history that was left
	return s.order(m, next, Reason{Code: "RESTORED", Request: s.Intent.Request, Since: m.At})
}

// restorable finds the epoch to go back to: a savepoint, or with no name the newest committed one.
func (s *State) restorable(savepoint string) (from Durable, known bool) {
	if savepoint != "" {
		p, known := s.Head.Savepoint(savepoint)
		return p.Durable, known
	}
	i := slices.IndexFunc(s.Chain, func(l epoch.Link) bool { return l.Ref.Epoch == s.Head.Committed })
	if i < 0 {
		return Durable{}, false
	}
	m := s.Chain[i].Manifest
	return Durable{Ref: s.Chain[i].Ref, Fence: m.Fence, Kind: m.Kind, At: m.Completed}, true
}
