package iceberg

import (
	"context"
	"errors"
	"fmt"
	"os"
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

// TestSuite is the conformance suite with servers: locks, zombies and lost sessions of the catalog are those of PostgreSQL, and the
// warehouse is a directory, or a bucket of an S3 server.
func TestSuite(t *testing.T) {
	t.Parallel()
	pg := harness.StartPostgres(t, harness.PostgresConfig{})
	store := harness.StartObjectStore(t, "lake")
	root, err := os.MkdirTemp("", "lake") //nolint:usetesting // the name must need no escaping in a URI
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	for name, w := range map[string]warehouse{
		"directory": {root: root, epochs: 40},
		"bucket": {root: "s3://lake", epochs: 20, s3: spec.IcebergS3{
			Endpoint: config.NewText(store.URL), Region: store.Region,
			AccessKey: config.NewSecret(store.AccessKey), SecretKey: config.NewSecret(store.SecretKey),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w.suite(t, pg, name)
		})
	}
}

// warehouse is where the files of a suite's tables go.
type warehouse struct {
	root   string
	s3     spec.IcebergS3
	epochs int // tiny ones
}

// suite runs all cases, each with a folder and a catalog of its own.
func (w warehouse) suite(t *testing.T, pg *harness.Postgres, name string) {
	t.Helper()
	all, err := sink.Connectors(noop.NewMeterProvider().Meter(""))
	if err != nil {
		t.Fatal(err)
	}
	var cases atomic.Int64
	sinktest.Run(t, func(t *testing.T) sinktest.Fixture {
		t.Helper()
		db := fmt.Sprintf("%s%d", name, cases.Add(1))
		if err := pg.CreateDatabase(t.Context(), db); err != nil {
			t.Fatal(err)
		}
		return sinktest.Fixture{
			Connector: all["iceberg"], Resolve: func(ref string) (string, error) { return ref, nil }, TinyEpochs: w.epochs,
			Spec: spec.Sink{Name: "lake", Type: "iceberg", Mode: spec.Upsert, SchemaChange: spec.Lenient, Config: &spec.IcebergSink{
				Warehouse: config.NewText(w.root + "/" + db), Catalog: config.NewSecret(pg.URL(db)), S3: w.s3,
				Namespace: "shop", Table: "{schema}_{table}", Changelog: "{schema}_{table}_changes",
			}},
			Read: func(tb testing.TB, id rows.TableID) []sinktest.Row {
				tb.Helper()
				return read(tb, pg, db, strings.ReplaceAll(string(id), ".", "_"), w.files)
			},
		}
	})
}

// files opens the warehouse as any engine would.
func (w warehouse) files(ctx context.Context) (iceio.IO, error) {
	return iceio.LoadFS(ctx, map[string]string{
		iceio.S3EndpointURL: w.s3.Endpoint.String(), iceio.S3Region: w.s3.Region,
		iceio.S3AccessKeyID: w.s3.AccessKey.Raw(), iceio.S3SecretAccessKey: w.s3.SecretKey.Raw(),
	}, w.root)
}

// read scans the table that the catalog points at.
func read(tb testing.TB, pg *harness.Postgres, db, name string, files table.FSysF) []sinktest.Row {
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
	t, err := table.NewFromLocation(tb.Context(), table.Identifier{"shop", name}, at, files, nil)
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
