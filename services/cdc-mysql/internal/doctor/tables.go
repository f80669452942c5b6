package doctor

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/preflight"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/cdc-mysql/internal/catalog"
	"weir.dev/weir/services/cdc-mysql/internal/core"
	"weir.dev/weir/services/cdc-mysql/internal/server"
)

// Table is a table that matches the patterns of a source.
type Table struct {
	*catalog.Table

	// NoSelect is why its rows cannot be selected, Unreadable why they cannot be decoded; nil when they can.
	NoSelect, Unreadable error
	// Whole says that the table is copied at once, though it may have a key.
	Whole bool
	// Definition is that of the column that cannot be read, in a form that can; empty when none is known.
	Definition string
	// Unique are the columns of a unique index without nulls of a table that has no key; nil when there is none.
	Unique []string
	// Generated and Invisible are columns of these kinds.
	Generated, Invisible []string
	// Bytes is the server's estimate of the rows, Widest how many bytes the longest column may have.
	Bytes, Widest int64
	// Keys are foreign keys by which the table changes along with another.
	Keys []ForeignKey
}

// ForeignKey is one that acts on its child. Names are quoted, with commas between those of columns.
type ForeignKey struct {
	Name, Columns, Parent, Of string
	// Action is what it does, in SQL: ON DELETE CASCADE.
	Action string
}

// Tables reads what the catalog does not say of tables that were described.
func Tables(ctx context.Context, s *server.Session, list []*Table) error {
	byName := make(map[core.Name]*Table, len(list))
	names := make([]string, 0, len(list))
	for _, t := range list {
		byName[t.Name] = t
		names = append(names, "("+catalog.Text(t.Schema)+", "+catalog.Text(t.Name.Table)+")")
	}
	if len(names) == 0 {
		return nil
	}
	named := " IN (" + strings.Join(names, ", ") + ")"
	find := func(c [][]byte) *Table { return byName[core.Name{Schema: string(c[0]), Table: string(c[1])}] }
	err := s.Query(ctx, "SELECT table_schema, table_name, column_name, extra, coalesce(character_octet_length, 0) FROM information_schema.columns "+
		"WHERE (table_schema, table_name)"+named+" ORDER BY table_schema, table_name, ordinal_position", func(c [][]byte) error {
		t := find(c)
		if t == nil {
			return nil
		}
		extra := strings.ToUpper(string(c[3]))
		if strings.Contains(extra, "VIRTUAL GENERATED") || strings.Contains(extra, "STORED GENERATED") {
			t.Generated = append(t.Generated, string(c[2]))
		}
		if strings.Contains(extra, "INVISIBLE") {
			t.Invisible = append(t.Invisible, string(c[2]))
		}
		var n int64
		_, _ = fmt.Sscan(string(c[4]), &n)
		t.Widest = max(t.Widest, n)
		return nil
	})
	if err != nil {
		return err
	}
	return uniques(ctx, s, named, find)
}

// uniques finds for tables without a key the index that could be it.
func uniques(ctx context.Context, s *server.Session, named string, find func([][]byte) *Table) error {
	indexes := make(map[*Table]map[string][]string)
	unfit := make(map[*Table]map[string]bool)
	err := s.Query(ctx, "SELECT table_schema, table_name, index_name, column_name, sub_part, nullable FROM information_schema.statistics "+
		"WHERE non_unique = 0 AND (table_schema, table_name)"+named+" ORDER BY table_schema, table_name, index_name, seq_in_index", func(c [][]byte) error {
		t := find(c)
		if t == nil || len(t.Key) > 0 {
			return nil
		}
		if indexes[t] == nil {
			indexes[t], unfit[t] = make(map[string][]string), make(map[string]bool)
		}
		name := string(c[2])
		indexes[t][name] = append(indexes[t][name], string(c[3]))
		unfit[t][name] = unfit[t][name] || c[3] == nil || c[4] != nil || string(c[5]) == "YES"
		return nil
	})
	for t, all := range indexes {
		for name, columns := range all {
			if !unfit[t][name] && (t.Unique == nil || slices.Compare(columns, t.Unique) < 0) {
				t.Unique = columns
			}
		}
	}
	return err
}

const quotedName = "`(?:[^`]|``)+`"

var (
	constraint = regexp.MustCompile("(?m)^ *CONSTRAINT (" + quotedName + ") FOREIGN KEY \\((" + quotedName + "(?:, ?" + quotedName + ")*)\\) REFERENCES ((?:" +
		quotedName + "\\.)?" + quotedName + ") \\((" + quotedName + "(?:, ?" + quotedName + ")*)\\)(.*)$")
	action = regexp.MustCompile(`ON (DELETE|UPDATE) (CASCADE|SET NULL)`)
)

