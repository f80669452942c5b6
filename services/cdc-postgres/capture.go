package cdcpostgres

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"weir.dev/weir/pkg/cdc"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/services/cdc-postgres/internal/catalog"
	"weir.dev/weir/services/cdc-postgres/internal/core"
	"weir.dev/weir/services/cdc-postgres/internal/pgoutput"
	"weir.dev/weir/services/cdc-postgres/internal/pgrepl"
)

// capturedTable is a table as it was when the source was set up. A table that is dropped and made again has another OID.
type capturedTable struct {
	pgrepl.TableName
	OID uint32 `json:"oid"`
	// Key is what identifies a row in the log; chunks are ranges of it. Without one the table is copied as a whole.
	Key []keyColumn `json:"key,omitempty"`
	// Columns are those that are read. A copy that would find others is not made: the change is somewhere in the log.
	Columns string `json:"columns"`
	// Fingerprint is that of the table's rows, in the schema version in which they are copied.
	Fingerprint string `json:"fingerprint"`
	// Version is that schema version itself, and Number its number: above the first when the table was copied anew in another
	// form than before.
	Version core.Columns `json:"version"`
	Number  uint32       `json:"number"`
	// Root says that the rows are in partitions.
	Root bool `json:"root,omitempty"`
	// RowBytes is the server's estimate of the size of a row; 0 when it has none.
	RowBytes int64 `json:"row_bytes,omitempty"`

	// Former are the versions before, oldest first, that chunks of the present copy were read in, and Sends the columns of Version
	// as the log has them, where there are any.
	Former []former                  `json:"former,omitempty"`
	Sends  []pgoutput.RelationColumn `json:"sends,omitempty"`

	veil *veil // of this process; it is in no state
}

// keyColumn is one column of a table's key.
type keyColumn struct {
	Name string       `json:"name"`
	Form core.KeyForm `json:"form"`
}

// id is the table's number in the copy.
func (t *capturedTable) id() cdc.TableID { return cdc.TableID(t.OID) }

// task is the table as the copy sees it.
func (t *capturedTable) task() cdc.Table {
	return cdc.Table{ID: t.id(), Name: t.String(), Keyless: len(t.Key) == 0, RowBytes: t.RowBytes}
}

func byID(tables []capturedTable) map[cdc.TableID]*capturedTable {
	m := make(map[cdc.TableID]*capturedTable, len(tables))
	for i := range tables {
		m[tables[i].id()] = &tables[i]
	}
	return m
}

func (t *capturedTable) forms() []core.KeyForm {
	forms := make([]core.KeyForm, len(t.Key))
	for i, k := range t.Key {
		forms[i] = k.Form
	}
	return forms
}

// from is the table as a FROM clause names it: without the tables that inherit from it, which the log names themselves.
func (t *capturedTable) from() string {
	if t.Root {
		return t.Sanitize()
	}
	return "ONLY " + t.Sanitize()
}

// adopt gives the columns of a table that is described anew their identities, and what rows from before have in them.
func adopt(d *described, version core.Columns) bool {
	if len(d.columns) != len(version.List) {
		return false
	}
	for i := range d.columns {
		c := &version.List[i]
		d.columns[i].ID = c.ID
		if c.Fill != nil {
			d.columns[i].Fill, d.columns[i].Filled = *c.Fill, true
		}
	}
	return true
}

// capture describes tables that are to be captured. last is the schema version in which rows of a table were last sent, if
// any was.
func (s *setup) capture(ctx context.Context, tables []*catalog.Table, last map[uint32]schemaVersion) ([]capturedTable, error) {
	types, err := typesOf(ctx, s.conn, tables)
	if err != nil {
		return nil, s.target.Fault(err)
	}
	oids := make([]uint32, len(tables))
	for i, t := range tables {
		oids[i] = t.OID
	}
	facts, err := tableFacts(ctx, s.conn, oids)
	if err != nil {
		return nil, s.target.Fault(err)
	}
	captured := make([]capturedTable, 0, len(tables))
	for _, t := range tables {
		r := relationOf(t)
		d := s.veil.describe(r, t, types, s.where)
		if d.err != nil {
			return nil, d.err
		}
		version, number := core.First(d.sent(), d.live), uint32(firstVersion)
		before, sent := last[t.OID]
		if sent {
			version, number = core.Anew(before.Columns, d.sent(), d.live), before.Version
		}
		adopt(d, version)
		bound, err := bind(d, number, s.where)
		if err != nil {
			return nil, err
		}
		fingerprint := bound.builder.Schema().Fingerprint().String()
		if sent && fingerprint != before.Fingerprint {
			number++
		}
		f := facts[t.OID]
		c := capturedTable{
			TableName: t.Name, OID: t.OID, Root: t.Partitioned, Columns: f.columns, RowBytes: f.rowBytes, veil: s.veil,
			Fingerprint: fingerprint, Version: version, Number: number,
		}
		for _, i := range d.key {
			col := d.relation.Columns[i]
			c.Key = append(c.Key, keyColumn{Name: col.Name, Form: core.KeyFormOf(col.TypeOID, slices.Contains(f.bytewise, col.Name))})
		}
		captured = append(captured, c)
	}
	return captured, nil
}

