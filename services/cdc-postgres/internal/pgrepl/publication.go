package pgrepl

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"

	"weir.dev/weir/pkg/fault"
)

// TableName is a table in its schema, as the server spells both.
type TableName struct {
	Schema string `json:"schema"`
	Name   string `json:"name"`
}

// Sanitize is the quoted form for SQL.
func (n TableName) Sanitize() string { return pgx.Identifier{n.Schema, n.Name}.Sanitize() }

// String is schema.table without quotes: the identity used in row batches and reports.
func (n TableName) String() string { return n.Schema + "." + n.Name }

// Publication is what a publication sends.
type Publication struct {
	// OID is another one when the publication was dropped and made again.
	OID                              uint32
	AllTables                        bool
	Insert, Update, Delete, Truncate bool
	ViaRoot                          bool
	Tables                           map[TableName]bool
}

// Publication finds a publication by name; ok is false when there is none.
func (t *Target) Publication(ctx context.Context, conn *pgx.Conn, name string) (p Publication, ok bool, err error) {
	err = conn.QueryRow(ctx, `
SELECT oid, puballtables, pubinsert, pubupdate, pubdelete, pubtruncate, pubviaroot FROM pg_publication WHERE pubname = $1`,
		name).Scan(&p.OID, &p.AllTables, &p.Insert, &p.Update, &p.Delete, &p.Truncate, &p.ViaRoot)
	if errors.Is(err, pgx.ErrNoRows) {
		return p, false, nil
	}
	if err != nil {
		return p, false, t.Fault(err)
	}
	rows, err := conn.Query(ctx, "SELECT schemaname, tablename FROM pg_publication_tables WHERE pubname = $1", name)
	if err != nil {
		return p, false, t.Fault(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowToStructByPos[TableName])
	if err != nil {
		return p, false, t.Fault(err)
	}
	p.Tables = make(map[TableName]bool, len(tables))
	for _, n := range tables {
		p.Tables[n] = true
	}
	return p, true, nil
}

// Published is a table in a publication.
type Published struct {
	TableName
	// Columns are those that are sent, all when it is nil; a server before version 15 sends all.
	Columns []string
}

func (p Published) clause() string {
	if p.Columns == nil {
		return p.Sanitize()
	}
	quoted := make([]string, len(p.Columns))
	for i, c := range p.Columns {
		quoted[i] = pgx.Identifier{c}.Sanitize()
	}
	return p.Sanitize() + " (" + strings.Join(quoted, ", ") + ")"
}

// MakePublication creates the publication for exactly these tables, or gives an existing one exactly these. Since 18 it sends
// stored generated columns: the server refuses the updates of a table whose replica identity has one that is not sent.
func (t *Target) MakePublication(ctx context.Context, conn *pgx.Conn, name string, version int, tables []Published) error {
	quoted := make([]string, len(tables))
	for i, n := range tables {
		quoted[i] = n.clause()
	}
	list, id := strings.Join(quoted, ", "), pgx.Identifier{name}.Sanitize()
	options := "publish_via_partition_root = true"
	if version >= 180000 {
		options += ", publish_generated_columns = stored"
	}
	_, err := conn.Exec(ctx, "CREATE PUBLICATION "+id+" FOR TABLE "+list+" WITH ("+options+")")
	if state(err) == stateDuplicateObject {
		_, err = conn.Exec(ctx, "ALTER PUBLICATION "+id+" SET TABLE "+list)
	}
	if state(err) == stateInsufficientPrivilege {
		return t.fault(err, fault.PGNoCreate, "publication", name, "tables", list)
	}
	return t.Fault(err)
}

// DropPublication removes a publication if it is there.
func (t *Target) DropPublication(ctx context.Context, conn *pgx.Conn, name string) error {
	_, err := conn.Exec(ctx, "DROP PUBLICATION IF EXISTS "+pgx.Identifier{name}.Sanitize())
	return t.Fault(err)
}
