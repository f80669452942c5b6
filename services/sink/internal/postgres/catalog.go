package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/pgcodec"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/sink/internal/transact"
)

// prepare makes the target of a schema version fit: creates the table, takes over one that is there, adds and widens
// columns. It runs inside the commit's transaction, so a change of columns is visible with the first rows that need it or
// not at all.
func (c *Committer) prepare(ctx context.Context, s *session, schema *rows.Schema) (*target, error) {
	sourceSchema, sourceTable := splitTable(schema.Table())
	name := c.pg.TableName(sourceSchema, sourceTable)
	t := &target{
		schema: schema, mode: c.cfg.Sink.Mode,
		name: pgx.Identifier{c.ledger.schema, name}.Sanitize(), plain: c.ledger.schema + "." + name,
	}
	at := c.at
	at.Table = t.plain
	owned, made, err := c.ownership(ctx, s, schema.Table(), name, at)
	if err != nil {
		return nil, err
	}
	if !owned {
		if err := c.checkLoop(ctx, s, name, at); err != nil {
			return nil, err
		}
	}
	found, err := examine(ctx, s, c.ledger.schema, name)
	if err != nil {
		return nil, err
	}
	types, err := columnTypes(ctx, s, schema)
	if err != nil {
		return nil, err
	}
	if found == nil {
		if owned {
			return nil, fault.New(fault.SinkMissingTable, at.String(), "it was there before", "table", t.plain)
		}
		if _, err := s.Exec(ctx, t.createSQL(types)); err != nil {
			return nil, err
		}
		made = true
		if found, err = examine(ctx, s, c.ledger.schema, name); err != nil {
			return nil, err
		}
		if found == nil {
			return nil, fmt.Errorf("examine %s: it is not there although it was just made", t.plain)
		}
	} else if !owned {
		if err := c.takeOver(ctx, s, t, at); err != nil {
			return nil, err
		}
	}
	if !owned {
		if _, err := s.Exec(ctx, `INSERT INTO `+c.ledger.name(ownTable)+` (job, sink, source, target, made, at)
			VALUES ($1, $2, $3, $4, $5, now())`, c.ledger.job, c.ledger.sink, string(schema.Table()), name, made); err != nil {
			return nil, err
		}
	}
	if err := c.evolve(ctx, s, t, found, types, made, at); err != nil {
		return nil, err
	}
	return t, t.checkKey(found, at)
}

// splitTable takes a table's identity apart. Schema and table are joined by the first dot.
func splitTable(id rows.TableID) (schema, table string) {
	schema, table, ok := strings.Cut(string(id), ".")
	if !ok {
		return "", string(id)
	}
	return schema, table
}

// ownership says whether the sink has taken this target for this source table before, and whether it made it. A target
// that another source table has is refused.
func (c *Committer) ownership(ctx context.Context, q querier, source rows.TableID, name string, at transact.Place) (owned, made bool, err error) {
	found, err := q.Query(ctx, `SELECT source, made FROM `+c.ledger.name(ownTable)+`
		WHERE job = $1 AND sink = $2 AND (source = $3 OR target = $4)`, c.ledger.job, c.ledger.sink, string(source), name)
	if err != nil {
		return false, false, err
	}
	type own struct {
		Source string
		Made   bool
	}
	all, err := pgx.CollectRows(found, pgx.RowToStructByPos[own])
	if err != nil {
		return false, false, err
	}
	for _, o := range all {
		if o.Source != string(source) {
			return false, false, fault.New(fault.SinkNameClash, at.String(), o.Source+" and "+string(source)+" both map to it")
		}
		owned, made = true, o.Made
	}
	return owned, made, nil
}

// takeOver asks what to do with the rows of a table that was there first.
func (c *Committer) takeOver(ctx context.Context, q querier, t *target, at transact.Place) error {
	switch c.pg.Existing {
	case spec.ExistingKeep:
		return nil
	case spec.ExistingTruncate:
		_, err := q.Exec(ctx, "TRUNCATE "+t.name)
		return err
	case spec.ExistingRefuse:
	}
	var filled bool
	if err := q.QueryRow(ctx, "SELECT EXISTS (SELECT FROM "+t.name+")").Scan(&filled); err != nil || !filled {
		return err
	}
	return fault.New(fault.SinkNotEmpty, at.String(), "it was there before the job's first row for it")
}

// column is one column of a table that exists.
type column struct {
	Name      string
	SQLType   string // as format_type prints it
	Kind      string // pg_type.typtype; a domain counts as its base type
	Required  bool   // NOT NULL without a default
	Generated bool
	Default   bool // has a default or is an identity
}

// relation is a table that exists.
type relation struct {
	columns map[string]column
	// unique lists the column sets of usable unique indexes, quoted; others counts unique and exclusion constraints of any form.
	unique     [][]string
	others     int
	referenced bool // by foreign keys whose action reaches into other tables
}

