package mysql

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/sink/internal/core"
	"weir.dev/weir/services/sink/internal/transact"
)

// prepare makes the target of a schema version fit: creates the table, takes over one that is there, adds and widens
// columns. It runs before the commit's transaction. Each step looks at what is there and says what it is about to do before
// it does it, so that after a crash the next attempt goes on from there.
func (c *Committer) prepare(ctx context.Context, s *session, schema *rows.Schema) (*target, error) {
	t := c.targetOf(s, schema)
	at := c.at
	at.Table = t.plain
	own, err := c.ownership(ctx, s, schema.Table(), t.table, at)
	if err != nil {
		return nil, err
	}
	if !own.owned {
		if err := c.checkLoop(ctx, s, t.table, at); err != nil {
			return nil, err
		}
	}
	found, err := examine(ctx, s, c.ledger.database, t.table)
	if err != nil {
		return nil, err
	}
	types := columnTypes(schema)
	switch {
	case found == nil && own.fitted:
		return nil, fault.New(fault.SinkMissingTable, at.String(), "it was there before", "table", t.plain)
	case found == nil:
		if !own.owned {
			if err := c.ledger.takeOver(ctx, s, schema.Table(), t.table, true); err != nil {
				return nil, err
			}
		}
		own.made = true
		if _, err := s.exec(ctx, t.createSQL(types, s)); err != nil {
			return nil, err
		}
		if found, err = examine(ctx, s, c.ledger.database, t.table); err != nil {
			return nil, err
		}
		if found == nil {
			return nil, fmt.Errorf("examine %s: it is not there although it was just made", t.plain)
		}
	case !own.owned:
		if err := c.takeOver(ctx, s, t, at); err != nil {
			return nil, err
		}
		if err := c.ledger.takeOver(ctx, s, schema.Table(), t.table, false); err != nil {
			return nil, err
		}
	}
	if found.engine != "InnoDB" {
		return nil, fault.New(fault.SinkEngine, at.String(), "its engine is "+found.engine, "table", t.plain)
	}
	known, err := c.evolve(ctx, s, t, found, types, own.made, at)
	if err != nil {
		return nil, err
	}
	if err := t.resolve(known, found, own.made, at); err != nil {
		return nil, err
	}
	return t, t.checkKey(found, at)
}

// targetOf names the table for a schema.
func (c *Committer) targetOf(s *session, schema *rows.Schema) *target {
	sourceSchema, sourceTable := splitTable(schema.Table())
	name := c.my.TableName(sourceSchema, sourceTable)
	if s.folds {
		name = strings.ToLower(name)
	}
	return &target{
		schema: schema, mode: c.cfg.Sink.Mode, table: name, name: c.ledger.name(name), plain: c.ledger.database + "." + name,
	}
}

// splitTable takes a table's identity apart. Schema and table are joined by the first dot.
func splitTable(id rows.TableID) (schema, table string) {
	schema, table, ok := strings.Cut(string(id), ".")
	if !ok {
		return "", string(id)
	}
	return schema, table
}

// ownership is what the sink remembers of a table.
type ownership struct {
	owned  bool // it has taken the table over, or is about to make it
	made   bool // it makes the table itself
	fitted bool // it has been there, and fit
}

// ownership looks a table up. A target that another source table has is refused.
func (c *Committer) ownership(ctx context.Context, s *session, source rows.TableID, name string, at transact.Place) (own ownership, err error) {
	found, err := s.query(ctx, "SELECT source, made, columns IS NOT NULL FROM "+c.ledger.name(ownTable)+c.ledger.mine()+
		" AND (source = "+text(string(source))+" OR target = "+text(name)+")")
	if err != nil {
		return own, err
	}
	for _, r := range found {
		if r.text(0) != string(source) {
			return own, fault.New(fault.SinkNameClash, at.String(), r.text(0)+" and "+string(source)+" both map to it")
		}
		own = ownership{owned: true, made: r.text(1) == "1", fitted: r.text(2) == "1"}
	}
	return own, nil
}