// relationOf is the Relation message that the log would have for a table.
func relationOf(t *catalog.Table) pgoutput.Relation {
	r := pgoutput.Relation{OID: t.OID, Schema: t.Name.Schema, Name: t.Name.Name, Identity: pgoutput.Identity(t.Identity)}
	var key []string
	switch r.Identity {
	case pgoutput.IdentityDefault:
		key = t.PrimaryKey
	case pgoutput.IdentityIndex:
		key = t.IdentityKey
	case pgoutput.IdentityFull, pgoutput.IdentityNothing:
	}
	for _, c := range t.Columns {
		if c.Generated {
			continue
		}
		r.Columns = append(r.Columns, pgoutput.RelationColumn{
			Name: c.Name, TypeOID: c.TypeOID, Modifier: c.Modifier,
			Key: r.Identity == pgoutput.IdentityFull || slices.Contains(key, c.Name),
		})
	}
	return r
}

func typesOf(ctx context.Context, conn *pgx.Conn, tables []*catalog.Table) (map[uint32]catalog.Type, error) {
	var oids []uint32
	for _, t := range tables {
		for _, c := range t.Columns {
			oids = append(oids, c.TypeOID)
		}
	}
	slices.Sort(oids)
	return catalog.Types(ctx, conn, slices.Compact(oids))
}

// columnsOf is an expression for what must not change while a table is copied. The argument is the table's OID.
const columnsOf = `(SELECT coalesce(string_agg(concat_ws(' ', attnum, atttypid, atttypmod, attnotnull, attgenerated, attname), ',' ORDER BY attnum), '')
 FROM pg_attribute WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped)`

// facts is what only the copy needs to know of a table.
type facts struct {
	columns  string
	rowBytes int64
	bytewise []string // columns whose collation orders by bytes
}

func tableFacts(ctx context.Context, conn *pgx.Conn, oids []uint32) (map[uint32]facts, error) {
	// Databases have a provider of their own collation from version 15 on.
	rows, err := conn.Query(ctx, `
SELECT c.oid, `+fmt.Sprintf(columnsOf, "c.oid")+`,
       CASE WHEN c.reltuples > 0 THEN (c.relpages * current_setting('block_size')::bigint / c.reltuples)::bigint ELSE 0 END,
       array(SELECT a.attname::text FROM pg_attribute a LEFT JOIN pg_collation l ON l.oid = a.attcollation
             WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
               AND (l.collname IN ('C', 'POSIX') AND l.collprovider = 'c' OR l.collprovider = 'd' AND
                    (SELECT d.datcollate IN ('C', 'POSIX') AND coalesce(to_jsonb(d) ->> 'datlocprovider', 'c') = 'c'
                     FROM pg_database d WHERE d.datname = current_database())))
FROM pg_class c WHERE c.oid = ANY($1)`, oids)
	if err != nil {
		return nil, err
	}
	found := make(map[uint32]facts, len(oids))
	var oid uint32
	var f facts
	_, err = pgx.ForEachRow(rows, []any{&oid, &f.columns, &f.rowBytes, &f.bytewise}, func() error {
		found[oid] = f
		f.bytewise = nil
		return nil
	})
	return found, err
}

// columnsChanged is the fault of a table that is no longer what the copy was set up for.
func columnsChanged(where string, t *capturedTable) error {
	return fault.New(fault.PGSchemaChanged, where, fmt.Sprintf(
		"the columns of table %s changed while the table was copied; its rows from before and behind the change do not fit together", t), "table", t.String())
}
