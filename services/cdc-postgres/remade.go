package cdcpostgres

import (
	"context"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/position"
	"weir.dev/weir/services/cdc-postgres/internal/core"
	"weir.dev/weir/services/cdc-postgres/internal/pgrepl"
)

// remade is a captured table that was dropped and made again. A publication forgets a table that is dropped, so no row of
// the new one may ever come; the catalog has to say it.
type remade struct {
	mu   sync.Mutex
	lsn  position.LSN
	name pgrepl.TableName
}

// look finds such a table among those that are captured. Everything that was written to the old one lies before the
// position that is read behind.
func (m *remade) look(ctx context.Context, conn *pgx.Conn, captured []capturedTable) error {
	m.mu.Lock()
	known := m.lsn != 0
	m.mu.Unlock()
	if known {
		return nil
	}
	var oids []uint32
	var schemas, names []string
	for i := range captured {
		oids, schemas, names = append(oids, captured[i].OID), append(schemas, captured[i].Schema), append(names, captured[i].Name)
	}
	rows, err := conn.Query(ctx, `
SELECT n.nspname, c.relname FROM unnest($1::oid[], $2::text[], $3::text[]) t (oid, schema, name)
JOIN pg_namespace n ON n.nspname = t.schema JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = t.name
WHERE c.oid <> t.oid AND NOT EXISTS (SELECT FROM pg_class old WHERE old.oid = t.oid) LIMIT 1`, oids, schemas, names)
	if err != nil {
		return err
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[pgrepl.TableName])
	if err != nil || len(found) == 0 {
		return err
	}
	var behind string
	if err := conn.QueryRow(ctx, `SELECT pg_current_wal_insert_lsn()::text`).Scan(&behind); err != nil {
		return err
	}
	lsn, err := position.ParseLSN(behind)
	if err != nil {
		return fmt.Errorf("read the end of the log: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lsn, m.name = lsn, found[0]
	return nil
}

// passed is the fault of the table once everything of the old one was read.
func (m *remade) passed(at core.Position, where string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lsn == 0 || at.IsTorn() || at.End < m.lsn {
		return nil
	}
	return droppedAndMade(where, m.name)
}

func droppedAndMade(where string, name pgrepl.TableName) error {
	return fault.New(fault.PGSchemaChanged, where,
		fmt.Sprintf("table %s was dropped and made again; the rows of the old one are still at the sinks", name))
}
