package job

import (
	"time"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/plan"
)

// Op names an effect whose answer the machine waits for; at most one of each is under way.
type Op string

// The operations.
const (
	OpWriteHead     Op = "write-head"
	OpReadHead      Op = "read-head"
	OpReadSpec      Op = "read-spec"
	OpResetStreams  Op = "reset-streams"
	OpStorePlan     Op = "store-plan"
	OpFetchPlan     Op = "fetch-plan"
	OpFetchChain    Op = "fetch-chain"
	OpFetchManifest Op = "fetch-manifest"
	OpStoreManifest Op = "store-manifest"
	OpDropStreams   Op = "drop-streams"
	OpCollect       Op = "collect"
	OpErase         Op = "erase"
)

// Effect is one thing the leader must do. Effects are plain data, come in the order in which they must begin, and may be
// performed twice. Each but [Announce] and [StepDown] is answered by exactly one event.
//
//sumtype:decl
type Effect interface{ effect() }

// WriteHead stores the record by CAS on Expect, 0 for "must not exist". Answered by [HeadWritten], by [HeadUnsure] when
// another write came first, or by [EffectFailed] when it may or may not have been stored.
type WriteHead struct {
	Head   Head
	Expect uint64
}

// ReadHead reads the record. Answered by [HeadRead] or [EffectFailed].
type ReadHead struct{}

// ReadSpec reads and plans the spec with this digest. Answered by [SpecRead] or [EffectFailed].
type ReadSpec struct{ Digest string }

// ResetStreams deletes every data stream of the job with a lower fence, then creates this one. Answered by
// [StreamsReset] or [EffectFailed].
type ResetStreams struct {
	Fence fence.Token
	// Life is written on the stream, for people.
	Life   string
	Window plan.Window
	// Letters asks for the stream of dead letters too, which outlives attempts and lives.
	Letters bool
}

// StorePlan writes the plan create-only. Answered by [PlanStored] or [EffectFailed].
type StorePlan struct{ Plan *plan.Deployment }

// FetchPlan reads a plan. Answered by [PlanFetched] or [EffectFailed].
type FetchPlan struct{ Ref PlanRef }

// FetchChain reads the manifests from the durable one back to the committed one. Answered by [ChainFetched] or
// [EffectFailed].
type FetchChain struct {
	Durable   Durable
	Committed epoch.ID
}

// FetchManifest reads one manifest, of a savepoint. Answered by [ManifestFetched] or [EffectFailed].
type FetchManifest struct{ Ref epoch.Ref }

// StoreManifest writes the manifest create-only; the same bytes already there are success. Answered by
// [ManifestStored] or [EffectFailed].
type StoreManifest struct {
	Manifest *epoch.Manifest
	Bytes    []byte
	Ref      epoch.Ref
}

// DropStreams deletes every data stream of the job up to and including this fence. Answered by [Swept] or
// [EffectFailed].
type DropStreams struct{ Fence fence.Token }

// Collect removes what can never be named again: state objects named by no kept manifest that belong to a fence below
// Fence, or to an epoch not above Durable when Durable was taken by Fence itself; and manifests older than the committed
// one but for the newest ten. Answered by [Swept] or [EffectFailed].
type Collect struct {
	Life      string
	Fence     fence.Token
	Durable   Durable
	Committed epoch.ID
}

// Erase removes every plan, manifest, dead letter and state object of a life that is over. Head, intent and specs stay. Answered by
// [Swept] or [EffectFailed].
type Erase struct {
	Life  string
	Fence fence.Token
}

// Announce publishes what happened. It is not repeated when it fails.
type Announce struct{ Notice Notice }

// StepDown says that this leader must not act any more: a head carries a newer term, or the registry went back.
type StepDown struct {
	// Term is the one found.
	Term uint64
	// Regressed says that the registry has lost writes.
	Regressed bool
}

func (WriteHead) effect()     {}
func (ReadHead) effect()      {}
func (ReadSpec) effect()      {}
func (ResetStreams) effect()  {}
func (StorePlan) effect()     {}
func (FetchPlan) effect()     {}
func (FetchChain) effect()    {}
func (FetchManifest) effect() {}
func (StoreManifest) effect() {}
func (DropStreams) effect()   {}
func (Collect) effect()       {}
func (Erase) effect()         {}
func (Announce) effect()      {}
func (StepDown) effect()      {}

// NoticeKind is the last token of an event's subject.
type NoticeKind string

// The kinds of notices.
const (
	NoticeState     NoticeKind = "state"
	NoticeRecovery  NoticeKind = "recovery"
	NoticeSkipped   NoticeKind = "skipped"
	NoticeSavepoint NoticeKind = "savepoint" // kept or let go
	NoticeAlarm     NoticeKind = "alarm"
	NoticeTakeover  NoticeKind = "takeover"
	NoticeRefused   NoticeKind = "refused"
)

// Notice is what people and dashboards are told on the event stream. It is written after the fact it tells.
type Notice struct {
	Kind   NoticeKind  `json:"kind"`
	Job    string      `json:"job"`
	Life   string      `json:"life,omitempty"`
	Phase  Phase       `json:"phase,omitempty"`
	Term   uint64      `json:"term"`
	Fence  fence.Token `json:"fence"`
	Epoch  epoch.ID    `json:"epoch,omitempty"`
	Reason Reason      `json:"reason"`
	At     time.Time   `json:"at"`
}
