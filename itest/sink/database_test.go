package sink_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/pkg/config"
	"weir.dev/weir/pkg/spec"
)

// postgresSink writes into schema "out" of a database. Tests change what they are about.
func postgresSink(url string) spec.Sink {
	return spec.Sink{Name: "warehouse", Type: "postgres", Mode: spec.Upsert, Config: &spec.PostgresSink{
		URL: config.NewSecret(url), Schema: "out", Table: "{table}",
	}}
}

// database is a target of [drive.Database].
type database struct {
	pg   *harness.Postgres
	name string
}

// makeDatabase makes one with its schema.
func makeDatabase(t *testing.T, pg *harness.Postgres, name string) database {
	t.Helper()
	if err := pg.CreateDatabase(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	d := database{pg, name}
	d.Exec(t, "CREATE SCHEMA out")
	return d
}

func (d database) Sink() spec.Sink {
	s := postgresSink(d.pg.URL(d.name))
	s.Config.(*spec.PostgresSink).Existing = spec.ExistingKeep
	return s
}

func (d database) Name(table string) string { return "out." + table }

func (d database) Exec(tb testing.TB, statements ...string) {
	tb.Helper()
	for _, sql := range statements {
		if err := d.pg.Exec(tb.Context(), d.name, sql); err != nil {
			tb.Fatal(err)
		}
	}
}

func (d database) Show(tb testing.TB, sql string) []string {
	tb.Helper()
	return show(tb, d.pg, d.name, sql)
}

// show reads a query as lines of text, cells parted by |.
func show(tb testing.TB, pg *harness.Postgres, db, sql string) []string {
	tb.Helper()
	conn, err := pg.Connect(tb.Context(), db)
	if err != nil {
		tb.Fatal(err)
	}
	defer conn.Close(tb.Context())
	found, err := conn.Query(tb.Context(), sql, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		tb.Fatal(err)
	}
	defer found.Close()
	var out []string
	for found.Next() {
		var cells []string
		for _, raw := range found.RawValues() {
			if raw == nil {
				cells = append(cells, "null")
			} else {
				cells = append(cells, string(raw))
			}
		}
		out = append(out, strings.Join(cells, "|"))
	}
	if err := found.Err(); err != nil {
		tb.Fatal(err)
	}
	return out
}
