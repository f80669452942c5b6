package postgres

import (
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"weir.dev/weir/pkg/pgcodec"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/spec"
)

// target is the table at the target for one source table in one schema version, examined and fit to take its rows.
type target struct {
	schema *rows.Schema
	mode   spec.Mode
	name   string // quoted, with its schema
	plain  string // for people
	// columns are in the schema's order.
	columns []targetColumn
	// retained are columns, quoted, that the source no longer has and the target keeps: rows written now have null there.
	retained []string
	// notes say what was changed about the columns, for people.
	notes []string
	// direct says that a COPY may go straight into the table: every column takes the binary form that rows have.
	direct bool
	// guarded says that the table has unique or exclusion constraints besides the key: the order of rows may matter.
	guarded bool
	// cascades says that deleting a row to insert it again would have consequences in other tables.
	cascades bool
	// clashes counts epochs for which fresh rows go the careful way, because some turned out not to be fresh.
	clashes int
}

type targetColumn struct {
	name string // quoted; empty when the column is not written
	key  bool
	// stage is the type in staging tables, cast the conversion from there to the column's type; usually none is needed.
	stage, cast string
}

// staging is a temporary table for parts of one shape.
func stagingName(s *rows.Schema, keysOnly bool, n int) string {
	shape := "rows"
	if keysOnly {
		shape = "keys"
	}
	return fmt.Sprintf("pg_temp.weir_%s_%s_%d", shape, s.Fingerprint(), n)
}

// stagingColumn names a column of a staging table by its place, so that no name of a user's is in the way.
func stagingColumn(i int) string { return fmt.Sprintf("c%d", i) }

// stagingDDL creates a staging table. It empties itself when the transaction ends, whichever way.
func stagingDDL(s *rows.Schema, keysOnly, change bool, name string) string {
	var b strings.Builder
	b.WriteString("CREATE TEMPORARY TABLE " + name + " (")
	sep := ""
	column := func(name, sqlType string) {
		b.WriteString(sep + name + " " + sqlType)
		sep = ", "
	}
	for i, c := range s.Columns() {
		if !keysOnly || c.KeyPos > 0 {
			column(stagingColumn(i), pgcodec.StageType(c))
		}
	}
	if change {
		for _, c := range changeColumns {
			column(c.name, c.sqlType)
		}
	}
	b.WriteString(") ON COMMIT DELETE ROWS")
	return b.String()
}

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }

// all lists the indexes of all columns that are written.
func (t *target) all() []int { return t.present(nil) }

// present lists the columns that are written of the rows of a partial part.
func (t *target) present(absent []uint16) []int {
	var want []int
	for i := range t.columns {
		if t.columns[i].name != "" && !containsColumn(absent, i) {
			want = append(want, i)
		}
	}
	return want
}

func containsColumn(list []uint16, i int) bool {
	for _, c := range list {
		if int(c) == i {
			return true
		}
	}
	return false
}

// names are the target's names of columns, with those of a changelog.
func (t *target) names(want []int) []string {
	names := make([]string, 0, len(want)+len(changeColumns))
	for _, i := range want {
		names = append(names, t.columns[i].name)
	}
	if t.mode == spec.Changelog {
		for _, c := range changeColumns {
			names = append(names, c.name)
		}
	}
	return names
}

// value is a staged column as the target's type.
func (t *target) value(i int) string { return "s." + stagingColumn(i) + t.columns[i].cast }

func (t *target) values(want []int) []string {
	values := make([]string, 0, len(want)+len(changeColumns))
	for _, i := range want {
		values = append(values, t.value(i))
	}
	if t.mode == spec.Changelog {
		for _, c := range changeColumns {
			values = append(values, "s."+c.name)
		}
	}
	return values
}

// keyMatch joins the target as t and a staging table as s by key.
func (t *target) keyMatch() string {
	var on []string
	for _, i := range t.schema.Key() {
		on = append(on, "t."+t.columns[i].name+" = "+t.value(i))
	}
	return strings.Join(on, " AND ")
}

// changes lists the assignments of the columns outside the key.
func (t *target) changes(want []int, value func(i int) string) []string {
	var set []string
	for _, i := range want {
		if !t.columns[i].key {
			set = append(set, t.columns[i].name+" = "+value(i))
		}
	}
	for _, name := range t.retained {
		set = append(set, name+" = NULL")
	}
	return set
}

// deleteSQL removes the rows whose keys are staged.
func (t *target) deleteSQL(staging string) string {
	return "DELETE FROM " + t.name + " t USING " + t.sorted(staging) + " s WHERE " + t.keyMatch()
}

// updateSQL changes the rows whose keys are staged, or is empty when there is nothing to change.
func (t *target) updateSQL(staging string, want []int) string {
	set := t.changes(want, t.value)
	if len(set) == 0 {
		return ""
	}
	return "UPDATE " + t.name + " t SET " + strings.Join(set, ", ") + " FROM " + t.sorted(staging) + " s WHERE " + t.keyMatch()
}

// sorted is a staging table in the order of the key, so that pages of the target and its index are met once.
func (t *target) sorted(staging string) string {
	var key []string
	for _, i := range t.schema.Key() {
		key = append(key, stagingColumn(i))
	}
	return "(SELECT * FROM " + staging + " ORDER BY " + strings.Join(key, ", ") + ")"
}

// insertSQL inserts staged rows. In upsert mode it replaces rows with the same key; with missing it passes over keys that
// exist, which an UPDATE has taken care of.
func (t *target) insertSQL(staging string, missing bool) string {
	all := t.all()
	names, values := t.names(all), t.values(all)
	for _, name := range t.retained {
		names, values = append(names, name), append(values, "NULL")
	}
	sql := "INSERT INTO " + t.name + " (" + strings.Join(names, ", ") + ") OVERRIDING SYSTEM VALUE SELECT " +
		strings.Join(values, ", ") + " FROM "
	if t.mode != spec.Upsert {
		return sql + staging + " s"
	}
	sql += t.sorted(staging) + " s"
	if missing {
		sql += " WHERE NOT EXISTS (SELECT FROM " + t.name + " t WHERE " + t.keyMatch() + ")"
	}
	var key []string
	for _, i := range t.schema.Key() {
		key = append(key, t.columns[i].name)
	}
	sql += " ON CONFLICT (" + strings.Join(key, ", ") + ") DO "
	set := t.changes(all, func(i int) string { return "excluded." + t.columns[i].name })
	if len(set) == 0 {
		return sql + "NOTHING"
	}
	return sql + "UPDATE SET " + strings.Join(set, ", ")
}
