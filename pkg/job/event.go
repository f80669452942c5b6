package job

import (
	"time"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/plan"
)

// Moment is what an event knows of the world outside the machine: the leader's clock, and a die thrown beforehand.
type Moment struct {
	At time.Time
	// Roll is uniform in [0, 1); it spreads the pause before an attempt.
	Roll float64
}

func (m Moment) moment() Moment { return m }

// Event is something that happened to one job. Time enters the machine in no other way.
//
//sumtype:decl
type Event interface {
	event()
	moment() Moment
}

// Tick says that the time asked for by [State.Wake] has come; more of them do no harm.
type Tick struct{ Moment }

// HeadRead is a reading of the head record: the first one, or the answer to [ReadHead].
type HeadRead struct {
	Moment
	View View
}

// HeadWritten says that [WriteHead] was stored.
type HeadWritten struct {
	Moment
	Revision uint64
}

// HeadUnsure says that a [WriteHead] lost its compare-and-swap: the machine reads back.
type HeadUnsure struct{ Moment }

// IntentRead is the newest wish of a user.
type IntentRead struct {
	Moment
	Intent Intent
	// Life is a fresh random id, used when this wish starts a life.
	Life string
}

// SpecRead is the answer to [ReadSpec].
type SpecRead struct {
	Moment
	Spec Spec
}

// NodesRead lists the live processes with the room that other jobs leave them.
type NodesRead struct {
	Moment
	Nodes []LiveNode
	// Settled is false for one lease period after a takeover or a reconnect: a process that is missing may only be late.
	// One that is there under another incarnation is lost in any case.
	Settled bool
}

// LiveNode is a process with a valid lease.
type LiveNode struct {
	plan.Node
	Leaving bool `json:"leaving,omitempty"`
}

// StreamsReset says that [ResetStreams] is done.
type StreamsReset struct {
	Moment
	Fence fence.Token
}

// PlanStored says that [StorePlan] is done.
type PlanStored struct {
	Moment
	Ref  PlanRef
	Plan *plan.Deployment
}

// PlanFetched is the answer to [FetchPlan].
type PlanFetched struct {
	Moment
	Plan *plan.Deployment
}

// ChainFetched is the answer to [FetchChain]: the manifests from the committed one to the durable one, oldest first.
type ChainFetched struct {
	Moment
	Links []epoch.Link
}

// ManifestFetched is the answer to [FetchManifest].
type ManifestFetched struct {
	Moment
	Link epoch.Link
}

// ManifestStored says that [StoreManifest] is done.
type ManifestStored struct {
	Moment
	Durable Durable
}

// EffectFailed says that an effect was not done, or that nobody knows. The machine issues it again when the reason may
// pass.
type EffectFailed struct {
	Moment
	Op    Op
	Fault *fault.Error
	Class fault.Class
}

// ReadySeen, AckSeen, CommitSeen, InputSeen, DrainedSeen, FailureSeen and ReleaseSeen are facts of subtasks.
type ReadySeen struct {
	Moment
	Fact ReadyFact
}

// AckSeen is a subtask's part of an epoch.
type AckSeen struct {
	Moment
	Fact AckFact
}

// CommitSeen is what a committer has applied.
type CommitSeen struct {
	Moment
	Fact CommittedFact
}

// InputSeen says that there is something to take an epoch for.
type InputSeen struct {
	Moment
	Fact InputFact
}

// DrainedSeen says that a reader is past its end.
type DrainedSeen struct {
	Moment
	Fact DrainedFact
}

// FailureSeen says that a subtask has stopped.
type FailureSeen struct {
	Moment
	Fact FailedFact
}

// ReleaseSeen says that a process has dropped external resources, or could not.
type ReleaseSeen struct {
	Moment
	Fact ReleasedFact
}

// StreamLost says that the data stream of an attempt is gone, empty or shorter than it was: rows are lost.
type StreamLost struct {
	Moment
	Fence fence.Token
	Why   string
}

// Swept says that [DropStreams], [Collect] or [Erase] is done.
type Swept struct {
	Moment
	Op    Op
	Fence fence.Token
}

func (Tick) event()            {}
func (HeadRead) event()        {}
func (HeadWritten) event()     {}
func (HeadUnsure) event()      {}
func (IntentRead) event()      {}
func (SpecRead) event()        {}
func (NodesRead) event()       {}
func (StreamsReset) event()    {}
func (PlanStored) event()      {}
func (PlanFetched) event()     {}
func (ChainFetched) event()    {}
func (ManifestFetched) event() {}
func (ManifestStored) event()  {}
func (EffectFailed) event()    {}
func (ReadySeen) event()       {}
func (AckSeen) event()         {}
func (CommitSeen) event()      {}
func (InputSeen) event()       {}
func (DrainedSeen) event()     {}
func (FailureSeen) event()     {}
func (ReleaseSeen) event()     {}
func (StreamLost) event()      {}
func (Swept) event()           {}
