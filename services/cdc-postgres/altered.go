package cdcpostgres

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/jackc/pgx/v5"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/position"
	"weir.dev/weir/services/cdc-postgres/internal/catalog"
	"weir.dev/weir/services/cdc-postgres/internal/core"
	"weir.dev/weir/services/cdc-postgres/internal/pgoutput"
	"weir.dev/weir/services/cdc-postgres/internal/pgrepl"
)

// former is a version that the columns of a table had while it was copied. Rows of chunks that were read in it are at the sinks.
type former struct {
	Columns core.Columns `json:"columns"`
	// Until is an end of the log behind the change that ended the version: no transaction beyond it has such rows.
	Until position.LSN `json:"until"`
}

// copyAltered ends an attempt that was set up for other columns of a table than it has; the next one is set up for those.
func copyAltered(where string, t *capturedTable) error {
	return fault.New(fault.PGCopyAltered, where, fmt.Sprintf("the columns of table %s changed while it was copied", t), "table", t.String())
}

// misfit is the fault of a table that could not be read as it was captured: its columns have changed, unless the catalog says that
// they have not.
func misfit(ctx context.Context, conn *pgx.Conn, where string, t *capturedTable) error {
	facts, err := tableFacts(ctx, conn, []uint32{t.OID})
	if err != nil {
		return err
	}
	if f, there := facts[t.OID]; there && f.columns != t.Columns {
		return copyAltered(where, t)
	}
	return columnsChanged(where, t)
}

// realign has the copies that are under way go on in the columns that their tables have now. Every reader of an attempt copies in
// one version, and the log, which begins before the change, is brought into it: to a sink the columns have changed once, between
// the rows of one attempt and those of the next. log is where the log was, nil when it was not begun.
func (s *setup) realign(ctx context.Context, log *readerState) error {
	var oids []uint32
	for i := range s.state.Tables {
		if unread, _ := s.assigner.Unread(s.state.Tables[i].id()); unread {
			oids = append(oids, s.state.Tables[i].OID)
		}
	}
	if len(oids) == 0 {
		return nil
	}
	now, err := tableFacts(ctx, s.conn, oids)
	if err != nil {
		return s.target.Fault(err)
	}
	for i := range s.state.Tables {
		t := &s.state.Tables[i]
		if f, unread := now[t.OID]; !unread || f.columns == t.Columns {
			continue
		}
		if err := s.realigned(ctx, t, log); err != nil {
			return s.target.Fault(err)
		}
	}
	if s.veil == nil || s.source.Publication != "" {
		return nil
	}
	return s.resend(ctx) // chunks that are read behind it have what was written before
}

// realigned takes one table as it is. One of which nothing was read is captured as if for the first time.
func (s *setup) realigned(ctx context.Context, t *capturedTable, log *readerState) error {
	now, err := catalog.ByOID(ctx, s.conn, t.OID)
	if err != nil {
		return err
	}
	if now == nil || now.Name != t.TableName {
		return nil // whoever reads it says so
	}
	tx, err := s.conn.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	// From here on the columns stay what they are.
	if _, err := tx.Exec(ctx, "LOCK TABLE "+t.from()+" IN ACCESS SHARE MODE"); err != nil {
		return err
	}
	if now, err = catalog.ByOID(ctx, s.conn, t.OID); err != nil {
		return err
	}
	if err := noIdentity(s.where, []*catalog.Table{now}); err != nil {
		return err
	}
	fresh, err := s.capture(ctx, []*catalog.Table{now}, map[uint32]schemaVersion{t.OID: t.sent(log)})
	if err != nil {
		return err
	}
	_, begun := s.assigner.Unread(t.id())
	if !begun {
		*t = fresh[0]
		s.assigner.Recut(t.task())
	} else if err := s.succeed(ctx, t, &fresh[0], now); err != nil {
		return err
	}
	s.news = true
	s.cfg.Logger.InfoContext(ctx, "table is copied on in other columns", slog.String("table", t.String()),
		slog.Uint64("version", uint64(t.Number)), slog.Bool("begun", begun))
	return tx.Commit(ctx)
}

