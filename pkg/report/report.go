package report

import (
	"encoding/json"
	"fmt"
	"time"

	"weir.dev/weir/pkg/position"
)

// Accuracy says how far a value can be trusted.
type Accuracy string

// The accuracies.
const (
	Exact       Accuracy = "EXACT"
	BestEffort  Accuracy = "BEST_EFFORT"
	Unsupported Accuracy = "UNSUPPORTED"
	Unavailable Accuracy = "UNAVAILABLE"
)

// Value is a value with its accuracy. The zero Value is UNAVAILABLE.
type Value[T any] struct {
	v   T
	acc Accuracy
}

// ExactOf is a value that is provable from state.
func ExactOf[T any](v T) Value[T] { return Value[T]{v: v, acc: Exact} }

// BestEffortOf is a value that was observed but may be off.
func BestEffortOf[T any](v T) Value[T] { return Value[T]{v: v, acc: BestEffort} }

// UnsupportedOf is a value this source can never give.
func UnsupportedOf[T any]() Value[T] { return Value[T]{acc: Unsupported} }

// Get returns the value; ok is false when there is none.
func (v Value[T]) Get() (value T, ok bool) {
	return v.v, v.acc == Exact || v.acc == BestEffort
}

// Accuracy tells how far the value can be trusted.
func (v Value[T]) Accuracy() Accuracy {
	if v.acc == "" {
		return Unavailable
	}
	return v.acc
}

type valueJSON[T any] struct {
	Value    *T       `json:"value,omitempty"`
	Accuracy Accuracy `json:"accuracy"`
}

// MarshalJSON writes {"value":..,"accuracy":..}; value is absent when there is none.
func (v Value[T]) MarshalJSON() ([]byte, error) {
	j := valueJSON[T]{Accuracy: v.Accuracy()}
	if got, ok := v.Get(); ok {
		j.Value = &got
	}
	return json.Marshal(j)
}

// UnmarshalJSON refuses a value whose presence contradicts its accuracy.
func (v *Value[T]) UnmarshalJSON(b []byte) error {
	var j valueJSON[T]
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	has := j.Accuracy == Exact || j.Accuracy == BestEffort
	switch {
	case !has && j.Accuracy != Unsupported && j.Accuracy != Unavailable:
		return fmt.Errorf("accuracy %q: unknown", j.Accuracy)
	case has != (j.Value != nil):
		return fmt.Errorf("accuracy %s: value present is %t", j.Accuracy, j.Value != nil)
	}
	*v = Value[T]{acc: j.Accuracy}
	if j.Value != nil {
		v.v = *j.Value
	}
	return nil
}

// Lifecycle is where a source is: copying, catching up with the log, or live.
type Lifecycle string

// The lifecycles of a source.
const (
	Snapshot    Lifecycle = "SNAPSHOT"
	CatchUp     Lifecycle = "CATCH_UP"
	Incremental Lifecycle = "INCREMENTAL"
	Unknown     Lifecycle = "UNKNOWN"
)

// SourceHead is the source's own end of log, observed beside the flow; never used for correctness.
type SourceHead struct {
	Position position.Position `json:"position"`
	// At is the source's clock where it gives one, else the observer's.
	At time.Time `json:"at"`
	// Sequence grows with every observation.
	Sequence uint64 `json:"sequence"`
	// After is the newest epoch whose barrier had passed the reader before it asked for the end: who knows when that epoch was begun
	// knows by it that the end was asked for later, by nobody's clock.
	After uint64 `json:"after,omitempty"`
}

// Reader is one reader's progress.
type Reader struct {
	Connector string    `json:"connector"`
	Lifecycle Lifecycle `json:"lifecycle"`
	// Copies says that this reader is never given the log: it reads chunks, and its lifecycle is not the source's.
	Copies bool `json:"copies,omitempty"`
	// ActiveSplit is the split being read.
	ActiveSplit Value[string] `json:"activeSplit"`
	// Consumed is the position up to which rows have been emitted, exclusive.
	Consumed Value[position.Position] `json:"consumed"`
	// Restored is the position at which the reader was told to begin the log, in a first attempt too. Whether it was
	// restored, and from which epoch, only the engine knows: see [Restore].
	Restored Value[position.Position] `json:"restored"`
	// LastChange is when Consumed last moved.
	LastChange Value[time.Time] `json:"lastChange"`
	// LastEvent is the source's commit time of the last row emitted.
	LastEvent Value[time.Time] `json:"lastEvent"`
	Rows      Value[uint64]    `json:"rows"`
	// Head is the source's end of log as last observed.
	Head Value[SourceHead] `json:"head"`
	// RetainedBytes is the log the source keeps for us.
	RetainedBytes Value[int64] `json:"retainedBytes"`
	// Retention is by what the source bounds that log and how it grows; absent while that is not known.
	Retention *Retention `json:"retention,omitempty"`
	// Beat is the newest heartbeat that came back from the sinks; UnderWay the one that is on its way to them, absent when none is.
	Beat     Value[Beat] `json:"beat,omitzero"`
	UnderWay *Way        `json:"underWay,omitempty"`
	// Waits is what the reader waits for at its source for longer than a moment, the oldest first.
	Waits  []Wait  `json:"waits,omitempty"`
	Tables []Table `json:"tables,omitempty"`
}

// Wait is something that is waited for at a source.
type Wait struct {
	// Since is when the wait began.
	Since time.Time `json:"since"`
	// What is waited for, in words.
	What string `json:"what"`
}