// ForeignKeys reads those that act on their child from the statement that makes the table: MariaDB shows the catalog of
// constraints to nobody who may only select.
func ForeignKeys(name core.Name, create string) []ForeignKey {
	var keys []ForeignKey
	for _, m := range constraint.FindAllStringSubmatch(create, -1) {
		actions := action.FindAllString(m[5], -1)
		if len(actions) == 0 {
			continue
		}
		parent := m[3]
		if !strings.Contains(parent, "`.`") {
			parent = core.Quote(name.Schema) + "." + parent
		}
		keys = append(keys, ForeignKey{Name: m[1], Columns: m[2], Parent: parent, Of: m[4], Action: strings.Join(actions, " ")})
	}
	return keys
}

// Plan is what a job wants of its tables.
type Plan struct {
	Where string
	// Copies says that rows are read with SELECT.
	Copies bool
	// Modes are those of the sinks that take the rows.
	Modes []spec.Mode
	// WholeLimit is how large a table may be that is copied at once, in bytes.
	WholeLimit int64
}

// Captured judges the tables that match and can be captured.
func (f *Facts) Captured(p Plan, tables []*Table) []preflight.Finding {
	c := checker{group: p.Where}
	f.selects(&c, tables)
	f.keys(&c, p, tables)
	f.columns(&c, tables)
	f.cascades(&c, tables)
	f.packets(&c, tables)
	return c.findings
}

func (f *Facts) selects(c *checker, tables []*Table) {
	bad := 0
	for _, t := range tables {
		if t.NoSelect == nil {
			continue
		}
		bad++
		c.fail("select", t.String(), t.NoSelect, "without it the server also hides columns of the table",
			preflight.Remedy{SQL: []string{"GRANT SELECT ON " + t.Quoted() + " TO " + f.Account + ";"}})
	}
	if bad == 0 {
		c.ok("select", "account %s may read %s", f.Login, count(len(tables)))
	}
}

func count(n int) string {
	if n == 1 {
		return "1 table"
	}
	return fmt.Sprintf("%d tables", n)
}

func (f *Facts) keys(c *checker, p Plan, tables []*Table) {
	good := true
	for _, t := range tables {
		if t.NoSelect != nil {
			continue
		}
		switch {
		case len(t.Key) == 0 && slices.Contains(p.Modes, spec.Upsert):
			good = false
			c.fail("key", t.String(), fault.New(fault.SinkNoKey, p.Where, "it has no primary key", "table", t.String()), "", f.keyRemedy(t))
		case t.Whole && p.Copies && t.Bytes > p.WholeLimit:
			good = false
			c.fail("keyless_size", t.String(), fault.New(fault.MYKeylessBusy, p.Where,
				fmt.Sprintf("about %d MiB, more than %d MiB, and no key that ranges can be made of", t.Bytes>>20, p.WholeLimit>>20), "table", t.String()), "", f.keyRemedy(t))
		case len(t.Key) == 0:
			good = false
			c.warn("key", t.String(), "it has no primary key", "it is copied at once, in a moment in which nobody writes to it, and equal rows cannot be told apart", f.keyRemedy(t))
		}
	}
	if good {
		c.ok("key", "every table can be read in the way that the job needs")
	}
}

// keyRemedy gives a table a key: that of a unique index, or a number that nobody sees who does not ask for it.
func (f *Facts) keyRemedy(t *Table) preflight.Remedy {
	switch {
	case len(t.Key) > 0:
		return preflight.Remedy{Advice: "The key has only the beginnings of columns, or a type without an order: give the table one on whole columns, of numbers or texts."}
	case t.Unique != nil:
		return preflight.Remedy{SQL: []string{"ALTER TABLE " + t.Quoted() + " ADD PRIMARY KEY (" + list(t.Unique) + ");"}}
	}
	return preflight.Remedy{
		SQL: []string{"ALTER TABLE " + t.Quoted() + " ADD COLUMN weir_key bigint unsigned NOT NULL AUTO_INCREMENT PRIMARY KEY INVISIBLE;"},
		Advice: "Or ADD PRIMARY KEY on columns that tell its rows apart. The statement writes the table anew. " +
			"Before MySQL 8.0.23 leave INVISIBLE out; an INSERT without a list of columns then has to be changed.",
	}
}

func list(names []string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = core.Quote(n)
	}
	return strings.Join(quoted, ", ")
}

func (f *Facts) columns(c *checker, tables []*Table) {
	readable := true
	for _, t := range tables {
		name := t.String()
		if t.Unreadable != nil {
			readable = false
			remedy := preflight.Remedy{Advice: `Leave the table out: tables: ["!` + name + `"].`}
			if t.Definition != "" {
				remedy.SQL = []string{"ALTER TABLE " + t.Quoted() + " MODIFY " + t.Definition + ";"}
			}
			c.fail("types", name, t.Unreadable, "", remedy)
		}
		if len(t.Generated) > 0 {
			c.ok("generated", "%s: %s arrive as values; the target does not generate them", name, strings.Join(t.Generated, ", "))
		}
		if len(t.Invisible) > 0 {
			c.ok("invisible", "%s: %s arrive as other columns do, and are visible at the target", name, strings.Join(t.Invisible, ", "))
		}
	}
	if readable {
		c.ok("types", "every column of %s can be read", count(len(tables)))
	}
}