// succeed has the copy of a table, some of which was read, go on in the columns of now. fresh is how it would be captured for the
// first time.
func (s *setup) succeed(ctx context.Context, t, fresh *capturedTable, now *catalog.Table) error {
	listed, err := s.listed(ctx, t)
	if err != nil {
		return err
	}
	// Spooled rows are those of one statement, chunks those of one key; what is not in a publication's list has no log.
	if len(t.Key) == 0 || !t.sameKey(fresh) || listed {
		return columnsChanged(s.where, t)
	}
	types, err := typesOf(ctx, s.conn, []*catalog.Table{now})
	if err != nil {
		return err
	}
	d := s.veil.describe(relationOf(now), now, types, s.where)
	version, d, err := s.evolved(d, t.Version)
	if err != nil {
		return err
	}
	next := *t
	next.Columns, next.Key, next.RowBytes, next.Version, next.Sends = fresh.Columns, fresh.Key, fresh.RowBytes, version, d.relation.Columns
	if !version.Alike(t.Version) {
		end, err := s.target.End(ctx, s.conn)
		if err != nil {
			return err
		}
		next.Former = append(slices.Clone(t.Former), former{Columns: t.Version, Until: end})
		if err := version.Succeeds(next.formers(0)...); err != nil {
			return unlike(s.target, d, err)
		}
	}
	bound, err := bind(d, next.Number, s.where)
	if err != nil {
		return err
	}
	next.Fingerprint = bound.builder.Schema().Fingerprint().String()
	if next.Fingerprint != t.Fingerprint {
		next.Number++
	}
	*t = next
	return nil
}

// sameKey reports whether two captures of a table have the same columns as its key, by whatever names, in the same form.
func (t *capturedTable) sameKey(o *capturedTable) bool {
	return slices.EqualFunc(t.Key, o.Key, func(a, b keyColumn) bool {
		return a.Form == b.Form && t.Version.NumberOf(a.Name) == o.Version.NumberOf(b.Name)
	})
}

// listed reports whether the publication sends some of a table's columns only.
func (s *setup) listed(ctx context.Context, t *capturedTable) (bool, error) {
	var listed bool
	err := s.conn.QueryRow(ctx, `
SELECT EXISTS (SELECT FROM pg_publication_rel r JOIN pg_publication p ON p.oid = r.prpubid
               WHERE p.pubname = $1 AND r.prrelid = $2 AND to_jsonb(r) ->> 'prattrs' IS NOT NULL)`, s.state.Publication, t.OID).Scan(&listed)
	return listed, err
}

// formers are the versions in which a transaction with that end may have written rows of the table, but the present one.
func (t *capturedTable) formers(final position.LSN) []core.Columns {
	var versions []core.Columns
	for _, f := range t.Former {
		if final <= f.Until {
			versions = append(versions, f.Columns)
		}
	}
	return versions
}

// onto describes rows of the log from before a change of columns in the columns in which the copy went on. d is how the log has them.
func (t *capturedTable) onto(d *described, final position.LSN, now *catalog.Table, types map[uint32]catalog.Type, target *pgrepl.Target) *described {
	from := t.formers(final)
	if len(from) == 0 || d.err != nil {
		return d
	}
	places, err := t.Version.Onto(d.sent(), from...)
	if err != nil {
		d.err = unlike(target, d, err)
		return d
	}
	r := d.relation
	r.Columns = slices.Clone(t.Sends)
	keep, added := make([]int, len(places)), make([]pgoutput.Cell, len(places))
	for i, at := range places {
		if at == core.Added {
			keep[i], added[i], r.Columns[i].Key = core.Added, pgoutput.Cell{Kind: pgoutput.CellNull}, r.Identity == pgoutput.IdentityFull
			if fill := t.Version.List[i].Fill; fill != nil {
				added[i] = pgoutput.Cell{Kind: pgoutput.CellText, Data: []byte(*fill)}
			}
			continue
		}
		keep[i], r.Columns[i].Key = at, d.relation.Columns[at].Key
		if d.keep != nil {
			keep[i] = d.keep[at]
		}
	}
	present := t.veil.describe(r, now, types, target.Where())
	present.width, present.keep, present.added = d.width, keep, added
	return present
}
