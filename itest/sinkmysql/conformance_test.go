package sinkmysql_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-mysql-org/go-mysql/client"

	"weir.dev/weir/itest/drive"
	"weir.dev/weir/itest/harness"
	"weir.dev/weir/pkg/config"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/sink/sinktest"
	"weir.dev/weir/pkg/spec"
)

// servers runs a test against both kinds of servers.
func servers(t *testing.T, test func(t *testing.T, my *harness.MySQL)) {
	t.Helper()
	for name, start := range map[string]func(testing.TB, harness.MySQLConfig) *harness.MySQL{
		"mysql": harness.StartMySQL, "mariadb": harness.StartMariaDB,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, start(t, harness.MySQLConfig{}))
		})
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, my *harness.MySQL) {
		for mode, open := range fixtures(my) {
			t.Run(string(mode), func(t *testing.T) { sinktest.Run(t, open) })
		}
	})
}

// Random histories in each mode. To look for more: -run TestRandomHistory -seeds 100 -steps 200.
func TestRandomHistory(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, my *harness.MySQL) {
		for mode, open := range fixtures(my) {
			t.Run(string(mode), func(t *testing.T) {
				t.Parallel()
				histories.Run(t, open)
			})
		}
	})
}

var histories = sinktest.HistoryFlags(1, 1, 60)

// fixtures open a database of its own for each case, where the ledger is, too.
func fixtures(my *harness.MySQL) map[spec.Mode]func(t *testing.T) sinktest.Fixture {
	var databases atomic.Int64
	all := make(map[spec.Mode]func(t *testing.T) sinktest.Fixture)
	for _, mode := range []spec.Mode{spec.Upsert, spec.Changelog, spec.Append} {
		all[mode] = func(t *testing.T) sinktest.Fixture {
			t.Helper()
			db := fmt.Sprintf("Weir %s %d", mode, databases.Add(1))
			tiny := 200
			if mode != spec.Upsert {
				tiny = 50
			}
			return sinktest.Fixture{
				TinyEpochs: tiny, Connector: drive.Connector(t, "mysql"), Resolve: drive.Resolve, Truncates: true,
				Spec: spec.Sink{Name: "warehouse", Type: "mysql", Mode: mode, Config: &spec.MySQLSink{
					URL: config.NewSecret(my.URL("")), Database: db, Table: "{table}", Allow: []spec.Allowance{spec.AllowTruncate},
				}},
				Read:   reader(t, my, db, mode),
				Poison: poisoner(my, db),
			}
		}
	}
	return all
}

func quote(name string) string { return "`" + name + "`" }

// poisoner makes a table refuse what is poisonous by a constraint.
func poisoner(my *harness.MySQL, db string) func(testing.TB, rows.TableID) func() {
	return func(tb testing.TB, id rows.TableID) func() {
		tb.Helper()
		_, name, _ := strings.Cut(string(id), ".")
		do := func(sql string) {
			if err := my.Exec(tb.Context(), "", "ALTER TABLE "+quote(db)+"."+quote(name)+sql); err != nil {
				tb.Fatal(err)
			}
		}
		do(fmt.Sprintf(" ADD CONSTRAINT harmless CHECK (amount <> %d)", sinktest.Poisonous))
		return func() { do(" DROP CONSTRAINT harmless") }
	}
}

// reader reads a target table as text, changes in the order of the source.
func reader(t *testing.T, my *harness.MySQL, db string, mode spec.Mode) func(testing.TB, rows.TableID) []sinktest.Row {
	t.Helper()
	var conn *client.Conn
	t.Cleanup(func() {
		if conn != nil {
			_ = conn.Close()
		}
	})
	return func(tb testing.TB, id rows.TableID) []sinktest.Row {
		tb.Helper()
		if conn == nil {
			var err error
			if conn, err = my.Connect(tb.Context(), ""); err == nil {
				_, err = conn.Execute("SET NAMES utf8mb4")
			}
			if err != nil {
				tb.Fatal(err)
			}
		}
		_, name, _ := strings.Cut(string(id), ".")
		sql := "SELECT * FROM " + quote(db) + "." + quote(name)
		if mode == spec.Changelog {
			sql += " ORDER BY _epoch, _seq"
		}
		r, err := conn.Execute(sql)
		if err != nil && strings.Contains(err.Error(), "ERROR 1146") {
			return nil
		}
		if err != nil {
			tb.Fatal(err)
		}
		defer r.Close()
		var out []sinktest.Row
		var columns []string
		for _, f := range r.Fields {
			columns = append(columns, string(f.Name))
		}
		for i := range r.RowNumber() {
			cells := make([]*string, len(columns))
			for j := range cells {
				if null, _ := r.IsNull(i, j); null {
					continue
				}
				text, err := r.GetString(i, j)
				if err != nil {
					tb.Fatal(err)
				}
				text = strings.Clone(text)
				cells[j] = &text
			}
			out = append(out, drive.CellsOf(tb, columns, cells))
		}
		return out
	}
}