// takeOver remembers that the sink writes a table.
func (l ledger) takeOver(ctx context.Context, s *session, source rows.TableID, name string, made bool) error {
	flag := "0"
	if made {
		flag = "1"
	}
	_, err := s.exec(ctx, "INSERT INTO "+l.name(ownTable)+" (job, sink, source, target, made, at) VALUES ("+text(l.job)+", "+
		text(l.sink)+", "+text(string(source))+", "+text(name)+", "+flag+", now(6))")
	return err
}

// takeOver asks what to do with the rows of a table that was there first.
func (c *Committer) takeOver(ctx context.Context, s *session, t *target, at transact.Place) error {
	switch c.my.Existing {
	case spec.ExistingKeep:
		return nil
	case spec.ExistingTruncate:
		_, err := s.exec(ctx, "TRUNCATE TABLE "+t.name)
		return err
	case spec.ExistingRefuse:
	}
	found, err := s.query(ctx, "SELECT EXISTS (SELECT 1 FROM "+t.name+")")
	if err != nil || found[0].text(0) == "0" {
		return err
	}
	return fault.New(fault.SinkNotEmpty, at.String(), "it was there before the job's first row for it")
}

// column is one column of a table that exists.
type column struct {
	Name    string
	SQLType string // plain, see plainType
	// Declared is the type with its character set and collation, for a column of a temporary table that is to have the same.
	Declared  string
	Collation string // of text
	Required  bool   // NOT NULL without a default
	Generated bool
}

// relation is a table that exists.
type relation struct {
	engine  string
	columns map[string]column
	// unique lists the column sets of unique indexes on whole columns, sorted; indexes counts all unique ones.
	unique  [][]string
	indexes int
}

// examine reads a table from the catalog; nil when it is not there.
func examine(ctx context.Context, s *session, database, name string) (*relation, error) {
	where := " WHERE table_schema = " + text(database) + " AND table_name = " + text(name)
	found, err := s.query(ctx, "SELECT coalesce(engine, table_type) FROM information_schema.tables"+where)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	r := &relation{engine: found[0].text(0), columns: make(map[string]column)}
	found, err = s.query(ctx, "SELECT column_name, column_type, is_nullable, column_default, extra, character_set_name, collation_name "+
		"FROM information_schema.columns"+where)
	if err != nil {
		return nil, err
	}
	for _, f := range found {
		extra := strings.ToLower(f.text(4))
		c := column{
			Name: f.text(0), SQLType: plainType(f.text(1), s.maria), Declared: f.text(1), Collation: f.text(6),
			Required:  f.text(2) == "NO" && f.null(3) && !strings.Contains(extra, "auto_increment"),
			Generated: strings.Contains(extra, "virtual generated") || strings.Contains(extra, "stored generated"),
		}
		if !f.null(5) {
			c.Declared += " CHARACTER SET " + f.text(5) + " COLLATE " + c.Collation
		}
		r.columns[c.Name] = c
	}
	found, err = s.query(ctx, "SELECT index_name, column_name, sub_part FROM information_schema.statistics"+where+
		" AND non_unique = 0 ORDER BY index_name, seq_in_index")
	if err != nil {
		return nil, err
	}
	indexes, partial := make(map[string][]string), make(map[string]bool)
	for _, f := range found {
		indexes[f.text(0)] = append(indexes[f.text(0)], f.text(1))
		partial[f.text(0)] = partial[f.text(0)] || f.null(1) || !f.null(2)
	}
	r.indexes = len(indexes)
	for name, columns := range indexes {
		if !partial[name] {
			slices.Sort(columns)
			r.unique = append(r.unique, columns)
		}
	}
	return r, nil
}

