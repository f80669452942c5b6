package sink

import (
	"context"
	"encoding/json"
	"log/slog"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/position"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/pkg/spec"
)

// Level is what a sink can promise. Plans are checked against it before any connector is there.
type Level = plan.Level

// The levels, best first.
const (
	Transactional = plan.Transactional
	Ordered       = plan.Ordered
	Idempotent    = plan.Idempotent
	AppendOnly    = plan.AppendOnly
)

// Store keeps staged pieces on the bus. Pieces of attempts that died are collected by the leader.
type Store interface {
	// Put makes a piece safe and returns its name, size and digest. Several may be under way at once.
	Put(ctx context.Context, data []byte) (epoch.Object, error)
	// Get reads a piece back and checks its digest.
	Get(ctx context.Context, o epoch.Object) ([]byte, error)
}

// Config is what a connector needs to open one half.
type Config struct {
	source.Identity
	// Sink is the user's configuration with its references unresolved.
	Sink spec.Sink
	// Resolve turns a reference into its value; the value never leaves the connector.
	Resolve func(ref string) (string, error)
	Writers int
	// Sources are those of the job; a sink refuses to write into tables that they capture (SINK_OWN_SOURCE).
	Sources []spec.Source
	Store   Store
	// Letters is where a committer puts rows that can never apply; nil unless the sink has dlq, and for writers.
	Letters DeadLetters
	Logger  *slog.Logger
}

// Connector opens the halves of one kind of sink.
type Connector interface {
	// Level is what the sink promises with this configuration; checked when a job is submitted (I7).
	Level(s spec.Sink) Level
	// OpenWriter opens one writer. Restored writers have no state: what they had staged is in manifests.
	OpenWriter(ctx context.Context, cfg Config) (Writer, error)
	// OpenCommitter connects to the target and proves that it can do what the level promises.
	OpenCommitter(ctx context.Context, cfg Config) (Committer, error)
}

// Piece is what a writer has made safe since the last Stage.
type Piece struct {
	// Data describes it to the committer; small payloads are inline.
	Data json.RawMessage
	// Objects lists every state object Data points to.
	Objects []epoch.Object
	Rows    uint64
}

// Writer stages rows.
type Writer interface {
	// Write takes the next batch of the open epoch. The batch must not be kept past Stage.
	Write(ctx context.Context, b rows.Batch) error
	// Stage makes safe what Write took since the last Stage and describes it; no rows, no pieces. e is the last
	// barrier passed plus one, for object names.
	Stage(ctx context.Context, e epoch.ID) ([]Piece, error)
	// Pending is the size of the open epoch, in bytes; it decides when an early epoch is asked for.
	Pending() int64
	// Close frees what is open and removes what was not staged; it is called once, also after errors.
	Close() error
}

// Commit is one durable epoch to be made visible.
type Commit struct {
	// Ref is the manifest that stages the rows, Prev the last one before it that staged anything for this sink.
	Ref, Prev epoch.Ref
	// Staged is in the order of writers and, for each writer, in the order it was staged.
	Staged []epoch.Staged
	// Positions are the source positions of the epoch by reader, for the ledger.
	Positions map[string]position.Position
}

// Result is what a commit did.
type Result struct {
	// Applied is false when the ledger already held the epoch.
	Applied bool
	Rows    uint64
	// Dead counts rows that were left out because they have a dead letter.
	Dead uint64
}

// Committer makes epochs visible.
type Committer interface {
	// Claim takes the ledger for this fence and returns the row it found; a zero Ref means no row. A row of another
	// life or a newer fence is an error. The zero LedgerRow, without a life, says that the sink keeps no ledger because
	// nothing it does is ever visible (blackhole): READY then carries none, and any chain is acceptable.
	Claim(ctx context.Context) (job.LedgerRow, error)
	// Commit applies one epoch in one step with the ledger row. It is idempotent. Transient errors are retried by
	// the caller with the same argument, for ever; Permanent ones fail the job.
	Commit(ctx context.Context, c Commit) (Result, error)
	// Close frees connections.
	Close() error
}

// Numbered is a [Writer] that wants to know the epoch of rows before it stages them: the e that Stage will be called with.
type Numbered interface {
	// Number is called before the first Write of each epoch.
	Number(e epoch.ID)
}
