package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"weir.dev/weir/services/cdc-postgres/internal/pgrepl"
)

// Table is one table of the database.
type Table struct {
	OID  uint32
	Name pgrepl.TableName
	// Obstacle says in words why the table cannot be read from the log; empty when it can.
	Obstacle string
	// Identity is the REPLICA IDENTITY: d, n, f or i.
	Identity byte
	// Owned says that the user may put the table into a publication.
	Owned bool
	// Partitioned says that the rows are in partitions, which the log may name instead.
	Partitioned bool
	// Width is the highest number that a column ever had.
	Width int
	// Storage names the file with the rows; it changes when they are rewritten. 0 when they are in partitions.
	Storage uint32
	Columns []Column
	// PrimaryKey and IdentityKey are names of columns in the order of the index; IdentityKey is that of USING INDEX.
	PrimaryKey, IdentityKey []string
}

// Column is one column of a table, in the table's order.
type Column struct {
	// Number is the column's for good (attnum); a column that is dropped takes its own along.
	Number   int
	Name     string
	TypeOID  uint32
	Modifier int32
	// Dimensions is how many the column was declared with; the server stores arrays of any other number too.
	Dimensions int
	NotNull    bool
	// Generated columns are not in the log before version 18, and Virtual ones, computed when they are read, never.
	Generated, Virtual bool
	// Fill is the constant that ADD COLUMN gave to the rows that were there, as text; nil when none is stored.
	Fill *string
	// Default says that there is a default, or that the column is an identity.
	Default bool
}

// Identified reports whether updates and deletes of the table can be sent. PostgreSQL itself refuses them otherwise, as
// soon as the table is in a publication; also those of a row that FULL cannot give, for a virtual column.
func (t *Table) Identified() bool {
	switch t.Identity {
	case 'f':
		return !slices.ContainsFunc(t.Columns, func(c Column) bool { return c.Virtual })
	case 'i':
		return len(t.IdentityKey) > 0
	case 'd':
		return len(t.PrimaryKey) > 0
	}
	return false
}

// List returns every ordinary table of the database, and those of other kinds with what stands in the way, ordered by
// name. Partitions are not listed: their changes come under the name of the root.
func List(ctx context.Context, conn *pgx.Conn) ([]*Table, error) {
	rows, err := conn.Query(ctx, `
SELECT c.oid, n.nspname, c.relname, c.relkind::text, c.relpersistence::text, c.relreplident::text,
       pg_has_role(c.relowner, 'USAGE'), c.relnatts, coalesce(pg_relation_filenode(c.oid), 0)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition
  AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\_%'
ORDER BY n.nspname, c.relname`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (*Table, error) {
		var t Table
		var kind, persistence, identity string
		err := row.Scan(&t.OID, &t.Name.Schema, &t.Name.Name, &kind, &persistence, &identity, &t.Owned, &t.Width, &t.Storage)
		if err == nil && identity != "" {
			t.Identity = identity[0]
		}
		t.Obstacle, t.Partitioned = obstacle(kind, persistence), kind == "p"
		return &t, err
	})
}

func obstacle(kind, persistence string) string {
	switch {
	case kind == "v":
		return "a view"
	case kind == "m":
		return "a materialized view"
	case kind == "f":
		return "a foreign table"
	case persistence == "u":
		return "an unlogged table"
	case persistence == "t":
		return "a temporary table"
	}
	return ""
}

// Describe fills in columns and keys of tables.
func Describe(ctx context.Context, conn *pgx.Conn, tables []*Table) error {
	byOID := make(map[uint32]*Table, len(tables))
	oids := make([]uint32, len(tables))
	for i, t := range tables {
		t.Columns, t.PrimaryKey, t.IdentityKey = nil, nil, nil
		byOID[t.OID], oids[i] = t, t.OID
	}
	if err := columns(ctx, conn, oids, byOID); err != nil {
		return fmt.Errorf("read columns: %w", err)
	}
	if err := keys(ctx, conn, oids, byOID); err != nil {
		return fmt.Errorf("read keys: %w", err)
	}
	return nil
}

