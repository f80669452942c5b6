package blackhole

import (
	"context"
	"encoding/json"
	"fmt"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/spec"
)

// Connector opens writers and committers that keep nothing.
type Connector struct{}

// Level is TRANSACTIONAL; the package's invariants say why that is the truth.
func (Connector) Level(spec.Sink) sink.Level { return sink.Transactional }

// OpenWriter opens a writer that counts.
func (Connector) OpenWriter(context.Context, sink.Config) (sink.Writer, error) {
	return &writer{counts: make(map[rows.TableID]uint64)}, nil
}

// OpenCommitter opens a committer that checks the order of epochs and adds their rows up.
func (Connector) OpenCommitter(_ context.Context, cfg sink.Config) (sink.Committer, error) {
	return &committer{where: "sinks." + cfg.Sink.Name, job: cfg.Job}, nil
}

// writer counts rows by table.
type writer struct {
	counts map[rows.TableID]uint64
	order  []rows.TableID
}

// counted is what one Stage describes: rows of one table.
type counted struct {
	Table rows.TableID `json:"table"`
	Rows  uint64       `json:"rows"`
}

// Write counts the batch and forgets it.
func (w *writer) Write(_ context.Context, b rows.Batch) error {
	id := b.Schema().Table()
	if _, seen := w.counts[id]; !seen {
		w.order = append(w.order, id)
	}
	w.counts[id] += uint64(b.NumRows())
	return nil
}

// Stage describes the counts since the last Stage, one piece for each table.
func (w *writer) Stage(context.Context, epoch.ID) ([]sink.Piece, error) {
	var pieces []sink.Piece
	for _, id := range w.order {
		data, err := json.Marshal(counted{Table: id, Rows: w.counts[id]})
		if err != nil {
			return nil, fmt.Errorf("describe rows of %s: %w", id, err)
		}
		pieces = append(pieces, sink.Piece{Data: data, Rows: w.counts[id]})
	}
	clear(w.counts)
	w.order = w.order[:0]
	return pieces, nil
}

// Pending is zero: nothing is held.
func (w *writer) Pending() int64 { return 0 }

// Close does nothing.
func (w *writer) Close() error { return nil }

// committer remembers the last epoch of its attempt.
type committer struct {
	where, job string
	last       epoch.Ref
}

// Claim finds no ledger and says so.
func (c *committer) Claim(context.Context) (job.LedgerRow, error) { return job.LedgerRow{}, nil }

// Commit counts an epoch. The first one of an attempt is taken as it comes, every other has to follow the last.
func (c *committer) Commit(_ context.Context, commit sink.Commit) (sink.Result, error) {
	switch {
	case c.last == commit.Ref:
		return sink.Result{}, nil
	case !c.last.IsZero() && (c.last != commit.Prev || commit.Ref.Epoch <= c.last.Epoch):
		return sink.Result{}, fault.New(fault.JobLedgerDiverged, c.where, fmt.Sprintf("epoch %s follows %s, the last one here is %s",
			commit.Ref.Epoch, commit.Prev.Epoch, c.last.Epoch), "job", c.job)
	}
	r := sink.Result{Applied: true}
	for _, s := range commit.Staged {
		var n counted
		if err := json.Unmarshal(s.Data, &n); err != nil {
			return sink.Result{}, fmt.Errorf("epoch %s: read description of counted rows: %w", commit.Ref.Epoch, err)
		}
		r.Rows += n.Rows
	}
	c.last = commit.Ref
	return r, nil
}

// Close does nothing.
func (c *committer) Close() error { return nil }
