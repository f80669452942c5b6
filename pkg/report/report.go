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
	// Sequence grows with every observation, so that "the second one after my call" has a meaning.
	Sequence uint64 `json:"sequence"`
}

// Reader is one reader's progress.
type Reader struct {
	Connector string    `json:"connector"`
	Lifecycle Lifecycle `json:"lifecycle"`
	// ActiveSplit is the split being read.
	ActiveSplit Value[string] `json:"activeSplit"`
	// Consumed is the position up to which rows have been emitted, exclusive.
	Consumed Value[position.Position] `json:"consumed"`
	// Restored is the position the attempt started from.
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
	Tables        []Table      `json:"tables,omitempty"`
}

// Table is the progress of one table within a reader or enumerator.
type Table struct {
	Name      string        `json:"name"`
	Lifecycle Lifecycle     `json:"lifecycle"`
	Rows      Value[uint64] `json:"rows"`
	// Note says in words what a person should know, e.g. why the table is not captured.
	Note string `json:"note,omitempty"`
}

// Enumerator is an enumerator's progress.
type Enumerator struct {
	Connector string `json:"connector"`
	// Assignment is NOT_APPLICABLE, DISCOVERING, ASSIGNING or COMPLETED.
	Assignment       string        `json:"assignment"`
	Assigned         Value[uint64] `json:"assigned"`
	Completed        Value[uint64] `json:"completed"`
	Running          Value[uint64] `json:"running"`
	PreparedUnsent   Value[uint64] `json:"preparedUnsent"`
	TablesNotChunked Value[uint64] `json:"tablesNotChunked"`
	Tables           []Table       `json:"tables,omitempty"`
}

// Envelope is one report as a node publishes it.
type Envelope struct {
	Job      string    `json:"job"`
	Subtask  string    `json:"subtask"`
	Fence    uint64    `json:"fence"`
	Sequence uint64    `json:"sequence"`
	Observed time.Time `json:"observed"`
	// Exactly one of the two is set.
	Reader     *Reader     `json:"reader,omitempty"`
	Enumerator *Enumerator `json:"enumerator,omitempty"`
}