func columns(ctx context.Context, conn *pgx.Conn, oids []uint32, byOID map[uint32]*Table) error {
	rows, err := conn.Query(ctx, `
SELECT a.attrelid, a.attnum, a.attname, a.atttypid, a.atttypmod, a.attndims, a.attnotnull, a.attgenerated <> '', a.attgenerated = 'v',
       a.atthasdef OR a.attidentity <> '',
       CASE WHEN a.atthasmissing THEN (a.attmissingval::text::text[])[1]
            WHEN c.relkind = 'p' THEN (
              SELECT (l.attmissingval::text::text[])[1] FROM pg_partition_tree(c.oid) p JOIN pg_attribute l ON l.attrelid = p.relid
              WHERE l.attname = a.attname AND l.atthasmissing LIMIT 1) END
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
WHERE a.attrelid = ANY($1) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attrelid, a.attnum`, oids)
	if err != nil {
		return err
	}
	var oid uint32
	var c Column
	_, err = pgx.ForEachRow(rows, []any{
		&oid, &c.Number, &c.Name, &c.TypeOID, &c.Modifier, &c.Dimensions, &c.NotNull, &c.Generated, &c.Virtual, &c.Default, &c.Fill,
	}, func() error {
		t := byOID[oid]
		t.Columns = append(t.Columns, c)
		c.Fill = nil
		return nil
	})
	return err
}

func keys(ctx context.Context, conn *pgx.Conn, oids []uint32, byOID map[uint32]*Table) error {
	rows, err := conn.Query(ctx, `
SELECT i.indrelid, i.indisprimary, i.indisreplident,
       array(SELECT a.attname::text FROM unnest(i.indkey) WITH ORDINALITY AS k(num, ord)
             JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.num
             WHERE k.ord <= i.indnkeyatts ORDER BY k.ord)
FROM pg_index i WHERE i.indrelid = ANY($1) AND (i.indisprimary OR i.indisreplident) AND i.indisvalid`, oids)
	if err != nil {
		return err
	}
	var oid uint32
	var primary, identity bool
	var names []string
	_, err = pgx.ForEachRow(rows, []any{&oid, &primary, &identity, &names}, func() error {
		t := byOID[oid]
		if primary {
			t.PrimaryKey = slices.Clone(names)
		}
		if identity {
			t.IdentityKey = slices.Clone(names)
		}
		return nil
	})
	return err
}

// ByOID reads one table as it is now; it is nil when there is none.
func ByOID(ctx context.Context, conn *pgx.Conn, oid uint32) (*Table, error) {
	var t Table
	var kind, persistence, identity string
	t.OID = oid
	err := conn.QueryRow(ctx, `
SELECT n.nspname, c.relname, c.relkind::text, c.relpersistence::text, c.relreplident::text, pg_has_role(c.relowner, 'USAGE'),
       c.relnatts, coalesce(pg_relation_filenode(c.oid), 0)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = $1`, oid).Scan(
		&t.Name.Schema, &t.Name.Name, &kind, &persistence, &identity, &t.Owned, &t.Width, &t.Storage)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	t.Identity, t.Obstacle, t.Partitioned = identity[0], obstacle(kind, persistence), kind == "p"
	return &t, Describe(ctx, conn, []*Table{&t})
}

// OneIdentity reports whether a table and all its partitions have the replica identity of the primary key; true of a table
// without partitions, whatever it has.
func OneIdentity(ctx context.Context, conn *pgx.Conn, t *Table) (one bool, err error) {
	if !t.Partitioned {
		return true, nil
	}
	err = conn.QueryRow(ctx, `
SELECT bool_and(c.relreplident = 'd') FROM pg_partition_tree($1) p JOIN pg_class c ON c.oid = p.relid`, t.OID).Scan(&one)
	return one, err
}
