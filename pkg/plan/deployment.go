package plan

import (
	"encoding/json"

	"weir.dev/weir/pkg/fence"
)

// Role is what a vertex does in the flow.
type Role string

// The roles. Enumerators and readers are the two halves of a source, writers and committers of a sink.
const (
	Enumerator Role = "enumerator"
	Reader     Role = "reader"
	Transform  Role = "transform"
	Writer     Role = "writer"
	Committer  Role = "committer"
)

// Partition is the rule by which an edge spreads batches over the receiving subtasks.
type Partition string

// The partition rules.
const (
	// Forward keeps subtask i with subtask i; both vertices have the same parallelism.
	Forward Partition = "FORWARD"
	// Hash sends a row to the owner of its key group, so all changes of a key keep their order.
	Hash Partition = "HASH"
	// Rebalance spreads whole batches in turn; only where order between batches means nothing.
	Rebalance Partition = "REBALANCE"
	// Broadcast sends every message to every receiver.
	Broadcast Partition = "BROADCAST"
)

// Guarantee is the delivery guarantee of a job.
type Guarantee string

// The two guarantees a user can ask for.
const (
	ExactlyOnce Guarantee = "exactly_once"
	AtLeastOnce Guarantee = "at_least_once"
)

// Vertex is one stage.
type Vertex struct {
	ID   VertexID `json:"id"`
	Role Role     `json:"role"`
	// Name is the user's name of the source, transform or sink this vertex belongs to.
	Name string `json:"name"`
	// Capability is what a node must offer to run it, e.g. "source:postgres" or "sink:files".
	Capability  string `json:"capability"`
	Parallelism int    `json:"parallelism"`
}

// Edge is a link between two vertices.
type Edge struct {
	From      VertexID  `json:"from"`
	To        VertexID  `json:"to"`
	Partition Partition `json:"partition"`
	// Feedback marks the way back from readers to their enumerator: it carries status messages only, no barriers,
	// and is outside alignment and tallies.
	Feedback bool `json:"feedback,omitempty"`
}

// Model is the plan as the spec says it: stages and links, no numbers of a machine.
type Model struct {
	Job       string    `json:"job"`
	Guarantee Guarantee `json:"guarantee"`
	Vertices  []Vertex  `json:"vertices"`
	Edges     []Edge    `json:"edges"`
}

// Partitioned is the only source of topology (I3): every subtask, channel and key range follows from it.
type Partitioned struct {
	Model
	// KeyGroups is the number of key groups of the job; immutable for its life.
	KeyGroups int `json:"keyGroups"`
}

// Window bounds what a sender may have unconsumed in one channel.
type Window struct {
	Bytes    int64 `json:"bytes"`
	Messages int   `json:"messages"`
	// Batch is the target size of one message, in bytes.
	Batch int64 `json:"batch"`
	// InFlight bounds what one sending subtask may have published, over all its channels, without the stream's
	// acknowledgement, in bytes.
	InFlight int64 `json:"inFlight"`
}

// Placement says which process runs a subtask. A process that came back is another incarnation: it must not
// resurrect subtasks in a running attempt.
type Placement struct {
	Node        string `json:"node"`
	Incarnation string `json:"incarnation"`
}

// Deployment is what one attempt runs, written once and named by the head record.
type Deployment struct {
	Partitioned
	// Life is the job's random id, part of every name outside the bus.
	Life  string      `json:"life"`
	Fence fence.Token `json:"fence"`
	// Fingerprint is that of the partitioned plan.
	Fingerprint string                  `json:"fingerprint"`
	Window      Window                  `json:"window"`
	Placements  map[SubtaskID]Placement `json:"placements"`
	// Spec is the canonical job spec with its references, never their values. The node that needs a value resolves it.
	Spec json.RawMessage `json:"spec"`
}
