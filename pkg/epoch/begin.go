package epoch

import (
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/position"
)

// Begin makes the manifest with which a chain begins anew where the ledgers of its sinks are: it has no states and covers no rows,
// rows are what the ledgers hold, by sink, and at says where each reader goes on.
func Begin(job, life string, rows map[string]Ref, at map[plan.SubtaskID]position.Position, cut Cut, f fence.Token) *Manifest {
	m := &Manifest{
		Version: ManifestVersion, Job: job, Life: life, Epoch: cut.Epoch, Kind: cut.Kind, Fence: f, Term: cut.Term,
		Triggered: cut.Triggered, Completed: cut.Completed,
		Subtasks: make(map[plan.SubtaskID]SubtaskState, len(at)), Sinks: make(map[string]SinkState, len(rows)),
	}
	for id, p := range at {
		m.Subtasks[id] = SubtaskState{Position: p}
	}
	for sink, row := range rows {
		m.Sinks[sink] = SinkState{Prev: row}
	}
	return m
}
