package postgres

import (
	"context"
	"time"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/services/sink/internal/stage"
)

// letter describes the one row of a part and why it is put aside.
func (a *apply) letter(ctx context.Context, t *target, p part, cause error) (sink.Letter, error) {
	at := a.c.at
	at.Table = t.plain
	g := stage.Group{Kind: p.kind, Batches: p.batches, First: p.first, Absent: p.absent, N: p.n}
	return g.Describe(sink.Letter{
		LetterID: sink.LetterID{Epoch: a.dead.epoch}, Job: a.c.cfg.Job, Life: a.c.cfg.Life, Sink: a.c.cfg.Sink.Name,
		Positions: a.dead.positions, Fault: fault.Of(translate(ctx, cause, at)),
	}, t.schema, a.c.codec, time.Now())
}
