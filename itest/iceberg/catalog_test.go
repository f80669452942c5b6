package iceberg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel/metric/noop"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/pkg/config"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/sink/sinktest"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/sink"
)

// TestCatalogInPostgreSQL is the conformance suite with the catalog in a server: locks, zombies and lost sessions are those of
// PostgreSQL.
func TestCatalogInPostgreSQL(t *testing.T) {
	t.Parallel()
	pg := harness.StartPostgres(t, harness.PostgresConfig{})
	all, err := sink.Connectors(noop.NewMeterProvider().Meter(""))
	if err != nil {
		t.Fatal(err)
	}
	root, err := os.MkdirTemp("", "lake") //nolint:usetesting // the name must need no escaping in a URI
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	var cases atomic.Int64
	t.Run("suite", func(t *testing.T) {
		sinktest.Run(t, func(t *testing.T) sinktest.Fixture {
			t.Helper()
			db := fmt.Sprintf("suite%d", cases.Add(1))
			if err := pg.CreateDatabase(t.Context(), db); err != nil {
				t.Fatal(err)
			}
			return sinktest.Fixture{
				Connector: all["iceberg"], Resolve: func(ref string) (string, error) { return ref, nil }, TinyEpochs: 40,
				Spec: spec.Sink{Name: "lake", Type: "iceberg", Mode: spec.Upsert, SchemaChange: spec.Lenient, Config: &spec.IcebergSink{
					Warehouse: config.NewText(filepath.Join(root, db)), Catalog: config.NewSecret(pg.URL(db)),
					Namespace: "shop", Table: "{schema}_{table}", Changelog: "{schema}_{table}_changes",
				}},
				Read: func(tb testing.TB, id rows.TableID) []sinktest.Row {
					tb.Helper()
					return read(tb, pg, db, strings.ReplaceAll(string(id), ".", "_"))
				},
			}
		})
	})
}

// read scans the table that the catalog points at.
func read(tb testing.TB, pg *harness.Postgres, db, name string) []sinktest.Row {
	tb.Helper()
	conn, err := pg.Connect(tb.Context(), db)
	if err != nil {
		tb.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(tb.Context()))
	var at string
	err = conn.QueryRow(tb.Context(), "SELECT metadata_location FROM iceberg_tables WHERE table_name = $1", name).Scan(&at)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		tb.Fatal(err)
	}
	local := func(context.Context) (iceio.IO, error) { return iceio.LocalFS{}, nil }
	t, err := table.NewFromLocation(tb.Context(), table.Identifier{"shop", name}, at, local, nil)
	if err != nil {
		tb.Fatal(err)
	}
	all, err := t.Scan().ToArrowTable(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	defer all.Release()
	var out []sinktest.Row
	for r := array.NewTableReader(all, 1<<20); r.Next(); {
		rec := r.RecordBatch()
		for i := range int(rec.NumRows()) {
			row := sinktest.Row{Cells: make(map[string]string)}
			for c, f := range rec.Schema().Fields() {
				row.Cells[f.Name] = sinktest.Null
				if rec.Column(c).IsValid(i) {
					row.Cells[f.Name] = rec.Column(c).ValueStr(i)
				}
			}
			out = append(out, row)
		}
	}
	return out
}
