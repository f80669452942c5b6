package sink

import (
	"context"
	"encoding/json"
	"time"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/position"
	"weir.dev/weir/pkg/rows"
)

// LetterID names a dead letter within a sink. Index is the place of the row among all that the epoch stages for the table:
// the same in every repetition of the commit, whatever else turns out to be poison.
type LetterID struct {
	Table rows.TableID `json:"table"`
	Epoch epoch.ID     `json:"epoch"`
	Index int          `json:"index"`
}

// Letter is a dead letter: a row that the target cannot take for a reason of the row itself, and everything that is known
// about it.
type Letter struct {
	LetterID
	Job  string `json:"job"`
	Life string `json:"life"`
	Sink string `json:"sink"`
	// Op is the row's operation as the sink meets it: in mode upsert changes of one key within an epoch are one.
	Op string `json:"op"`
	// Key are the key columns, OldKey those of before when the row has moved to another key.
	Key    json.RawMessage `json:"key"`
	OldKey json.RawMessage `json:"oldKey,omitempty"`
	// Change is the row as rows.Batch.AppendRowJSON writes it, with its place in the source's log.
	Change json.RawMessage `json:"change"`
	// Positions are the source positions of the epoch, by reader.
	Positions map[string]position.Position `json:"positions,omitempty"`
	// Fault is why: code, what, where, why, remedy.
	Fault *fault.Error `json:"fault"`
	At    time.Time    `json:"at"`
	// Rows is the row in the sink's own staged form, for a replay.
	Rows []byte `json:"rows"`
}

// DeadLetters keeps the rows of a sink that its target can never take. Only the newest attempt can write there.
//
// The order makes each row be in one place: a committer first asks which rows of the epoch have a letter and leaves
// them out, even when the target would take them by now; then it puts a letter for each further one and commits last.
type DeadLetters interface {
	// Stored lists the letters that an epoch has: those of commits that did not get to their end.
	Stored(ctx context.Context, e epoch.ID) ([]LetterID, error)
	// Put makes a letter safe. Without room it is fault.SinkDLQFull, transient: the commit is repeated until there is.
	Put(ctx context.Context, l Letter) error
}
