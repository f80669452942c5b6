package doctor

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"weir.dev/weir/services/cdc-postgres/internal/catalog"
)

// TableFacts are what checks need of a table beyond what the start asks of the catalog.
type TableFacts struct {
	OID   uint32
	Owner string
	// Usage and Select are the role's rights on the schema and on the table; EachColumn says that it may read the columns
	// one by one.
	Usage, Select, EachColumn bool
	// Hidden says that row security would hide rows from the role.
	Hidden bool
	// Large are columns whose values may be stored out of line, and then are in the log only when they changed.
	Large []string
	// Index is a unique index that can identify rows besides the primary key; empty when there is none.
	Index string
	// Rows and Bytes are estimates, partitions included; Rows is -1 when the table was never analyzed.
	Rows, Bytes int64
	// Generated are columns that are not in the log.
	Generated []string
}

// Tables asks for the facts of tables, by their OIDs.
func Tables(ctx context.Context, conn *pgx.Conn, tables []*catalog.Table) (map[uint32]*TableFacts, error) {
	oids := make([]uint32, len(tables))
	for i, t := range tables {
		oids[i] = t.OID
	}
	rows, err := conn.Query(ctx, `
SELECT c.oid, pg_get_userbyid(c.relowner)::text,
       has_schema_privilege(c.relnamespace, 'USAGE'), has_table_privilege(c.oid, 'SELECT'),
       NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
                   AND a.attgenerated = '' AND NOT has_column_privilege(c.oid, a.attnum, 'SELECT')),
       row_security_active(c.oid),
       array(SELECT a.attname::text FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
             AND a.attlen = -1 AND a.attstorage IN ('x', 'e') AND a.attgenerated = '' ORDER BY a.attnum),
       coalesce((SELECT x.relname::text FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid
                 WHERE i.indrelid = c.oid AND i.indisunique AND NOT i.indisprimary AND i.indimmediate AND i.indisvalid
                   AND i.indpred IS NULL AND i.indexprs IS NULL
                   AND NOT EXISTS (SELECT FROM unnest((i.indkey::int2[])[0:i.indnkeyatts - 1]) k
                                   JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k WHERE NOT a.attnotnull)
                 ORDER BY x.relname LIMIT 1), ''),
       (SELECT CASE WHEN min(p.reltuples) < 0 THEN -1 ELSE sum(p.reltuples)::bigint END FROM pg_class p WHERE p.oid = ANY(leaf.oids)),
       (SELECT coalesce(sum(pg_table_size(o)), 0)::bigint FROM unnest(leaf.oids) o),
       array(SELECT a.attname::text FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
             AND a.attgenerated <> '' ORDER BY a.attnum)
FROM pg_class c,
     LATERAL (SELECT CASE WHEN c.relkind = 'p' THEN array(SELECT p.relid::oid FROM pg_partition_tree(c.oid) p WHERE p.isleaf)
                          ELSE ARRAY[c.oid] END AS oids) leaf
WHERE c.oid = ANY($1)`, oids)
	if err != nil {
		return nil, fmt.Errorf("look at the tables: %w", err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToAddrOfStructByPos[TableFacts])
	if err != nil {
		return nil, fmt.Errorf("look at the tables: %w", err)
	}
	found := make(map[uint32]*TableFacts, len(all))
	for _, f := range all {
		found[f.OID] = f
	}
	return found, nil
}