// unlogged reports whether changes that a foreign key makes are not in the log.
func (f *Facts) unlogged() bool {
	return f.MariaDB || f.Version < 9_06_00 || f.variables["innodb_native_foreign_keys"] == "ON"
}

func (f *Facts) cascades(c *checker, tables []*Table) {
	if !f.unlogged() {
		c.ok("cascades", "what foreign keys change is in the log")
		return
	}
	good := true
	for _, t := range tables {
		for _, k := range t.Keys {
			good = false
			drop := "ALTER TABLE " + t.Quoted() + " DROP FOREIGN KEY " + k.Name + ";"
			add := "ALTER TABLE " + t.Quoted() + " ADD CONSTRAINT " + k.Name + " FOREIGN KEY (" + k.Columns + ") REFERENCES " + k.Parent + " (" + k.Of + ");"
			c.warn("cascades", t.String(), fmt.Sprintf("foreign key %s to %s has %s", k.Name, k.Parent, k.Action),
				"what it changes in "+t.String()+" is not in the log: the target keeps rows that the source has deleted or changed",
				preflight.Remedy{SQL: []string{drop, add}, Advice: "The application then changes the children itself, before the parent. " + f.logsCascades()})
		}
	}
	if good {
		c.ok("cascades", "no foreign key changes rows of captured tables without a word in the log")
	}
}

func (f *Facts) logsCascades() string {
	switch {
	case f.MariaDB:
		return "MySQL logs such changes from 9.6 on, MariaDB does not."
	case f.Version >= 9_06_00:
		return "Or start the server with innodb_native_foreign_keys = OFF: then such changes are logged."
	}
	return "Or upgrade to MySQL 9.6, which logs such changes."
}

func (f *Facts) packets(c *checker, tables []*Table) {
	packet, ok := f.number("max_allowed_packet")
	if !ok || packet >= packetLeast {
		c.ok("max_allowed_packet", "%d MiB", packet>>20)
		return
	}
	for _, t := range tables {
		if t.Widest > packet {
			c.warn("max_allowed_packet", "", fmt.Sprintf("it is %d bytes, and %s has columns for more", packet, t),
				"a larger row cannot be selected, nor sent with the log", preflight.Remedy{
					SQL:    []string{f.set("max_allowed_packet", fmt.Sprint(packetAdvised))},
					Advice: f.keep("max_allowed_packet", fmt.Sprint(packetAdvised)),
				})
			return
		}
	}
	c.ok("max_allowed_packet", "no column can be longer")
}

// Skipped judges tables that match and are not captured.
func (f *Facts) Skipped(where string, tables []*catalog.Table) []preflight.Finding {
	c := checker{group: where}
	for _, t := range tables {
		remedy := preflight.Remedy{SQL: []string{"ALTER TABLE " + t.Quoted() + " ENGINE = InnoDB;"}}
		if !strings.Contains(t.Obstacle, "of engine") {
			remedy = preflight.Remedy{Advice: `Leave the table out: tables: ["!` + t.String() + `"].`}
		}
		c.warn("not_captured", t.String(), "it is "+strings.TrimSuffix(t.Obstacle, ","), "it cannot be copied exactly, so the job leaves it out", remedy)
	}
	return c.findings
}

// Unseen judges what the patterns name and the account is not shown: databases of which it sees only some tables, and tables.
func (f *Facts) Unseen(where string, databases []string, tables []core.Name) []preflight.Finding {
	c := checker{group: where}
	for _, d := range databases {
		c.warn("select", d, "account "+f.Login+" has no SELECT on the whole database", "tables without a right on them are not shown to it, and so not captured",
			preflight.Remedy{SQL: []string{"GRANT SELECT ON " + f.inDatabase(d) + " TO " + f.Account + ";"}})
	}
	for _, t := range tables {
		c.warn("not_captured", t.String(), "account "+f.Login+" is not shown such a table", "it is not there, or the account has no right on it",
			preflight.Remedy{SQL: []string{"GRANT SELECT ON " + t.Quoted() + " TO " + f.Account + ";"}, Advice: "When the table is there; else look at the letter case of the name."})
	}
	return c.findings
}

// Grants is SQL that gives the account the least it needs: on databases, or on everything when everywhere is set. It can be run
// again.
func (f *Facts) Grants(where string, databases []string, everywhere bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "-- %s: account %s reads the log and the tables. Run it as an administrator; it can be run again.\n", where, f.Login)
	fmt.Fprintf(&b, "GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO %s;\n", f.Account)
	if everywhere {
		fmt.Fprintf(&b, "GRANT SELECT ON *.* TO %s;\n", f.Account)
		return b.String()
	}
	for _, d := range databases {
		fmt.Fprintf(&b, "GRANT SELECT ON %s TO %s;\n", f.inDatabase(d), f.Account)
	}
	return b.String()
}
