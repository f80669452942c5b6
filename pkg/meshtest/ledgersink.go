package meshtest

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/pkg/verdict"
)

// inlineStage is the size up to which a piece travels in the ack.
const inlineStage = 64 << 10

// LedgerSink is a sink connector whose target is a [Target]: writers stage encoded batches, inline or in the state
// stream, committers apply them in one step with the ledger. It is what the mesh is proved against.
type LedgerSink struct{ Target *Target }

// Level is TRANSACTIONAL.
func (LedgerSink) Level(spec.Sink) sink.Level { return sink.Transactional }

// OpenWriter opens a writer.
func (s LedgerSink) OpenWriter(_ context.Context, cfg sink.Config) (sink.Writer, error) {
	return &ledgerWriter{cfg: cfg}, nil
}

// OpenCommitter opens a committer.
func (s LedgerSink) OpenCommitter(_ context.Context, cfg sink.Config) (sink.Committer, error) {
	return &ledgerCommitter{cfg: cfg, target: s.Target}, nil
}

// stagedData describes a piece: a run of encoded batches, each after its length.
type stagedData struct {
	Inline []byte        `json:"inline,omitempty"`
	Object *epoch.Object `json:"object,omitempty"`
}

type ledgerWriter struct {
	cfg  sink.Config
	buf  []byte
	rows uint64
}

func (w *ledgerWriter) Write(_ context.Context, b rows.Batch) error {
	enc, err := b.Encode(nil)
	if err != nil {
		return err
	}
	w.buf = binary.BigEndian.AppendUint32(w.buf, uint32(len(enc)))
	w.buf = append(w.buf, enc...)
	w.rows += uint64(b.NumRows())
	return nil
}

func (w *ledgerWriter) Stage(ctx context.Context, _ epoch.ID) ([]sink.Piece, error) {
	if w.rows == 0 {
		return nil, nil
	}
	var d stagedData
	p := sink.Piece{Rows: w.rows}
	if len(w.buf) <= inlineStage {
		d.Inline = w.buf
	} else {
		o, err := w.cfg.Store.Put(ctx, w.buf)
		if err != nil {
			return nil, err
		}
		d.Object = &o
		p.Objects = []epoch.Object{o}
	}
	w.buf, w.rows = nil, 0
	var err error
	p.Data, err = json.Marshal(d)
	return []sink.Piece{p}, err
}

func (w *ledgerWriter) Pending() int64 { return int64(len(w.buf)) }
func (w *ledgerWriter) Close() error   { return nil }

type ledgerCommitter struct {
	cfg    sink.Config
	target *Target
}

func (c *ledgerCommitter) Claim(context.Context) (job.LedgerRow, error) {
	return c.target.claim(c.cfg.Job, c.cfg.Sink.Name, c.cfg.Life, c.cfg.Fence)
}

func (c *ledgerCommitter) Commit(ctx context.Context, e sink.Commit) (sink.Result, error) {
	s := step{
		LedgerID: verdict.LedgerID{Job: c.cfg.Job, Sink: c.cfg.Sink.Name}, life: c.cfg.Life, fence: c.cfg.Fence, ref: e.Ref, prev: e.Prev,
	}
	for _, st := range e.Staged {
		if err := c.read(ctx, st, &s); err != nil {
			return sink.Result{}, fmt.Errorf("piece of %s staged in epoch %s: %w", st.Subtask, st.Epoch, err)
		}
	}
	applied, err := c.target.apply(ctx, s)
	return sink.Result{Applied: applied, Rows: uint64(len(s.changes))}, err
}

func (c *ledgerCommitter) read(ctx context.Context, st epoch.Staged, s *step) error {
	var d stagedData
	if err := json.Unmarshal(st.Data, &d); err != nil {
		return err
	}
	data := d.Inline
	if d.Object != nil {
		var err error
		if data, err = c.cfg.Store.Get(ctx, *d.Object); err != nil {
			return err
		}
	}
	var dec rows.Decoder
	for len(data) > 0 {
		n := int(binary.BigEndian.Uint32(data))
		b, err := dec.Decode(data[4 : 4+n])
		if err != nil {
			return err
		}
		data = data[4+n:]
		for i := range b.NumRows() {
			ch := changeOf(b, i)
			ch.Epoch, ch.Fence = s.ref.Epoch, s.fence
			s.changes = append(s.changes, ch)
		}
	}
	return nil
}

func (c *ledgerCommitter) Close() error { return nil }