// createSQL makes the table: its columns, and in upsert mode the primary key; nothing else.
func (t *target) createSQL(types []string, s *session) string {
	var lines, key []string
	for i, c := range t.schema.Columns() {
		line := quote(c.Name) + " " + types[i] + " NULL"
		if c.KeyPos > 0 && t.mode == spec.Upsert {
			line = quote(c.Name) + " " + types[i] + " NOT NULL"
		}
		lines = append(lines, line)
	}
	switch t.mode {
	case spec.Changelog:
		for _, c := range changeColumns {
			lines = append(lines, quote(c.name)+" "+c.sqlType+" NULL")
		}
	case spec.Upsert:
		for _, i := range t.schema.Key() {
			key = append(key, quote(t.schema.Column(i).Name))
		}
		lines = append(lines, "PRIMARY KEY ("+strings.Join(key, ", ")+")")
	case spec.Append:
	}
	return "CREATE TABLE IF NOT EXISTS " + t.name + " (\n\t" + strings.Join(lines, ",\n\t") + "\n)" + s.tableOptions()
}

// checkKey finds the unique index that an upsert needs, and that it tells all keys of the source apart.
func (t *target) checkKey(found *relation, at transact.Place) error {
	t.guarded = found.indexes > 0
	if t.mode != spec.Upsert {
		return nil
	}
	var names, key []string
	for _, i := range t.schema.Key() {
		names, key = append(names, t.schema.Column(i).Name), append(key, t.columns[i].plain)
	}
	wrong := func(why string) error {
		list := strings.Join(names, ", ")
		return fault.New(fault.SinkWrongKey, at.String(), why, "table", t.plain, "key", list)
	}
	sorted := slices.Sorted(slices.Values(key))
	if !slices.ContainsFunc(found.unique, func(u []string) bool { return slices.Equal(u, sorted) }) {
		return wrong("no unique index on exactly (" + strings.Join(names, ", ") + ")")
	}
	for _, i := range t.schema.Key() {
		c := found.columns[t.columns[i].plain]
		if !tellsApart(c.Collation, t.schema.Column(i).Type.Kind) {
			return wrong(fmt.Sprintf("column %s has collation %s, under which keys that differ can be equal", c.Name, c.Collation))
		}
	}
	t.guarded = found.indexes > 1
	return nil
}

// tellsApart reports whether a collation makes no two values of a kind equal. Most binary ones do not see blanks at the end.
func tellsApart(collation string, kind rows.Kind) bool {
	switch {
	case collation == "":
		return true
	case kind == rows.KindText || kind == rows.KindJSON:
		return strings.HasSuffix(collation, "_0900_bin") || strings.HasSuffix(collation, "_nopad_bin")
	}
	return true // what is written there of another kind is digits, or letters of one case
}

// resolve says how each column of the schema is written. Columns of the target that the source does not have are left, as
// long as they may be null; those that the source once had are null in rows that are written now.
func (t *target) resolve(known *core.Known, found *relation, made bool, at transact.Place) error {
	t.columns, t.retained = nil, nil
	for _, c := range t.schema.Columns() {
		tc := targetColumn{key: c.KeyPos > 0}
		if i := known.Was(c); i >= 0 && known.Columns[i].Target != "" {
			have, there := found.columns[known.Columns[i].Target]
			if there {
				tc.plain, tc.name, tc.sqlType, tc.declared = have.Name, quote(have.Name), have.SQLType, have.Declared
			}
		}
		if tc.name == "" && tc.key {
			return fault.New(fault.SinkMissingColumn, at.String(), "column "+c.Name+" of the key is not at the target",
				"table", t.plain, "column", c.Name, "type", typeOf(c.Type))
		}
		t.columns = append(t.columns, tc)
	}
	ours := func(name string) bool {
		return slices.ContainsFunc(t.columns, func(c targetColumn) bool { return c.plain == name })
	}
	for _, k := range known.Columns {
		if _, there := found.columns[k.Target]; k.Gone && there && !ours(k.Target) {
			t.retained = append(t.retained, quote(k.Target))
		}
	}
	for _, c := range changeColumns {
		if t.mode == spec.Changelog && ours(c.name) {
			return fault.New(fault.SinkNameClash, at.String(), "column "+c.name+" of the source has the name of a changelog column")
		}
	}
	for name, c := range found.columns {
		if c.Required && !made && known.Holds(name) < 0 {
			return fault.New(fault.SinkConstraint, at.String(), fmt.Sprintf("column %s is NOT NULL and the source does not have it", name),
				"table", t.plain, "constraint", "NOT NULL of "+name)
		}
	}
	return nil
}
