package job

import (
	"time"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/plan"
)

// Phase is where a job is in its life.
type Phase string

// The phases. FINISHED, SUSPENDED, CANCELLED, FAILED and DELETED are at rest: no attempt runs.
const (
	Created    Phase = "CREATED"
	Starting   Phase = "STARTING"
	Running    Phase = "RUNNING"
	Draining   Phase = "DRAINING"
	Suspending Phase = "SUSPENDING"
	Finished   Phase = "FINISHED"
	Suspended  Phase = "SUSPENDED"
	Cancelled  Phase = "CANCELLED"
	Failed     Phase = "FAILED"
	Deleted    Phase = "DELETED"
)

// AtRest reports whether no attempt runs in this phase.
func (p Phase) AtRest() bool {
	switch p {
	case Finished, Suspended, Cancelled, Failed, Deleted:
		return true
	case Created, Starting, Running, Draining, Suspending:
	}
	return false
}

// Active reports whether sources emit and epochs are taken in this phase.
func (p Phase) Active() bool { return p == Running || p == Draining || p == Suspending }

// HeadVersion is the version of the head's JSON form.
const HeadVersion = 1

// Head is the head record of one job.
type Head struct {
	Version int    `json:"version"`
	Job     string `json:"job"`
	// Life is made when the job is created and is part of every external name, so that a job made again under the
	// same name is another job.
	Life  string `json:"life"`
	Phase Phase  `json:"phase"`
	// Term is that of the leader that wrote this record.
	Term  uint64      `json:"term"`
	Fence fence.Token `json:"fence"`
	Plan  *PlanRef    `json:"plan,omitempty"`
	// NextEpoch is the next id to hand out; restores take ids here too.
	NextEpoch epoch.ID  `json:"nextEpoch"`
	InFlight  *InFlight `json:"inFlight,omitempty"`
	Durable   *Durable  `json:"durable,omitempty"`
	// Committed is the newest epoch that every committer has confirmed.
	Committed epoch.ID `json:"committed"`
	// Skipped counts the epochs in a row that were given up since the last durable one of this attempt.
	Skipped int `json:"skipped,omitempty"`
	// Drain is set from the moment a drain begins until the job is at rest; a recovery in between keeps it.
	Drain *DrainState `json:"drain,omitempty"`
	// SuspendFrom is, while SUSPENDING, the first epoch id that may be the suspension's last one.
	SuspendFrom epoch.ID `json:"suspendFrom,omitempty"`
	// Saving is the savepoint under way, Savepoints are those that are kept, oldest first.
	Saving     *Saving     `json:"saving,omitempty"`
	Savepoints []Savepoint `json:"savepoints,omitempty"`
	// Restored is the last time that the life went on from an older epoch.
	Restored *Restored `json:"restored,omitempty"`
	// Adopted is the last time that the job went on from the ledgers of its sinks.
	Adopted *Adopted `json:"adopted,omitempty"`
	// Refused is the last order that could not be carried out.
	Refused *Refusal `json:"refused,omitempty"`
	// Restarts are the recent recoveries, oldest first, as far as the restart policy looks back.
	Restarts []Restart `json:"restarts,omitempty"`
	// RetryAt is when the attempt will be placed; zero for at once. The old attempt is fenced at once in any case.
	RetryAt time.Time `json:"retryAt,omitzero"`
	// Handled are the sequences of the intent that have been answered.
	Handled Handled `json:"handled,omitzero"`
	// Resnapshot is the last order to the sources, of this life.
	Resnapshot *Resnapshot `json:"resnapshot,omitempty"`
	// Applied is the last spec that was given to this life after its first.
	Applied *Applied `json:"applied,omitempty"`
	// Claimed tells what each sink's ledger held when this attempt claimed it; kept for people and for audits.
	Claimed map[string]LedgerRow `json:"claimed,omitempty"`
	// Release names who drops the job's external resources (slot, publication) once it is at rest for good.
	Release *Release `json:"release,omitempty"`
	Reason  Reason   `json:"reason"`
	// SpecDigest is the digest of the spec this life runs.
	SpecDigest string    `json:"specDigest"`
	Updated    time.Time `json:"updated"`
}

// PlanRef names the deployment plan of an attempt.
type PlanRef struct {
	Fence  fence.Token `json:"fence"`
	Key    string      `json:"key"`
	Digest string      `json:"digest"`
	// Restore is the manifest the attempt starts from; nil for the first attempt of a life.
	Restore *Durable `json:"restore,omitempty"`
}

