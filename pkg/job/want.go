package job

import (
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/plan"
)

// Self is the process that asks.
type Self struct {
	Node        string
	Incarnation string
}

// Held is what a process does for one job at the moment. The node keeps it up to date as it performs actions; the zero
// value does nothing.
type Held struct {
	// Fence is the attempt whose subtasks the process runs, or whose plan it has read; zero for none.
	Fence fence.Token
	// Plan is that attempt's plan; nil until it has been read.
	Plan *plan.Deployment
	// Started says that the process has started its subtasks of this fence. It stays true when they have ended: each
	// fence is started at most once.
	Started bool
	// Emitting says that the sources were let go.
	Emitting bool
	// Draining says that the sources were told to fix their end.
	Draining bool
	// Barrier, Durable and Committed are the newest epochs handed to the subtasks.
	Barrier   epoch.ID
	Durable   epoch.ID
	Committed epoch.ID
	// Releasing is the request to drop external resources that the process is on, or has answered.
	Releasing ReleaseID
}

// ReleaseID names one request to drop what a life made outside the bus.
type ReleaseID struct {
	Life string `json:"life"`
	Try  int    `json:"try"`
}

// Action is one thing a process must do to match a head record. Actions come in the order in which they must be done;
// each may be done again.
//
//sumtype:decl
type Action interface{ action() }

// Stop ends every subtask of the attempt: cancel with [fence.ErrFenced] as the cause, flush nothing.
type Stop struct{ Fence fence.Token }

// ReadPlan reads the plan and checks its digest; then Want is asked again with it.
type ReadPlan struct{ Ref PlanRef }

// Start runs these subtasks: open inputs, restore from the plan reference's manifest, claim ledgers, report ready.
type Start struct {
	Fence    fence.Token
	Subtasks []plan.SubtaskID
	// Restore is the manifest to start from; nil for a fresh start.
	Restore *Durable
	// Resnapshot is the last order to the sources; an enumerator's state tells whether it was done.
	Resnapshot *Resnapshot
	// Restored is the last order to go on from an older epoch; an enumerator's state tells whether it was done.
	Restored *Restored
	// Adopted is the last order to go on from ledgers; it counts for an enumerator that has no state.
	Adopted *Adopted
	// Applied is the sequence of the last change of the spec within this life, to be treated alike; zero for none.
	Applied uint64
}

// Emit lets the sources go: every subtask of the attempt is ready.
type Emit struct{ Fence fence.Token }

// Drain tells the sources to fix their end.
type Drain struct{ Fence fence.Token }

// Barrier hands the epoch in flight to the enumerators, which send it down the channels.
type Barrier struct {
	Fence fence.Token
	Epoch epoch.ID
	Kind  epoch.Kind
}

// CommitUpTo tells committers which manifest may be made visible, with everything before it on its chain, and tells
// enumerators and writers that the epoch is durable.
type CommitUpTo struct {
	Fence   fence.Token
	Durable Durable
}

// Confirm tells the sources that everything up to the epoch is committed at every sink.
type Confirm struct {
	Fence fence.Token
	Epoch epoch.ID
}

// DropExternal drops what the life made outside the bus for these sources, then reports a [ReleasedFact].
type DropExternal struct {
	Fence      fence.Token
	Request    ReleaseID
	SpecDigest string
	Sources    []string
}

func (Stop) action()         {}
func (ReadPlan) action()     {}
func (Start) action()        {}
func (Emit) action()         {}
func (Drain) action()        {}
func (Barrier) action()      {}
func (CommitUpTo) action()   {}
func (Confirm) action()      {}
func (DropExternal) action() {}

// Want says what a process must do to match a head record. It asks nothing else: two processes with the same head do
// the right thing without talking to each other. The caller has judged the reading as [Current]; a missing record
// (nil) stops everything.
func Want(h *Head, self Self, held Held) []Action {
	var todo []Action
	if held.Fence != 0 && (h == nil || h.Fence != held.Fence || h.Phase.AtRest()) {
		if held.Started {
			todo = append(todo, Stop{Fence: held.Fence})
		}
		held = Held{Releasing: held.Releasing}
	}
	switch {
	case h == nil:
		return todo
	case h.Phase.AtRest():
		return append(todo, release(h, self, held)...)
	case h.Plan == nil || h.Plan.Fence != h.Fence:
		// The attempt is not placed yet. A plan of another fence never starts anything.
		return todo
	case held.Plan == nil || held.Fence != h.Fence:
		return append(todo, ReadPlan{Ref: *h.Plan})
	}
	mine := placed(held.Plan, self)
	if len(mine) == 0 {
		return todo
	}
	if !held.Started {
		// Only while STARTING: a process that comes back must not resurrect subtasks in a running attempt.
		if h.Phase == Starting {
			start := Start{Fence: h.Fence, Subtasks: mine, Restore: h.Plan.Restore, Resnapshot: h.Resnapshot, Restored: h.Restored, Adopted: h.Adopted}
			if h.Applied != nil {
				start.Applied = h.Applied.Seq
			}
			todo = append(todo, start)
		}
		return todo
	}
	return append(todo, follow(h, held)...)
}

// follow is what a started process does as its head moves on. Durable and committed come before the next barrier, as
// they happened.
func follow(h *Head, held Held) []Action {
	if !h.Phase.Active() {
		// Claimed ledgers are judged by the leader before anything is committed.
		return nil
	}
	var todo []Action
	if h.Durable != nil && h.Durable.Epoch > held.Durable {
		todo = append(todo, CommitUpTo{Fence: h.Fence, Durable: *h.Durable})
	}
	if h.Committed > held.Committed {
		todo = append(todo, Confirm{Fence: h.Fence, Epoch: h.Committed})
	}
	if !held.Emitting {
		todo = append(todo, Emit{Fence: h.Fence})
	}
	if h.Phase == Draining && !held.Draining {
		todo = append(todo, Drain{Fence: h.Fence})
	}
	if h.InFlight != nil && h.InFlight.Epoch > held.Barrier {
		todo = append(todo, Barrier{Fence: h.Fence, Epoch: h.InFlight.Epoch, Kind: h.InFlight.Kind})
	}
	return todo
}

func release(h *Head, self Self, held Held) []Action {
	r := h.Release
	if r == nil || r.Done || r.Node != self.Node || r.Incarnation != self.Incarnation {
		return nil
	}
	id := ReleaseID{Life: h.Life, Try: r.Try}
	if held.Releasing == id {
		return nil
	}
	return []Action{DropExternal{Fence: h.Fence, Request: id, SpecDigest: h.SpecDigest, Sources: r.Sources}}
}

// placed lists the subtasks that the plan gives to this very process.
func placed(d *plan.Deployment, self Self) []plan.SubtaskID {
	var mine []plan.SubtaskID
	for _, s := range d.Subtasks() {
		if p := d.Placements[s]; p.Node == self.Node && p.Incarnation == self.Incarnation {
			mine = append(mine, s)
		}
	}
	return mine
}
