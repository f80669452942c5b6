package cdcpostgres

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"weir.dev/weir/pkg/cdc"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/report"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/services/cdc-postgres/internal/core"
	"weir.dev/weir/services/cdc-postgres/internal/pgoutput"
)

// message applies one pgoutput message.
func (r *reader) message(ctx context.Context, out source.Output, b []byte) error {
	if len(b) == 0 {
		return r.undecodable(&pgoutput.Error{Reason: "empty"})
	}
	switch b[0] {
	case pgoutput.KindInsert, pgoutput.KindUpdate, pgoutput.KindDelete:
		return r.change(ctx, out, b)
	case pgoutput.KindBegin:
		m, err := pgoutput.ParseBegin(b)
		if err != nil {
			return r.undecodable(err)
		}
		if r.link.end.past(m.Final) {
			r.stopped = true // what follows is not emitted and not confirmed
			return nil
		}
		return r.undecodable(r.tracker.Begin(m.Final, m.Time, m.Xid))
	case pgoutput.KindCommit:
		m, err := pgoutput.ParseCommit(b)
		if err != nil {
			return r.undecodable(err)
		}
		if err := r.tracker.Commit(m.Final, m.End); err != nil {
			return r.undecodable(err)
		}
		r.passed()
		return nil
	case pgoutput.KindRelation:
		return r.relation()
	case pgoutput.KindTruncate:
		return r.truncate(ctx, out, b)
	default:
		return r.undecodable(pgoutput.ParseOther(b))
	}
}

// undecodable makes the fault of a log that does not read as it should; nil stays nil.
func (r *reader) undecodable(err error) error {
	if err == nil {
		return nil
	}
	return fault.Wrap(err, fault.PGDecode, r.where, err.Error())
}

// relation takes the next table of the chunk. It is bound only when a row of it has to be emitted: the log may begin
// with transactions that were emitted before, under an older schema.
func (r *reader) relation() error {
	if len(r.described) == 0 {
		return r.undecodable(fmt.Errorf("a relation message without its description"))
	}
	d := r.described[0]
	r.described = r.described[1:]
	if old := r.tables[d.relation.OID]; old != nil && old.builder != nil {
		if old.same(d) && r.unchanged(d) {
			return nil
		}
		r.retired = append(r.retired, old)
	}
	r.tables[d.relation.OID] = &table{described: d}
	return nil
}

// change applies an insert, update or delete.
func (r *reader) change(ctx context.Context, out source.Output, b []byte) error {
	fresh, err := r.tracker.Change()
	if err != nil {
		return r.undecodable(err)
	}
	if !fresh {
		return nil
	}
	c := &r.row
	if err := c.Parse(b); err != nil {
		return r.undecodable(err)
	}
	if r.had(c.Relation) {
		return nil
	}
	t, err := r.table(ctx, out, c.Relation)
	if err != nil || t == nil {
		return err
	}
	if len(b) > r.rowLimit {
		return r.tooBig(t, len(b))
	}
	width := t.width
	if (c.New != nil && len(c.New) != width && c.Kind != pgoutput.KindDelete) || (c.OldKind != pgoutput.OldNone && len(c.Old) != width) {
		return r.undecodable(fmt.Errorf("table %s: a row of another width than its relation's %d columns", t.id(), width))
	}
	c.New, c.Old = t.kept(c.New), t.kept(c.Old)
	switch c.Kind {
	case pgoutput.KindInsert:
		err = r.insert(t, c.New)
	case pgoutput.KindDelete:
		err = r.delete(t, c)
	default:
		err = r.update(ctx, out, t, c)
	}
	if err != nil {
		return r.undecodable(err)
	}
	return r.batches.Grown(ctx, out, t.builder, len(b))
}

func (r *reader) insert(t *table, cells []pgoutput.Cell) error {
	counts, err := r.counts(t, cells, newKey)
	if err != nil || !counts {
		return err
	}
	return r.emitRow(t, rows.OpInsert, cells, nil)
}

func (r *reader) delete(t *table, c *pgoutput.Change) error {
	counts, err := r.counts(t, c.Old, oldKey)
	if err != nil || !counts {
		return err
	}
	return r.emitRow(t, rows.OpDelete, c.Old, t.sent(c.OldKind))
}

// sent lists the columns an old row carries; nil means all.
func (t *table) sent(oldKind byte) []int {
	if oldKind == pgoutput.OldKey {
		return t.key
	}
	return nil
}

func (r *reader) update(ctx context.Context, out source.Output, t *table, c *pgoutput.Change) error {
	u := core.Update(c, t.key)
	if u.KeyChanged {
		return r.move(ctx, out, t, c)
	}
	if counts, err := r.counts(t, c.New, newKey); err != nil || !counts {
		return err
	}
	if r.opened.source.Before || (len(t.key) == 0 && u.Whole) { // without a key only the old row says which row it was
		// Without the old row at hand only its key is known, and that is the new row's.
		old, only := c.New, t.key
		if u.Whole {
			old, only = c.Old, nil
		}
		if err := r.emitBefore(t, old, only); err != nil {
			return err
		}
	}
	return r.emitRow(t, rows.OpUpdateAfter, c.New, nil)
}