// InFlight is the epoch being taken.
type InFlight struct {
	Epoch    epoch.ID   `json:"epoch"`
	Kind     epoch.Kind `json:"kind"`
	Deadline time.Time  `json:"deadline"`
	// Savepoint is the name under which a SAVEPOINT epoch is kept.
	Savepoint string    `json:"savepoint,omitempty"`
	Triggered time.Time `json:"triggered"`
	// Trace is the W3C traceparent of the leader's span for this epoch; empty when it is not sampled. The leader's shell
	// sets it before the record is written first; nothing is decided on it.
	Trace string `json:"trace,omitempty"`
}

// Durable is a durable epoch and where its manifest is.
type Durable struct {
	epoch.Ref
	// Key is the manifest's key in the registry, or its subject in the state stream when it is too big for a value.
	Key    string        `json:"key"`
	Object *epoch.Object `json:"object,omitempty"`
	// Fence is the attempt that took it; channel tallies are compared only within one attempt.
	Fence fence.Token `json:"fence"`
	Kind  epoch.Kind  `json:"kind"`
	At    time.Time   `json:"at"`
}

// DrainState is the end of a drain.
type DrainState struct {
	// From is the first epoch id that may be the drain's TERMINAL epoch; an older TERMINAL one belongs to a drain that
	// was given up.
	From epoch.ID `json:"from"`
	// Deadline is when the drain fails with DRAIN_TIMEOUT; zero when nobody asked for it, because the sources came to
	// their end by themselves: a target that is down then is waited for, as ever.
	Deadline time.Time `json:"deadline,omitzero"`
}

// RestartKind says which budget a recovery is charged to.
type RestartKind string

// The kinds of recoveries. Failures, losses and stalls have budgets of their own, so that a flapping node does not eat
// the budget of real failures.
const (
	// RestartFailure: a subtask failed for a reason of its own.
	RestartFailure RestartKind = "FAILURE"
	// RestartLoss: a node, a stream or a connection went away.
	RestartLoss RestartKind = "LOSS"
	// RestartStall: epochs did not become durable, or subtasks did not become ready.
	RestartStall RestartKind = "STALL"
	// RestartFree: the target is down, or a node hands its subtasks over. Never exhausts a budget.
	RestartFree RestartKind = "FREE"
	// RestartAway: a source cannot be reached. Exhausts no budget either, and its pauses are short: see [State.pause].
	RestartAway RestartKind = "AWAY"
)

// Restart is one recovery.
type Restart struct {
	At   time.Time   `json:"at"`
	Kind RestartKind `json:"kind"`
	// Durable is the newest durable epoch at that time: restarts without progress between them back off.
	Durable epoch.ID `json:"durable"`
}

// Handled are the sequences of an [Intent] that the leader has answered.
type Handled struct {
	Start    uint64 `json:"start,omitempty"`
	Resume   uint64 `json:"resume,omitempty"`
	EpochSeq uint64 `json:"epochSeq,omitempty"`
	// Resnapshot is the sequence of the last order that a head was given.
	Resnapshot uint64 `json:"resnapshot,omitempty"`
	// Applied is the sequence of the last spec that a head was given.
	Applied uint64 `json:"applied,omitempty"`
	// Savepoint is that of the last order about savepoints, Restore that of the last order to go back.
	Savepoint uint64 `json:"savepoint,omitempty"`
	Restore   uint64 `json:"restore,omitempty"`
	// Adopt is that of the last order to take ledgers over.
	Adopt uint64 `json:"adopt,omitempty"`
}

// Release is the hand-over of clean-up to one process.
type Release struct {
	plan.Placement
	// Try numbers the hand-overs of a life; a process answers each once.
	Try int `json:"try"`
	// Sources are those the process is asked to release, Released those that are done.
	Sources  []string `json:"sources,omitempty"`
	Released []string `json:"released,omitempty"`
	// Done says that nothing of the job is left outside the bus, except what a sink keeps on purpose.
	Done bool `json:"done"`
}

// Reason says why the last transition happened.
type Reason struct {
	// Code is a fault code (WEIR-JOB-003) or a plain word for ordinary transitions (SUBMITTED, EPOCH, RECOVERED).
	Code    string          `json:"code"`
	Subtask *plan.SubtaskID `json:"subtask,omitempty"`
	Text    string          `json:"text,omitempty"`
	// Request quotes the intent's request id when a person asked for it.
	Request string    `json:"request,omitempty"`
	Since   time.Time `json:"since,omitzero"`
	// Remedy is what a person can do about it.
	Remedy string `json:"remedy,omitempty"`
}

// LedgerRow is a sink's current ledger row.
type LedgerRow struct {
	Life  string      `json:"life"`
	Ref   epoch.Ref   `json:"ref"`
	Fence fence.Token `json:"fence"`
}
