package cdcmysql

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"weir.dev/weir/pkg/cdc"
	"weir.dev/weir/pkg/mycodec"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/source"
)

var errCut = errors.New("a row that is not as long as its cells")

// apply applies one step of the log.
func (r *reader) apply(ctx context.Context, out source.Output, st *step) error {
	if r.passedBefore(st) {
		return nil
	}
	switch st.kind {
	case stepBegin:
		return r.undecodable(r.tracker.Begin(st.txn, st.time))
	case stepCommit:
		return r.commit(st)
	case stepIdle:
		r.tracker.Idle(st.end)
		r.progress.reach(st.end)
		r.passed()
		r.drainReached()
		return nil
	case stepTruncate:
		fresh, err := r.tracker.Event()
		if err != nil {
			return r.undecodable(err)
		}
		if fresh {
			if err := r.truncate(ctx, out, st); err != nil {
				return err
			}
		}
		return r.commit(st)
	case stepRemove:
		fresh, err := r.tracker.Event()
		if err != nil {
			return r.undecodable(err)
		}
		if fresh && slices.ContainsFunc(st.tables, func(t *capturedTable) bool { return !r.had(t.ID) }) {
			return st.err
		}
		return r.commit(st)
	case stepRows:
		if r.hold(st) {
			return nil
		}
		return r.change(ctx, out, st)
	case stepPrepare:
		return r.prepare(st)
	case stepOutcome:
		return r.outcome(ctx, out, st)
	case stepBroken: // the link lets nothing of such a transaction through
	}
	return nil
}

// change applies the rows of a step.
func (r *reader) change(ctx context.Context, out source.Output, st *step) error {
	fresh, err := r.tracker.Event()
	if err != nil || !fresh || st.table.captured == nil || r.had(st.table.captured.ID) {
		return r.undecodable(err)
	}
	if st.err != nil {
		return st.err
	}
	t, err := r.described(ctx, out, st.table)
	if err != nil {
		return err
	}
	return r.rows(ctx, out, t, st)
}

func (r *reader) commit(st *step) error {
	if err := r.tracker.Commit(st.end); err != nil {
		return r.undecodable(err)
	}
	r.progress.reach(st.end)
	r.passed()
	r.drainReached()
	return nil
}

// had reports whether every chunk of a table has the open transaction: what it did to the table is not looked at, in
// whatever form the table was then.
func (r *reader) had(id cdc.TableID) bool {
	if r.filter == nil {
		return false
	}
	txn, _ := r.tracker.Transaction()
	f := r.filter.Table(id)
	return f == nil || f.Truncate(txn) == cdc.Drop
}

// rows applies the rows of one event.
func (r *reader) rows(ctx context.Context, out source.Output, t *table, st *step) error {
	size, at := len(st.image), 0
	for image := st.image; len(image) > 0; {
		var ok bool
		if st.change == updated {
			if image, ok = t.cells(image, t.old); !ok {
				return r.undecodable(errCut)
			}
		}
		if image, ok = t.cells(image, t.row); !ok {
			return r.undecodable(errCut)
		}
		var err error
		switch st.change {
		case inserted:
			err = r.one(t, rows.OpInsert, t.row, st.places, at)
		case deleted:
			err = r.one(t, rows.OpDelete, t.row, st.places, at)
		case updated:
			err = r.update(t, st.places, at)
			at++
		}
		if err != nil {
			return r.undecodable(err)
		}
		at++
		if t.Rows() == 0 {
			continue
		}
		if err := r.batches.Grown(ctx, out, t.Gathering, size-len(image)); err != nil {
			return err
		}
		size = len(image)
	}
	return nil
}

// one applies the insert or delete of a row.
func (r *reader) one(t *table, op rows.Op, cells [][]byte, places []int, at int) error {
	var err error
	if r.filter != nil {
		if r.key, err = t.keyOf(r.key, cells, mycodec.Log); err != nil {
			return err
		}
		if counts, err := r.judge(t, r.key, places, at); err != nil || !counts {
			return err
		}
	}
	return r.emit(t, op, cells)
}

// update applies the change of a row; one of its key is two changes, each judged by its own key.
func (r *reader) update(t *table, places []int, at int) error {
	if t.keyChanged(t.old, t.row) {
		if err := r.one(t, rows.OpDelete, t.old, places, at); err != nil {
			return err
		}
		return r.one(t, rows.OpInsert, t.row, places, at+1)
	}
	if r.filter != nil {
		var err error
		if r.key, err = t.keyOf(r.key, t.row, mycodec.Log); err != nil {
			return err
		}
		if counts, err := r.judge(t, r.key, places, at+1); err != nil || !counts {
			return err
		}
	}
	if r.opened.source.Before || len(t.key) == 0 { // without a key only the old row says which row it was
		if err := r.emit(t, rows.OpUpdateBefore, t.old); err != nil {
			return err
		}
	}
	return r.emit(t, rows.OpUpdateAfter, t.row)
}

func (r *reader) emit(t *table, op rows.Op, cells [][]byte) error {
	if err := t.put(cells, t.log); err != nil {
		return err
	}
	t.EndRow(r.meta(op))
	return nil
}

func (r *reader) meta(op rows.Op) rows.Meta {
	txn, ts := r.tracker.Transaction()
	n, by := txn.Number()
	r.seq++
	return rows.Meta{Op: op, Seq: r.seq, Ts: ts, Txn: n, Xid: by, Ord: r.tracker.Row()}
}

// truncate applies the truncates of tables.
func (r *reader) truncate(ctx context.Context, out source.Output, st *step) error {
	txn, _ := r.tracker.Transaction()
	for _, c := range st.tables {
		verdict := cdc.Emit
		if r.filter != nil {
			verdict = r.filter.Table(c.ID).Truncate(txn)
		}
		if verdict != cdc.Emit && verdict != cdc.Again {
			continue
		}
		t := r.tables[c.ID]
		if t == nil {
			if p := r.plans[c.ID]; p != nil {
				t = p.table
			}
		}
		if t == nil { // no row of it has come yet: its schema is that of the copy
			var err error
			if t, err = r.unseen(c); err != nil {
				return err
			}
		}
		t.Truncate(r.meta(rows.OpTruncate))
		if err := r.batches.Flush(ctx, out, t.Gathering); err != nil { // before rows under another description of the table
			return err
		}
		if verdict == cdc.Again {
			r.cfg.Logger.WarnContext(ctx, "table is copied anew: a change in the log cannot be told from the rows that were copied",
				slog.String("table", c.String()))
			r.paused = true
			r.share.Paused(c.ID)
		}
	}
	return nil
}
