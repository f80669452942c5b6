package epoch

import (
	"encoding/json"
	"iter"
	"time"

	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/position"
)

// Positions goes over the subtasks that have one.
func (m *Manifest) Positions() iter.Seq2[plan.SubtaskID, position.Position] {
	return func(yield func(plan.SubtaskID, position.Position) bool) {
		for id, s := range m.Subtasks {
			if !s.Position.IsZero() && !yield(id, s.Position) {
				return
			}
		}
	}
}

// ManifestVersion is the version of the manifest's JSON form; older ones stay readable.
const ManifestVersion = 1

// Ref names a manifest: the epoch it describes and the digest of its bytes. It is also what a sink's ledger holds.
type Ref struct {
	Epoch  ID     `json:"epoch"`
	Digest string `json:"digest"`
}

// IsZero reports whether nothing is named: before the first epoch.
func (r Ref) IsZero() bool { return r.Epoch == 0 }

// Object is a piece of state in the state stream. Its digest is checked on every read.
type Object struct {
	// Subject is the name without part numbers: weir.state.<life>.<fence>.<epoch>.<subtask>.<n>.
	Subject string `json:"subject"`
	Size    int64  `json:"size"`
	Digest  string `json:"digest"`
}

// State is the state of one subtask: inline up to 32 KiB, else the first of the objects. Objects lists flat every object
// that can be reached, those that the state itself refers to behind it.
type State struct {
	Inline  []byte   `json:"inline,omitempty"`
	Objects []Object `json:"objects,omitempty"`
}

// Staged is what one writer made safe but not visible between two barriers.
type Staged struct {
	// Epoch is the last barrier the writer had passed plus one; not always the epoch that commits it, because a
	// skipped epoch's pieces are covered by the next durable one.
	Epoch   ID             `json:"epoch"`
	Subtask plan.SubtaskID `json:"subtask"`
	// Data is the sink's own description, opaque to the coordinator; inline payloads of up to 64 KiB travel in it.
	Data json.RawMessage `json:"data"`
	// Objects lists every state object the data points to, for garbage collection and export.
	Objects []Object `json:"objects,omitempty"`
	Rows    uint64   `json:"rows"`
}

// Tally counts one end of one channel, cumulative since the start of the attempt, taken at the barrier.
type Tally struct {
	Messages uint64 `json:"messages"`
	Rows     uint64 `json:"rows"`
	// Hash is the wrapping sum over messages of the digest of (channel, seq, kind, table, payload).
	Hash uint64 `json:"hash"`
}

// Counts are rows of one table that passed a vertex, by direction. In a manifest In is what left the sources and the
// rest is what became of it, summed over the sinks.
type Counts struct {
	In      uint64 `json:"in"`
	Out     uint64 `json:"out"`
	Dropped uint64 `json:"dropped,omitempty"`
	Dead    uint64 `json:"dead,omitempty"`
}

// SubtaskState is one subtask's part of a manifest.
type SubtaskState struct {
	State    State             `json:"state"`
	Position position.Position `json:"position,omitzero"`
	// Nanos is the time per phase of this epoch, for people: align, snapshot, stage.
	Nanos map[string]int64 `json:"nanos,omitempty"`
}

// SinkState is one sink's part of a manifest.
type SinkState struct {
	// Prev is the last manifest before this one that staged anything for this sink: what the ledger must hold
	// before this epoch is applied.
	Prev   Ref      `json:"prev,omitzero"`
	Staged []Staged `json:"staged,omitempty"`
}

// ChannelTally is what both ends of a channel agreed on.
type ChannelTally struct {
	// Total is cumulative in the attempt.
	Total Tally `json:"total"`
	// Delta is the difference to the previous durable manifest of the same fence.
	Delta Tally `json:"delta"`
}

// Manifest is the immutable description of an epoch.
type Manifest struct {
	Version int         `json:"version"`
	Job     string      `json:"job"`
	Life    string      `json:"life"`
	Epoch   ID          `json:"epoch"`
	Kind    Kind        `json:"kind"`
	Fence   fence.Token `json:"fence"`
	Term    uint64      `json:"term"`
	// Plan is the fingerprint of the partitioned plan.
	Plan string `json:"plan"`
	// Prev is the durable manifest before this one; zero for the first of a life.
	Prev      Ref       `json:"prev,omitzero"`
	Triggered time.Time `json:"triggered"`
	Completed time.Time `json:"completed"`
	// Torn says that a source transaction was cut because it exceeded epoch.max_transaction_rows.
	Torn     bool                            `json:"tornTransaction,omitempty"`
	Subtasks map[plan.SubtaskID]SubtaskState `json:"subtasks"`
	Sinks    map[string]SinkState            `json:"sinks"`
	Channels map[plan.Channel]ChannelTally   `json:"channels"`
	// Tables are cumulative per life: rows that left the sources and rows staged, by table.
	Tables map[string]Counts `json:"tables,omitempty"`
	// Attempt is the same for this attempt alone: what the next manifest of the fence is measured against.
	Attempt map[string]Counts `json:"attempt,omitempty"`
}
