package epoch

import (
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/position"
)

// Ack is one subtask's part of an epoch, taken at its barrier. Committers send none: they act on manifests.
type Ack struct {
	Fence   fence.Token    `json:"fence"`
	Subtask plan.SubtaskID `json:"subtask"`
	Epoch   ID             `json:"epoch"`
	State   State          `json:"state"`
	// Position is the reader's cut, exclusive.
	Position position.Position `json:"position,omitzero"`
	Torn     bool              `json:"torn,omitempty"`
	// Declined says why the subtask has no part to give: the leader skips the epoch, and what was staged is named again
	// by the next ack. Empty in a normal ack. A subtask that cannot go on at all fails instead.
	Declined string `json:"declined,omitempty"`
	// Staged lists everything the writer staged that no durable epoch covers yet, skipped epochs included, in the order
	// it was staged.
	Staged []Staged `json:"staged,omitempty"`
	// In and Out are the subtask's ends of its channels, feedback apart. Each channel of the plan that begins or ends
	// here is named, also when nothing has crossed it.
	In  map[plan.Channel]Tally `json:"in,omitempty"`
	Out map[plan.Channel]Tally `json:"out,omitempty"`
	// Tables are rows per table through this subtask, cumulative in the attempt. A reader counts what it emitted as
	// Out, once however many sinks receive it; a writer counts what arrived as In and what it staged as Out. Wherever
	// In is counted, In = Out + Dropped + Dead. What goes to every subtask of a vertex (a truncate) is not a row here.
	Tables map[string]Counts `json:"tables,omitempty"`
	// Nanos is the time per phase, for people: align, snapshot, stage.
	Nanos map[string]int64 `json:"nanos,omitempty"`
}
