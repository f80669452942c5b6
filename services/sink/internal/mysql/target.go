package mysql

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/spec"
)

// target is the table at the target for one source table in one schema version, examined and fit to take its rows.
type target struct {
	schema *rows.Schema
	mode   spec.Mode
	table  string // its name
	name   string // quoted, with its database
	plain  string // for people
	// columns are in the schema's order.
	columns []targetColumn
	// retained are columns, quoted, that the source no longer has and the target keeps: rows written now have null there.
	retained []string
	// notes say what was changed about the columns, for people.
	notes []string
	// guarded says that the table has unique indexes besides the key: the order of rows may matter, and a duplicate may be
	// another row's.
	guarded bool
}

type targetColumn struct {
	plain, name string // name is quoted; both are empty when the column is not written
	key         bool
	sqlType     string
	// declared is the type of a column of a temporary table that is to compare with this one.
	declared string
}

// staging is a temporary table for rows of one shape: columns of the target by their places, c0 and so on, and for rows that
// moved the parts of the old key, o0 and so on.
type staging struct {
	name    string // with its database, quoted
	ddl     string
	columns []int // of the schema
	moved   bool
}

func stagingColumn(i int) string { return fmt.Sprintf("c%d", i) }
func oldKeyColumn(n int) string  { return fmt.Sprintf("o%d", n) }

// stagingOf describes the n-th temporary table for some columns.
func (t *target) stagingOf(database string, want []int, moved bool, n int, options string) staging {
	lines := []string{"n bigint AUTO_INCREMENT PRIMARY KEY"}
	for _, i := range want {
		lines = append(lines, stagingColumn(i)+" "+t.columns[i].declared+" NULL")
	}
	if moved {
		for k, i := range t.schema.Key() {
			lines = append(lines, oldKeyColumn(k)+" "+t.columns[i].declared+" NULL")
		}
	}
	ddl := " (" + strings.Join(lines, ", ") + ")" + options
	h := fnv.New64a()
	h.Write([]byte(ddl))
	name := quote(database) + "." + quote(fmt.Sprintf("weir_stage_%016x_%d", h.Sum64(), n))
	return staging{name: name, ddl: "CREATE TEMPORARY TABLE " + name + ddl, columns: want, moved: moved}
}

// names are the staging table's own columns, in the order in which rows are written to it.
func (st staging) names(t *target) []string {
	var names []string
	for _, i := range st.columns {
		names = append(names, stagingColumn(i))
	}
	if st.moved {
		for n := range t.schema.Key() {
			names = append(names, oldKeyColumn(n))
		}
	}
	return names
}

// written lists the columns that are written of rows which lack some.
func (t *target) written(absent []uint16) []int {
	var want []int
	for i := range t.columns {
		if t.columns[i].name != "" && !slices.Contains(absent, uint16(i)) {
			want = append(want, i)
		}
	}
	return want
}

// names are the target's names of columns, with those of a changelog.
func (t *target) names(want []int) []string {
	names := make([]string, 0, len(want)+len(changeColumns))
	for _, i := range want {
		names = append(names, t.columns[i].name)
	}
	if t.mode == spec.Changelog {
		for _, c := range changeColumns {
			names = append(names, quote(c.name))
		}
	}
	return names
}

// match joins the target as t and a staging table as s by key.
func (t *target) match() string {
	var on []string
	for _, i := range t.schema.Key() {
		on = append(on, "t."+t.columns[i].name+" = s."+stagingColumn(i))
	}
	return strings.Join(on, " AND ")
}

// changes lists the assignments of the columns outside the key.
func (t *target) changes(prefix string, want []int, value func(i int) string) []string {
	var set []string
	for _, i := range want {
		if !t.columns[i].key {
			set = append(set, prefix+t.columns[i].name+" = "+value(i))
		}
	}
	for _, name := range t.retained {
		set = append(set, prefix+name+" = NULL")
	}
	return set
}

func staged(i int) string { return "s." + stagingColumn(i) }

// insertHead and insertTail are around the rows of an INSERT into the target. In upsert mode it replaces rows with the key.
func (t *target) insertHead() string {
	return "INSERT INTO " + t.name + " (" + strings.Join(t.names(t.written(nil)), ", ") + ") VALUES "
}

func (t *target) insertTail() string {
	if t.mode != spec.Upsert {
		return ""
	}
	set := t.changes("", t.written(nil), func(i int) string { return "VALUES(" + t.columns[i].name + ")" })
	if len(set) == 0 {
		key := t.columns[t.schema.Key()[0]].name
		set = []string{key + " = " + key}
	}
	return " ON DUPLICATE KEY UPDATE " + strings.Join(set, ", ")
}

// deleteSQL removes the rows whose keys are staged.
func (t *target) deleteSQL(st staging) string {
	return "DELETE t FROM " + st.name + " s STRAIGHT_JOIN " + t.name + " t ON " + t.match()
}

// updateSQL changes the rows whose keys are staged, or is empty when there is nothing to change.
func (t *target) updateSQL(st staging, want []int) string {
	set := t.changes("t.", want, staged)
	if len(set) == 0 {
		return ""
	}
	return "UPDATE " + st.name + " s STRAIGHT_JOIN " + t.name + " t ON " + t.match() + " SET " + strings.Join(set, ", ")
}

// missingSQL inserts staged rows whose keys the target does not have.
func (t *target) missingSQL(st staging) string {
	all := t.written(nil)
	values := make([]string, len(all))
	for n, i := range all {
		values[n] = staged(i)
	}
	first := t.columns[t.schema.Key()[0]].name
	return "INSERT INTO " + t.name + " (" + strings.Join(t.names(all), ", ") + ") SELECT " + strings.Join(values, ", ") + " FROM " +
		st.name + " s LEFT JOIN " + t.name + " t ON " + t.match() + " WHERE t." + first + " IS NULL ORDER BY s.n"
}

// completeSQL copies the absent columns of the rows with the staged old keys into the staging table.
func (t *target) completeSQL(st staging, absent []uint16) string {
	var set, on []string
	for _, i := range absent {
		if name := t.columns[i].name; name != "" {
			set = append(set, "s."+stagingColumn(int(i))+" = t."+name)
		}
	}
	if len(set) == 0 {
		set = append(set, "s.n = s.n") // the rows are counted all the same
	}
	for n, i := range t.schema.Key() {
		on = append(on, "t."+t.columns[i].name+" = s."+oldKeyColumn(n))
	}
	return "UPDATE " + st.name + " s STRAIGHT_JOIN " + t.name + " t ON " + strings.Join(on, " AND ") + " SET " + strings.Join(set, ", ")
}
