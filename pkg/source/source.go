package source

import (
	"context"
	"log/slog"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/position"
	"weir.dev/weir/pkg/report"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/spec"
)

// Identity is who a subtask is; external names and session names are made of it.
type Identity struct {
	Job     string
	Life    string
	Fence   fence.Token
	Subtask plan.SubtaskID
}

// Config is what a connector needs to open one half.
type Config struct {
	Identity
	// Source is the user's configuration with its references unresolved.
	Source spec.Source
	// Resolve turns a reference into its value; the value never leaves the connector.
	Resolve func(ref string) (string, error)
	// Readers is the parallelism of the source.
	Readers int
	// Restore is the state of the durable epoch the attempt starts from; nil at the first start of a life.
	Restore []byte
	// Parts are the readers' states of that epoch, given to the enumerator too, so that any reader count works.
	Parts [][]byte
	// Again, of an enumerator, is the last order to copy tables anew; nil for none.
	Again *Again
	// Applied, of an enumerator, numbers the last change of Source within the life; zero for none. An enumerator keeps the
	// number in its state. For a higher one it looks again at what its source matches: what is new is read from its beginning,
	// what no longer matches is left alone, at the sinks too.
	Applied uint64
	// Restored, of an enumerator, is the last order to go on from an older epoch; nil for none. Restore is then of that epoch.
	Restored *Restored
	// Adopted, of an enumerator, says where a source goes on whose state is lost, without Restore; with it, the state was made
	// since and counts. Nil for none.
	Adopted *Adopted
	// MaxTransactionRows is the size above which a source transaction may be cut.
	MaxTransactionRows int
	// Batch is the target size of one batch, in bytes.
	Batch int64
	// Store keeps what a reader has read and not emitted yet, and is too big for its memory, in objects of about Segment
	// bytes.
	Store   Store
	Segment int64
	// Hold takes names that one half at a time may use; nil outside a mesh.
	Hold   Hold
	Logger *slog.Logger
}

// Store keeps objects on the bus. An object lasts as long as cuts name it: everything that a half has put and may read back
// is named by each of its cuts, see [Cut.Objects], from the first one after Put on.
type Store interface {
	// Put makes an object safe and returns its name, size and digest. It is called from the half's own loop, within a Poll,
	// so that no cut lies between it and the return.
	Put(ctx context.Context, data []byte) (epoch.Object, error)
	// Get reads an object back and checks its digest. It may be called from anywhere.
	Get(ctx context.Context, o epoch.Object) ([]byte, error)
}

// Again is an order to copy tables anew: each is emptied at the sinks with a truncate and read again, as if it had just been
// added, while the log waits. An enumerator keeps the sequence of the order it has taken in its state and does nothing for
// one that is not higher; without a state to restore everything is read in any case.
type Again struct {
	Seq uint64
	// Tables are schema.table; none means all. Those that the source does not capture are none of its business.
	Tables []string
}

// Adopted is an order to go on from positions that sinks have kept, with nothing else left of the life: what it made upstream is used
// again, nothing is copied.
type Adopted struct {
	// Positions are where the readers were, by index; none for those that had none.
	Positions map[int]position.Position
	// Trust says that nobody but the job has moved what the spec names of the user's own upstream, a slot for one.
	Trust bool
	// Left is another life of the job whose slots and the like are not needed any more; empty for none.
	Left string
}

// Restored is an order to go on from an older epoch than the durable one. Upstream may have been told to forget what that epoch
// needs, unless it was made to keep it under the epoch's number, see [Keeper]. An enumerator keeps the sequence of the order
// that it has carried out in its state, and does nothing for one that is not higher.
type Restored struct {
	Seq   uint64
	Epoch epoch.ID
}

// Keeper is an enumerator of a source that forgets what is confirmed, unless it is made to keep it.
type Keeper interface {
	// Keep makes upstream keep what each of these epochs needs to be restored, under its number, and lets go of what it keeps for
	// others. taking, unless zero, is the one among them whose barrier has not passed yet: what is confirmed by now is before its
	// cut. One that is missing otherwise cannot be kept any more, which is no error. Keep may take long and must honour ctx; it is called
	// beside the other methods, one call at a time.
	Keep(ctx context.Context, taking epoch.ID, all []epoch.ID) error
}

