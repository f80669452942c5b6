package job

import (
	"encoding/json"
	"time"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/plan"
)

// A fact is what a subtask tells the coordinator: READY until RUNNING, an ack until its epoch is durable or gone,
// committed until the head says so, input until the next barrier, failed until the fence changes. Each is repeated
// every second and on reconnect, last one per subject, so a lost message costs latency, never correctness.

// ReadyFact says that a subtask has restored its state and opened its inputs.
type ReadyFact struct {
	Fence       fence.Token    `json:"fence"`
	Subtask     plan.SubtaskID `json:"subtask"`
	Incarnation string         `json:"incarnation"`
	// Ledger is the row a committer claimed; nil for other roles, and for a committer whose sink has no ledger row yet
	// it is a row with a zero Ref.
	Ledger *LedgerRow `json:"ledger,omitempty"`
}

// AckFact is a subtask's part of an epoch.
type AckFact = epoch.Ack

// CommittedFact says that a committer has applied everything up to an epoch.
type CommittedFact struct {
	Fence   fence.Token    `json:"fence"`
	Subtask plan.SubtaskID `json:"subtask"`
	Epoch   epoch.ID       `json:"epoch"`
	// Took is from when the committer heard that Epoch is durable until it was applied, by the committer's clock; for people.
	Took time.Duration `json:"took,omitempty"`
	// Waiting is set when the commit, or the claim of the ledger before READY, is being retried: the fault and since
	// when. Epoch is then what has been applied so far.
	Waiting *Trouble `json:"waiting,omitempty"`
}

// Trouble is something that is being retried, for people.
type Trouble struct {
	Fault json.RawMessage `json:"fault"`
	Since time.Time       `json:"since"`
}

// InputFact says that there is something new since the last epoch; heartbeats and empty transactions are not input.
type InputFact struct {
	Fence   fence.Token    `json:"fence"`
	Subtask plan.SubtaskID `json:"subtask"`
	// After is the last epoch whose barrier the subtask has passed.
	After epoch.ID `json:"after"`
	// Early asks for an epoch at once: a writer's open epoch is half full.
	Early bool `json:"early,omitempty"`
}

// DrainedFact says that a reader is past its fixed end and idles, passing barriers.
type DrainedFact struct {
	Fence   fence.Token    `json:"fence"`
	Subtask plan.SubtaskID `json:"subtask"`
}

// FailedFact says that a subtask has stopped for a typed reason; the leader recovers the job or fails it.
type FailedFact struct {
	Fence   fence.Token    `json:"fence"`
	Subtask plan.SubtaskID `json:"subtask"`
	// Class is the fault class by name (fault.Class.String); it wins over the class of the fault's code. Fault is the
	// JSON form of a *fault.Error.
	Class string          `json:"class"`
	Fault json.RawMessage `json:"fault"`
}

// ReleasedKind is the kind token of a [ReleasedFact]'s subject.
const ReleasedKind = "released"

// ReleaseVertex is the vertex name under which a [ReleasedFact] is published; no vertex of a plan can have it.
const ReleaseVertex plan.VertexID = "_release"

// ReleasedFact says that the external resources asked for are gone, or why they are not. It is published under kind
// [ReleasedKind] for the subtask {[ReleaseVertex], 0}.
type ReleasedFact struct {
	Fence fence.Token `json:"fence"`
	Node  string      `json:"node"`
	// Request is the hand-over this answers.
	Request ReleaseID       `json:"request"`
	Fault   json.RawMessage `json:"fault,omitempty"`
}
