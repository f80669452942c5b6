package epoch

import (
	"maps"

	"weir.dev/weir/pkg/fence"
)

// Continue makes the manifest with which a chain goes on from the states of an older epoch: it covers no rows and stages nothing,
// so each sink's ledger is left as prev leaves it, and rows are counted on from prev. from may be prev's own manifest.
func Continue(from *Manifest, prev Link, cut Cut, at fence.Token) *Manifest {
	m := &Manifest{
		Version: ManifestVersion, Job: from.Job, Life: from.Life, Epoch: cut.Epoch, Kind: cut.Kind,
		Fence: at, Term: cut.Term, Plan: from.Plan, Prev: prev.Ref,
		Triggered: cut.Triggered, Completed: cut.Completed, Torn: from.Torn,
		Subtasks: maps.Clone(from.Subtasks), Sinks: make(map[string]SinkState, len(prev.Manifest.Sinks)),
		Tables: maps.Clone(prev.Manifest.Tables),
	}
	for sink := range prev.Manifest.Sinks {
		m.Sinks[sink] = SinkState{Prev: prev.Manifest.LedgerOf(sink, prev.Ref)}
	}
	return m
}
