package task

import (
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/sink"
)

// staging remembers what a writer has made safe and no durable epoch covers yet. A skipped epoch's pieces stay and are
// named again by the next ack; it is a passive value.
type staging struct {
	subtask plan.SubtaskID
	pieces  []stagedPiece
}

// stagedPiece is a piece and the first epoch whose ack named it.
type stagedPiece struct {
	named  epoch.ID
	staged epoch.Staged
}

// cut takes the pieces of barrier n and returns everything the ack of n must name, oldest first. passed is the barrier
// before it; durable is what was durable when n was injected: it covers all pieces that were named up to then, since the
// writer's ack of it named them (T4).
func (g *staging) cut(n, passed, durable epoch.ID, fresh []sink.Piece) []epoch.Staged {
	kept := g.pieces[:0]
	for _, p := range g.pieces {
		if p.named > durable {
			kept = append(kept, p)
		}
	}
	g.pieces = kept
	for _, f := range fresh {
		g.pieces = append(g.pieces, stagedPiece{named: n, staged: epoch.Staged{
			Epoch: passed + 1, Subtask: g.subtask, Data: f.Data, Objects: f.Objects, Rows: f.Rows,
		}})
	}
	all := make([]epoch.Staged, len(g.pieces))
	for i, p := range g.pieces {
		all[i] = p.staged
	}
	return all
}
