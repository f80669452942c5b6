package sinkmysql_test

import (
	"strings"
	"testing"

	"weir.dev/weir/itest/drive"
	"weir.dev/weir/itest/harness"
	"weir.dev/weir/pkg/config"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/spec"
)

// mysqlSink writes into a database. Tests change what they are about.
func mysqlSink(url, database string) spec.Sink {
	return spec.Sink{Name: "warehouse", Type: "mysql", Mode: spec.Upsert, Config: &spec.MySQLSink{
		URL: config.NewSecret(url), Database: database, Table: "{table}",
	}}
}

// database is a target of [drive.Database].
type database struct {
	my   *harness.MySQL
	name string
}

func (d database) Sink() spec.Sink {
	s := mysqlSink(d.my.URL(""), d.name)
	s.Config.(*spec.MySQLSink).Existing = spec.ExistingKeep
	return s
}

func (d database) Name(table string) string { return quote(d.name) + "." + quote(table) }

func (d database) Exec(tb testing.TB, statements ...string) {
	tb.Helper()
	run(tb, d.my, statements...)
}

func (d database) Show(tb testing.TB, sql string) []string {
	tb.Helper()
	return show(tb, d.my, sql)
}

// people is a table of id and text columns.
func people(t *testing.T, version uint32, texts ...string) *rows.Schema {
	t.Helper()
	columns := []rows.Column{drive.Col("id*", rows.Of(rows.KindInt64), "bigint")}
	for i, name := range texts {
		c := drive.Col(name, rows.Of(rows.KindText), "text")
		c.ID = i + 2
		columns = append(columns, c)
	}
	columns[0].ID = 1
	return drive.Schema(t, "postgres", "shop.people", version, columns...)
}

// show reads a query as lines of text, cells parted by |.
func show(tb testing.TB, my *harness.MySQL, sql string) []string {
	tb.Helper()
	conn, err := my.Connect(tb.Context(), "")
	if err != nil {
		tb.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Execute("SET NAMES utf8mb4"); err != nil { // MariaDB does not know the number that the client asks for
		tb.Fatal(err)
	}
	r, err := conn.Execute(sql)
	if err != nil {
		tb.Fatal(err)
	}
	defer r.Close()
	var out []string
	for i := range r.RowNumber() {
		var cells []string
		for j := range r.ColumnNumber() {
			text := "null"
			if null, _ := r.IsNull(i, j); !null {
				text, _ = r.GetString(i, j)
			}
			cells = append(cells, strings.Clone(text))
		}
		out = append(out, strings.Join(cells, "|"))
	}
	return out
}

func run(tb testing.TB, my *harness.MySQL, statements ...string) {
	tb.Helper()
	for _, sql := range statements {
		if err := my.Exec(tb.Context(), "", sql); err != nil {
			tb.Fatal(err)
		}
	}
}
