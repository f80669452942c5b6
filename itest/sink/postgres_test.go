package sink_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"weir.dev/weir/itest/drive"
	"weir.dev/weir/itest/harness"
	"weir.dev/weir/pkg/config"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/sink/sinktest"
	"weir.dev/weir/pkg/spec"
)

func TestPostgresConformance(t *testing.T) {
	t.Parallel()
	for mode, open := range fixtures(t) {
		t.Run(string(mode), func(t *testing.T) { sinktest.Run(t, open) })
	}
}

// Random histories in each mode. To look for more: -run TestRandomHistory -seeds 100 -steps 200.
func TestRandomHistory(t *testing.T) {
	t.Parallel()
	for mode, open := range fixtures(t) {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			histories.Run(t, open)
		})
	}
}

var histories = sinktest.HistoryFlags(1, 1, 60)

// fixtures open a database of its own for each case: sessions of one job end each other.
func fixtures(t *testing.T) map[spec.Mode]func(t *testing.T) sinktest.Fixture {
	t.Helper()
	pg := harness.StartPostgres(t, harness.PostgresConfig{})
	var databases atomic.Int64
	all := make(map[spec.Mode]func(t *testing.T) sinktest.Fixture)
	for _, mode := range []spec.Mode{spec.Upsert, spec.Changelog, spec.Append} {
		all[mode] = func(t *testing.T) sinktest.Fixture {
			t.Helper()
			db := fmt.Sprintf("suite%d", databases.Add(1))
			if err := pg.CreateDatabase(t.Context(), db); err != nil {
				t.Fatal(err)
			}
			tiny := 1000
			if mode != spec.Upsert {
				tiny = 100
			}
			return sinktest.Fixture{
				TinyEpochs: tiny,
				Connector:  drive.Connector(t, "postgres"), Resolve: drive.Resolve, Truncates: true,
				Spec: spec.Sink{Name: "warehouse", Type: "postgres", Mode: mode, Config: &spec.PostgresSink{
					URL: config.NewSecret(pg.URL(db)), Schema: "Weir target", Table: "{table}",
					Allow: []spec.Allowance{spec.AllowTruncate},
				}},
				Read:   reader(t, pg, db, mode),
				Poison: poisoner(pg, db),
			}
		}
	}
	return all
}

// poisoner makes a table refuse what is poisonous by a constraint.
func poisoner(pg *harness.Postgres, db string) func(testing.TB, rows.TableID) func() {
	return func(tb testing.TB, id rows.TableID) func() {
		tb.Helper()
		_, name, _ := strings.Cut(string(id), ".")
		do := func(sql string) {
			conn, err := pg.Connect(tb.Context(), db)
			if err == nil {
				defer conn.Close(context.WithoutCancel(tb.Context()))
				_, err = conn.Exec(tb.Context(), "ALTER TABLE "+pgx.Identifier{"Weir target", name}.Sanitize()+sql)
			}
			if err != nil {
				tb.Fatal(err)
			}
		}
		do(fmt.Sprintf(" ADD CONSTRAINT harmless CHECK (amount <> %d)", sinktest.Poisonous))
		return func() { do(" DROP CONSTRAINT harmless") }
	}
}

// reader reads a target table as text, changes in the order of the source.
func reader(t *testing.T, pg *harness.Postgres, db string, mode spec.Mode) func(testing.TB, rows.TableID) []sinktest.Row {
	t.Helper()
	conn, err := pg.Connect(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.WithoutCancel(t.Context())) })
	return func(tb testing.TB, id rows.TableID) []sinktest.Row {
		tb.Helper()
		_, name, _ := strings.Cut(string(id), ".")
		table := pgx.Identifier{"Weir target", name}
		var there bool
		if err := conn.QueryRow(tb.Context(), "SELECT to_regclass($1) IS NOT NULL", table.Sanitize()).Scan(&there); err != nil {
			tb.Fatal(err)
		}
		if !there {
			return nil
		}
		sql := "SELECT * FROM " + table.Sanitize()
		if mode == spec.Changelog {
			sql += " ORDER BY _epoch, _seq"
		}
		found, err := conn.Query(tb.Context(), sql, pgx.QueryExecModeSimpleProtocol) // columns come and go
		if err != nil {
			tb.Fatal(err)
		}
		defer found.Close()
		var out []sinktest.Row
		var columns []string
		for _, f := range found.FieldDescriptions() {
			columns = append(columns, f.Name)
		}
		for found.Next() {
			cells := make([]*string, len(columns))
			for i, raw := range found.RawValues() {
				if raw != nil {
					text := string(raw)
					cells[i] = &text
				}
			}
			out = append(out, drive.CellsOf(tb, columns, cells))
		}
		if err := found.Err(); err != nil {
			tb.Fatal(err)
		}
		return out
	}
}