// Connector opens the halves of one kind of source.
type Connector interface {
	// OpenEnumerator sets up what the source needs (publication, slot) and returns the enumerator. It may take long
	// and must honour ctx.
	OpenEnumerator(ctx context.Context, cfg Config) (Enumerator, error)
	// OpenReader connects one reader. It must not emit before Poll is called.
	OpenReader(ctx context.Context, cfg Config) (Reader, error)
	// Release drops everything the life made outside the bus (slot, publication). It is idempotent; what the user
	// made is never dropped.
	Release(ctx context.Context, cfg Config) error
}

// Status is what a Poll found.
type Status struct {
	// Input says that there is something new since the last snapshot: heartbeats, empty transactions and Weir's own
	// commits seen in the log are not input.
	Input bool
	// Drained says that everything up to the end has been emitted: the end fixed by Drain, or that of a source which is
	// finite. It stays true. A job all of whose readers are past their end finishes by itself.
	Drained bool
}

// Cut is a half's state at a safe point.
type Cut struct {
	// State restores the half; its form is the connector's.
	State []byte
	// Position is the resume point for people and for progress; zero for enumerators.
	Position position.Position
	// Torn says that the cut lies inside a source transaction.
	Torn bool
	// Objects are those of the store that the half needs to go on from this cut, or will need after the next.
	Objects []epoch.Object
}

// Output takes what a reader emits. It may block while the channel's window is full.
type Output interface {
	// Emit sends rows of one table. at is the position after its last row.
	Emit(ctx context.Context, b rows.Batch, at position.Position) error
	// Tell sends a message to the enumerator, outside alignment.
	Tell(ctx context.Context, payload []byte) error
}

// Reader reads one share of the source.
type Reader interface {
	// Poll emits what is at hand and returns at a safe point. With nothing at hand it waits until there is, until
	// wake is signalled or until ctx ends. A Poll that has received from wake must return: the signal is then used up,
	// and the caller looks at everything after each Poll.
	Poll(ctx context.Context, out Output, wake <-chan struct{}) (Status, error)
	// Snapshot returns the cut at the present safe point.
	Snapshot(e epoch.ID) (Cut, error)
	// Receive takes a message from the enumerator, in the order of the channel.
	Receive(payload []byte) error
	// Confirm says that the epoch's cut is committed at every sink: upstream may now forget what lies before it.
	Confirm(e epoch.ID, cut Cut)
	// Drain fixes the end: what the source holds now is still emitted, nothing after it.
	Drain(ctx context.Context) error
	// Report returns the latest progress; it never blocks and is called from other goroutines.
	Report() report.Reader
	// Close frees connections; it is called once, also after errors.
	Close() error
}

// Looker is a reader that looks at the head of its source beside the flow, now and then.
type Looker interface {
	// Look asks for a look at once: somebody waits for a head that was asked for behind a barrier that has passed, see
	// [report.SourceHead]. It never blocks.
	Look()
}

// Directory lets an enumerator address its readers.
type Directory interface {
	// Tell sends a message to one reader, in band with the barriers.
	Tell(ctx context.Context, reader int, payload []byte) error
}

// Enumerator decides what the readers read.
type Enumerator interface {
	// Poll hands out work and returns; with nothing to do it waits for wake or ctx.
	Poll(ctx context.Context, out Directory, wake <-chan struct{}) (Status, error)
	// Snapshot returns the enumerator's state.
	Snapshot(e epoch.ID) (Cut, error)
	// Receive takes a message from a reader.
	Receive(reader int, payload []byte) error
	// Confirm says that the epoch is committed at every sink.
	Confirm(e epoch.ID, cut Cut)
	// Durable says that the epoch is durable: the head record names it.
	Durable(e epoch.ID)
	// Drain asks for the end of the input; an unfinished snapshot is finished first.
	Drain(ctx context.Context) error
	// Report returns the latest progress; it never blocks and is called from other goroutines.
	Report() report.Enumerator
	// Close frees connections.
	Close() error
}
