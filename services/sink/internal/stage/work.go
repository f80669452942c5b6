package stage

import (
	"context"
	"fmt"

	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/services/sink/internal/core"
)

// Work is what a commit has to do, in the order in which it is done: truncates first, then table by table.
type Work struct {
	Truncates []rows.TableID
	Pieces    []Desc
}

// NewWork reads the descriptions of a commit's pieces and puts them in order.
func NewWork(commit sink.Commit) (Work, error) {
	descs := make([]Desc, len(commit.Staged))
	pieces := make([]core.Piece, len(commit.Staged))
	for i, st := range commit.Staged {
		d, err := ParseDesc(st.Data)
		if err != nil {
			return Work{}, fmt.Errorf("epoch %s, piece %d of %s: %w", commit.Ref.Epoch, i, st.Subtask, err)
		}
		descs[i] = d
		pieces[i] = core.Piece{Writer: st.Subtask, Table: string(d.Table), Truncate: d.Truncate, Version: d.Version}
	}
	tables, err := core.Order(pieces)
	if err != nil {
		return Work{}, fmt.Errorf("order epoch %s: %w", commit.Ref.Epoch, err)
	}
	var w Work
	for _, t := range tables {
		if t.Truncate {
			w.Truncates = append(w.Truncates, rows.TableID(t.Table))
		}
		for _, i := range t.Pieces {
			w.Pieces = append(w.Pieces, descs[i])
		}
	}
	return w, nil
}

// Opened is a piece that was read back, or why it was not.
type Opened struct {
	Desc  Desc
	Parts []Part
	Err   error
}

// Open reads pieces back one ahead of their use, so that the bus and the decompressor work while the target does. The
// channel is closed after the last one or the first error; ctx ends the reading early. The codec is free again when the
// channel is closed.
func (w Work) Open(ctx context.Context, store sink.Store, codec *Codec) <-chan Opened {
	out := make(chan Opened, 1)
	go func() {
		defer close(out)
		for _, d := range w.Pieces {
			parts, err := d.Open(ctx, store, codec)
			select {
			case out <- Opened{d, parts, err}:
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
