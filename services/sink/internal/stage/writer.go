package stage

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/sink"
)

const (
	// pieceRaw is the uncompressed size at which a table's rows become a piece: 2-4 MiB for common rows. A target sorts
	// the rows of a piece by key: the more there are, the more of them share a page.
	pieceRaw = 16 << 20
	// openLimit bounds what all tables together hold uncompressed.
	openLimit = 48 << 20
	// inlineLimit is the size up to which a piece travels inside the ack and the manifest; all inline pieces of one Stage
	// together stay below inlineTotal, so that a job of many tables does not blow a manifest up.
	inlineLimit = 64 << 10
	inlineTotal = 128 << 10
	// maxPuts is how many pieces may be under way to the store at once.
	maxPuts = 4
)

// Writer stages rows on the bus. It is owned by one goroutine, as sink.Writer says.
type Writer struct {
	store sink.Store
	fold  Fold
	codec *Codec

	open   Runs
	pieces []*piece
	staged int64 // bytes in pieces
	puts   chan struct{}
	wait   sync.WaitGroup
}

// piece is one piece; desc.Object and err of a sent one are set by its put and read after Writer.wait.
type piece struct {
	desc Desc
	rows uint64
	data []byte
	sent bool // data is the put's now
	err  error
}

// NewWriter makes a writer that folds each table's rows by fold.
func NewWriter(store sink.Store, fold Fold) (*Writer, error) {
	codec, err := NewCodec()
	if err != nil {
		return nil, err
	}
	return &Writer{store: store, fold: fold, codec: codec, puts: make(chan struct{}, maxPuts)}, nil
}

// Write takes a batch. Pieces that are full go to the store at once, under ctx, which therefore has to live until Stage
// returns or the attempt ends.
func (w *Writer) Write(ctx context.Context, b *rows.Batch) error {
	if b.NumRows() == 0 {
		return nil
	}
	r, ended := w.open.Add(b)
	if ended != nil {
		if err := w.seal(ctx, ended); err != nil {
			return err
		}
	}
	if r.Raw >= pieceRaw {
		return w.seal(ctx, w.open.Take(r))
	}
	if w.open.Raw() >= openLimit {
		return w.seal(ctx, w.open.TakeLargest())
	}
	return nil
}

// seal turns a run into a piece and sends it on its way.
func (w *Writer) seal(ctx context.Context, r *Run) error {
	parts, truncated, err := w.fold(r.Batches)
	if err != nil {
		return fmt.Errorf("fold rows of %s: %w", r.Schema.Table(), err)
	}
	if truncated {
		w.pieces = append(w.pieces, &piece{desc: Desc{Table: r.Schema.Table(), Truncate: true}})
	}
	if len(parts) == 0 {
		return nil
	}
	p := &piece{desc: Desc{Table: r.Schema.Table(), Version: r.Schema.Version()}}
	for _, part := range parts {
		p.rows += uint64(part.Rows.NumRows())
	}
	if p.data, err = w.codec.Encode(parts); err != nil {
		return fmt.Errorf("stage rows of %s: %w", r.Schema.Table(), err)
	}
	w.pieces = append(w.pieces, p)
	w.staged += int64(len(p.data))
	if len(p.data) <= inlineLimit {
		return nil // Stage decides
	}
	return w.put(ctx, p)
}

func (w *Writer) put(ctx context.Context, p *piece) error {
	select {
	case w.puts <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	p.sent = true
	w.wait.Go(func() {
		defer func() { <-w.puts }()
		o, err := w.store.Put(ctx, p.data)
		p.desc.Object, p.err, p.data = &o, err, nil
	})
	return nil
}

// Stage makes everything safe that Write took and describes it.
func (w *Writer) Stage(ctx context.Context, _ epoch.ID) ([]sink.Piece, error) {
	for r := w.open.TakeFirst(); r != nil; r = w.open.TakeFirst() {
		if err := w.seal(ctx, r); err != nil {
			return nil, err
		}
	}
	inline := 0
	for _, p := range w.pieces {
		if p.desc.Truncate || p.sent {
			continue
		}
		if inline += len(p.data); inline <= inlineTotal {
			p.desc.Inline = p.data
		} else if err := w.put(ctx, p); err != nil {
			return nil, err
		}
	}
	w.wait.Wait()
	pieces := make([]sink.Piece, 0, len(w.pieces))
	for _, p := range w.pieces {
		if p.err != nil {
			return nil, fmt.Errorf("stage rows of %s: %w", p.desc.Table, p.err)
		}
		data, err := json.Marshal(p.desc)
		if err != nil {
			return nil, fmt.Errorf("describe staged rows of %s: %w", p.desc.Table, err)
		}
		out := sink.Piece{Data: data, Rows: p.rows}
		if p.desc.Object != nil {
			out.Objects = append(out.Objects, *p.desc.Object)
		}
		pieces = append(pieces, out)
	}
	w.pieces, w.staged = nil, 0
	return pieces, nil
}

// Pending is the size of the open epoch: raw bytes of open rows and compressed bytes of pieces.
func (w *Writer) Pending() int64 { return w.open.Raw() + w.staged }

// Close waits for puts that are under way. What they stored and nobody names is collected with the attempt.
func (w *Writer) Close() error {
	w.wait.Wait()
	return nil
}

// SizeOf is the memory of a batch's columns; a slice counts with the buffers it shares.
func SizeOf(b *rows.Batch) int64 {
	var n uint64
	for i := range b.Schema().NumColumns() {
		n += b.Column(i).Data().SizeInBytes()
	}
	return int64(n) + int64(b.NumRows())*systemWidth
}

// systemWidth is what the system columns of a row take.
const systemWidth = 32