// Table is the progress of one table within a reader or enumerator.
type Table struct {
	Name      string        `json:"name"`
	Lifecycle Lifecycle     `json:"lifecycle"`
	Rows      Value[uint64] `json:"rows"`
	// Note says in words what a person should know, e.g. why the table is not captured.
	Note string `json:"note,omitempty"`
	// Splits are those of the table's present copy, of an enumerator; absent where there are none.
	Splits *Splits `json:"splits,omitempty"`
	// Rate is how many rows of the present copy were read in a second, lately; absent of a table that is not being copied.
	Rate Value[uint64] `json:"rate,omitzero"`
}

// Splits counts the splits of one table, exactly, from the same state as the enumerator's own counts.
type Splits struct {
	Completed uint64 `json:"completed"`
	Running   uint64 `json:"running"`
	Prepared  uint64 `json:"prepared"`
	// Cut says that these are all: until then nobody knows how many there will be.
	Cut bool `json:"cut"`
}

// Assignment is how far an enumerator is with handing out splits. That all of them are read does not say where readers
// are: an enumerator has no lifecycle.
type Assignment string

// The stages of assignment.
const (
	NotApplicable Assignment = "NOT_APPLICABLE"
	Discovering   Assignment = "DISCOVERING"
	Assigning     Assignment = "ASSIGNING"
	AllAssigned   Assignment = "COMPLETED"
)

// Enumerator is an enumerator's progress. Its counts are taken from one state at one moment, never summed up from events.
type Enumerator struct {
	Connector  string     `json:"connector"`
	Assignment Assignment `json:"assignment"`
	// Assigned counts the splits of the present copies that are at readers or read: Completed + Running when all three are
	// exact.
	Assigned  Value[uint64] `json:"assigned"`
	Completed Value[uint64] `json:"completed"`
	Running   Value[uint64] `json:"running"`
	// PreparedUnsent counts splits that are cut and at no reader, TablesNotChunked the tables of which more will be cut: while
	// there are any, nobody knows how many splits there will be.
	PreparedUnsent   Value[uint64] `json:"preparedUnsent"`
	TablesNotChunked Value[uint64] `json:"tablesNotChunked"`
	// HandedOut counts what this attempt gave to readers; what came back and went out again counts twice.
	HandedOut Value[uint64] `json:"handedOut,omitzero"`
	// Active are splits at readers, by id, at most [MaxActive]; ActiveTruncated says that there are more.
	Active          []Split `json:"active,omitempty"`
	ActiveTruncated bool    `json:"activeTruncated,omitempty"`
	// Read are the newest of the splits that are read, by id, at most [MaxRead], each with its own watermark. The enumerator keeps
	// watermarks until the log has passed them: of tables that are live there are none.
	Read []Split `json:"read,omitempty"`
	// Waits is what the enumerator waits for at its source for longer than a moment, the oldest first.
	Waits  []Wait  `json:"waits,omitempty"`
	Tables []Table `json:"tables,omitempty"`
}

// MaxActive and MaxRead bound the splits that a report names.
const (
	MaxActive = 100
	MaxRead   = 20
)

// Split is one split with its own watermarks: what is there is of this split.
type Split struct {
	ID    string `json:"id"`
	Table string `json:"table"`
	// Low and High are where the log was before and after the split was read, in the source's own words. A source whose splits
	// are right as of one place in the log has that as High, and no Low.
	Low  Value[string] `json:"low"`
	High Value[string] `json:"high"`
}

// Total is how many splits there will be, when that can be known: not before every table is cut.
func (e *Enumerator) Total() Value[uint64] {
	assigned, ok1 := exactOf(e.Assigned)
	prepared, ok2 := exactOf(e.PreparedUnsent)
	open, ok3 := exactOf(e.TablesNotChunked)
	switch {
	case e.Assignment == NotApplicable || e.Assigned.Accuracy() == Unsupported || e.TablesNotChunked.Accuracy() == Unsupported:
		return UnsupportedOf[uint64]()
	case !ok1 || !ok2 || !ok3 || open > 0 || e.Assignment == Discovering:
		return Value[uint64]{}
	}
	return ExactOf(assigned + prepared)
}

func exactOf(v Value[uint64]) (uint64, bool) {
	n, ok := v.Get()
	return n, ok && v.Accuracy() == Exact
}

// Envelope is one report as a node publishes it.
type Envelope struct {
	Job      string    `json:"job"`
	Subtask  string    `json:"subtask"`
	Fence    uint64    `json:"fence"`
	Sequence uint64    `json:"sequence"`
	Observed time.Time `json:"observed"`
	// Restore is what the engine restored this attempt of the subtask from; absent in the first attempt of a life.
	Restore *Restore `json:"restore,omitempty"`
	// Exactly one of the two is set.
	Reader     *Reader     `json:"reader,omitempty"`
	Enumerator *Enumerator `json:"enumerator,omitempty"`
}

// Restore is where an attempt of a subtask began, told by the engine that restored it and not concluded from positions.
type Restore struct {
	// Epoch is the durable epoch the attempt began from.
	Epoch uint64 `json:"epoch"`
	// Position is the subtask's cut of that epoch; UNAVAILABLE where it had none.
	Position Value[position.Position] `json:"position"`
	// First is the first position behind which rows were emitted by this attempt.
	First Value[position.Position] `json:"first"`
}

// Newer reports whether e replaces o, an earlier report of the same subtask: the fence decides, then the sequence, which
// begins anew with each attempt. Time never does.
func (e *Envelope) Newer(o *Envelope) bool {
	return e.Fence > o.Fence || e.Fence == o.Fence && e.Sequence > o.Sequence
}
