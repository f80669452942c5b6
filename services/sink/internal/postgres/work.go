package postgres

import (
	"context"
	"fmt"

	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/services/sink/internal/core"
	"weir.dev/weir/services/sink/internal/stage"
)

// work is what a commit has to do, in the order in which it is done.
type work struct {
	truncates []rows.TableID
	pieces    []stage.Desc
}

// newWork reads the descriptions of a commit's pieces and puts them in order: truncates first, then table by table.
func newWork(commit sink.Commit) (work, error) {
	descs := make([]stage.Desc, len(commit.Staged))
	pieces := make([]core.Piece, len(commit.Staged))
	for i, st := range commit.Staged {
		d, err := stage.ParseDesc(st.Data)
		if err != nil {
			return work{}, fmt.Errorf("epoch %s, piece %d of %s: %w", commit.Ref.Epoch, i, st.Subtask, err)
		}
		descs[i] = d
		pieces[i] = core.Piece{Writer: st.Subtask, Table: string(d.Table), Truncate: d.Truncate, Version: d.Version}
	}
	tables, err := core.Order(pieces)
	if err != nil {
		return work{}, fmt.Errorf("order epoch %s: %w", commit.Ref.Epoch, err)
	}
	var w work
	for _, t := range tables {
		if t.Truncate {
			w.truncates = append(w.truncates, rows.TableID(t.Table))
		}
		for _, i := range t.Pieces {
			w.pieces = append(w.pieces, descs[i])
		}
	}
	return w, nil
}

// opened is a piece that was read back.
type opened struct {
	desc  stage.Desc
	parts []stage.Part
	err   error
}

// open reads pieces back one ahead of their use, so that the bus and the decompressor work while the target does. The
// channel is closed after the last one or the first error; ctx ends the reading early.
func (w work) open(ctx context.Context, store sink.Store, codec *stage.Codec) <-chan opened {
	out := make(chan opened, 1)
	go func() {
		defer close(out)
		for _, d := range w.pieces {
			parts, err := d.Open(ctx, store, codec)
			select {
			case out <- opened{d, parts, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return out
}