// move applies a change of the key: two changes, each judged by its own key.
func (r *reader) move(ctx context.Context, out source.Output, t *table, c *pgoutput.Change) error {
	leaves, err := r.counts(t, c.Old, oldKey)
	if err != nil {
		return err
	}
	comes, err := r.counts(t, c.New, newKey)
	if err != nil {
		return err
	}
	if comes && !leaves && unsent(c.New) {
		// The row came out of a chunk that never had it into one that did not have it either: no sink has the values that
		// the log leaves out.
		return r.copyAgain(ctx, out, t)
	}
	if leaves {
		if err := r.emitRow(t, rows.OpDelete, c.Old, t.sent(c.OldKind)); err != nil {
			return err
		}
	}
	if !comes {
		return nil
	}
	return r.emitRow(t, rows.OpInsert, c.New, nil)
}

func unsent(cells []pgoutput.Cell) bool {
	return slices.ContainsFunc(cells, func(c pgoutput.Cell) bool { return c.Kind == pgoutput.CellUnchanged })
}

// emitBefore adds the row before an update; columns outside only were not sent.
func (r *reader) emitBefore(t *table, cells []pgoutput.Cell, only []int) error {
	if only != nil {
		r.masked = append(r.masked[:0], cells...)
		for i := range r.masked {
			if !slices.Contains(only, i) {
				r.masked[i] = pgoutput.Cell{Kind: pgoutput.CellUnchanged}
			}
		}
		cells = r.masked
	}
	return r.emitRow(t, rows.OpUpdateBefore, cells, nil)
}

func (r *reader) emitRow(t *table, op rows.Op, cells []pgoutput.Cell, only []int) error {
	if err := t.put(cells, only); err != nil {
		return err
	}
	t.builder.EndRow(r.meta(op))
	return nil
}

func (r *reader) meta(op rows.Op) rows.Meta {
	final, xid, ts := r.tracker.Transaction()
	r.seq++
	return rows.Meta{Op: op, Seq: r.seq, Ts: ts, Txn: uint64(final), Xid: xid, Ord: r.tracker.Row()}
}

func (r *reader) truncate(ctx context.Context, out source.Output, b []byte) error {
	m, err := pgoutput.ParseTruncate(b)
	if err != nil {
		return r.undecodable(err)
	}
	fresh, err := r.tracker.Change()
	if err != nil || !fresh {
		return r.undecodable(err)
	}
	for _, oid := range m.Relations {
		if r.had(oid) {
			continue
		}
		t, err := r.table(ctx, out, oid)
		if err != nil {
			return err
		}
		if t == nil {
			continue
		}
		if err := r.empty(ctx, out, t); err != nil {
			return err
		}
	}
	return nil
}

// empty applies the truncate of one table.
func (r *reader) empty(ctx context.Context, out source.Output, t *table) error {
	if r.filter != nil {
		_, xid, _ := r.tracker.Transaction()
		switch t.filter.Truncate(xid) {
		case cdc.Drop, cdc.Locate:
			return nil
		case cdc.Again:
			return r.copyAgain(ctx, out, t)
		case cdc.Emit:
		}
	}
	t.builder.Truncate(r.meta(rows.OpTruncate))
	return r.batches.Grown(ctx, out, t.builder, 0)
}

// copyAgain empties a table and stops the log, until the table has been copied anew.
func (r *reader) copyAgain(ctx context.Context, out source.Output, t *table) error {
	r.cfg.Logger.WarnContext(ctx, "table is copied anew: a change in the log cannot be told from the rows that were copied",
		slog.String("table", string(t.id())))
	t.builder.Truncate(r.meta(rows.OpTruncate))
	r.paused = true
	r.progress.lifecycle(report.Snapshot)
	r.share.Paused(cdc.TableID(t.relation.OID))
	return r.batches.Grown(ctx, out, t.builder, 0)
}

// table finds the table of a row and binds it when this is its first; nil when the table is not captured.
func (r *reader) table(ctx context.Context, out source.Output, oid uint32) (*table, error) {
	t := r.tables[oid]
	switch {
	case t == nil:
		return nil, r.undecodable(fmt.Errorf("a row of relation %d, which was not described", oid))
	case t.builder != nil:
		return t, nil
	case !t.captured:
		return nil, nil
	case t.err != nil:
		return nil, t.err
	}
	// The rows of the version before go first.
	for _, old := range r.retired {
		if err := r.batches.Flush(ctx, out, old.builder); err != nil {
			return nil, err
		}
	}
	r.retired = r.retired[:0]
	bound, err := r.bind(t.described)
	if err != nil {
		return nil, err
	}
	if err := r.sieve(bound); err != nil {
		return nil, err
	}
	r.tables[oid] = bound
	return bound, nil
}

// bind gives a table its schema version: the one sent before when nothing differs, else the next.
func (r *reader) bind(d *described) (*table, error) {
	last, known := r.schemas[d.id()]
	columns, evolved, err := r.evolved(d, last.Columns)
	if err != nil {
		return nil, err
	}
	version := max(last.Version, 1)
	t, err := bind(evolved, version, r.where)
	if err != nil {
		return nil, err
	}
	if known && t.builder.Schema().Fingerprint().String() != last.Fingerprint {
		version++
		if t, err = bind(evolved, version, r.where); err != nil {
			return nil, err
		}
	}
	t.described = d // what the next description is compared with
	r.schemas[d.id()] = schemaVersion{Version: version, Fingerprint: t.builder.Schema().Fingerprint().String(), Columns: columns}
	return t, nil
}
