package stage

import (
	"context"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/sink/internal/core"
)

// Guard is a writer that refuses what its sink's mode forbids, so that a job stops where the row is, not an epoch later.
type Guard struct {
	*Writer
	// Where is the sink's path in the spec.
	Where string
	Mode  spec.Mode
	// Truncate says that the sink may follow TRUNCATE.
	Truncate bool
	// DLQ says that the committer puts rows aside that mode append cannot keep.
	DLQ bool
}

// OpenWriter opens the writer of a sink that applies an epoch as a whole. truncate says that it may follow TRUNCATE.
func OpenWriter(cfg sink.Config, truncate bool) (sink.Writer, error) {
	fold := Upserts
	if cfg.Sink.Mode != spec.Upsert {
		fold = ChangesOf(cfg.Sink.Mode, cfg.Subtask.Index)
	}
	w, err := NewWriter(cfg.Store, fold)
	if err != nil {
		return nil, err
	}
	return &Guard{Writer: w, Where: "sinks." + cfg.Sink.Name, Mode: cfg.Sink.Mode, Truncate: truncate, DLQ: cfg.Sink.DLQ}, nil
}

// Write checks the batch against the mode and stages it.
func (g *Guard) Write(ctx context.Context, b rows.Batch) error {
	if err := g.check(&b); err != nil {
		return err
	}
	return g.Writer.Write(ctx, &b)
}

func (g *Guard) check(b *rows.Batch) error {
	table := string(b.Schema().Table())
	where := g.Where + ", table " + table
	switch g.Mode {
	case spec.Upsert:
		if len(b.Schema().Key()) == 0 {
			return fault.New(fault.SinkNoKey, where, "the source declares no primary key or usable unique index for it")
		}
		if g.Truncate {
			return nil
		}
		for i := range b.NumRows() {
			if b.Op(i) == rows.OpTruncate {
				// Skipping it would be a silent difference between source and target.
				return fault.New(fault.SinkTruncateRefused, where, "TRUNCATE "+table)
			}
		}
	case spec.Append:
		if g.DLQ {
			return nil
		}
		if column, ok := core.Lacking(b); ok {
			return fault.New(fault.SinkPartialImage, where, "column "+column+" was not sent", "table", table)
		}
	case spec.Changelog:
	}
	return nil
}