// examine reads a table from the catalog; nil when it is not there.
func examine(ctx context.Context, q querier, schema, name string) (*relation, error) {
	found, err := q.Query(ctx, `SELECT a.attname::text, format_type(coalesce(nullif(t.typbasetype, 0), a.atttypid),
			CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE a.atttypmod END),
			t.typtype::text, a.attnotnull AND NOT a.atthasdef AND a.attidentity = '', a.attgenerated <> '',
			a.atthasdef OR a.attidentity <> ''
		FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
			JOIN pg_type t ON t.oid = a.atttypid
		WHERE n.nspname = $1 AND c.relname = $2 AND c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped`, schema, name)
	if err != nil {
		return nil, err
	}
	columns, err := pgx.CollectRows(found, pgx.RowToStructByPos[column])
	if err != nil || len(columns) == 0 {
		return nil, err
	}
	r := &relation{columns: make(map[string]column, len(columns))}
	for _, c := range columns {
		r.columns[c.Name] = c
	}
	indexes, err := q.Query(ctx, `SELECT i.indisunique AND i.indpred IS NULL AND i.indexprs IS NULL AND i.indimmediate AND i.indisvalid,
			(SELECT array_agg(a.attname::text) FROM unnest((i.indkey::int2[])[0:i.indnkeyatts - 1]) k
			 JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k)
		FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = $1 AND c.relname = $2 AND (i.indisunique OR i.indisexclusion)`, schema, name)
	if err != nil {
		return nil, err
	}
	for indexes.Next() {
		var usable bool
		var names []string
		if err := indexes.Scan(&usable, &names); err != nil {
			return nil, err
		}
		r.others++
		if usable {
			for i := range names {
				names[i] = quote(names[i])
			}
			slices.Sort(names)
			r.unique = append(r.unique, names)
		}
	}
	if err := indexes.Err(); err != nil {
		return nil, err
	}
	err = q.QueryRow(ctx, `SELECT current_setting('session_replication_role') <> 'replica' AND EXISTS (
			SELECT FROM pg_constraint f JOIN pg_class c ON c.oid = f.confrelid JOIN pg_namespace n ON n.oid = c.relnamespace
			WHERE n.nspname = $1 AND c.relname = $2 AND f.contype = 'f')`, schema, name).Scan(&r.referenced)
	return r, err
}

// columnTypes chooses the types of new columns: the source's own, and of a user's type the one of the same name where the
// target has it. A key of a type that an extension brought is text: its operators are not on the search path.
func columnTypes(ctx context.Context, q querier, schema *rows.Schema) ([]string, error) {
	types, users := make([]string, schema.NumColumns()), make([]string, schema.NumColumns())
	ask := false
	for i, c := range schema.Columns() {
		types[i], users[i] = pgcodec.SQLType(c, schema.Origin()), pgcodec.UserType(c, schema.Origin())
		ask = ask || users[i] != ""
	}
	if !ask {
		return types, nil
	}
	found, err := q.Query(ctx, `SELECT n.place - 1, t.typtype::text
		FROM unnest($1::text[]) WITH ORDINALITY n (name, place) JOIN pg_type t ON t.oid = to_regtype(nullif(n.name, ''))`, users)
	if err != nil {
		return nil, err
	}
	var i int
	var kind string
	_, err = pgx.ForEachRow(found, []any{&i, &kind}, func() error {
		if schema.Column(i).KeyPos == 0 || kind != "b" {
			types[i] = users[i]
		}
		return nil
	})
	return types, err
}

// createSQL makes the table: its columns, and in upsert mode the primary key; nothing else.
func (t *target) createSQL(types []string) string {
	var lines []string
	for i, c := range t.schema.Columns() {
		lines = append(lines, quote(c.Name)+" "+types[i])
	}
	switch t.mode {
	case spec.Changelog:
		for _, c := range changeColumns {
			lines = append(lines, c.name+" "+c.sqlType)
		}
	case spec.Upsert:
		var key []string
		for _, i := range t.schema.Key() {
			key = append(key, quote(t.schema.Column(i).Name))
		}
		lines = append(lines, "PRIMARY KEY ("+strings.Join(key, ", ")+")")
	case spec.Append:
	}
	return "CREATE TABLE " + t.name + " (\n\t" + strings.Join(lines, ",\n\t") + "\n)"
}

// checkKey finds the unique index that an upsert needs.
func (t *target) checkKey(found *relation, at transact.Place) error {
	t.guarded = found.others > 0
	if t.mode != spec.Upsert {
		return nil
	}
	var key, quoted []string
	for _, i := range t.schema.Key() {
		name := t.schema.Column(i).Name
		key, quoted = append(key, name), append(quoted, quote(name))
		if t.columns != nil { // the target may have another name for it
			quoted[len(quoted)-1] = t.columns[i].name
		}
	}
	sorted := slices.Sorted(slices.Values(quoted))
	if !slices.ContainsFunc(found.unique, func(u []string) bool { return slices.Equal(u, sorted) }) {
		return fault.New(fault.SinkWrongKey, at.String(), "no unique index on exactly ("+strings.Join(key, ", ")+")",
			"table", t.plain, "key", strings.Join(key, ", "))
	}
	t.guarded = found.others > 1
	t.cascades = found.referenced
	return nil
}
