package natssink

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/itest/mesh"
	"weir.dev/weir/pkg/bus"
)

var update = flag.Bool("update", false, "rewrite the goldens")

const postgresSource = `{type: postgres, url: "${SOURCE_URL}", tables: ["public.*"], snapshot: {mode: initial}}`

var postgresTable = []string{
	`CREATE TABLE "The things" (id bigint PRIMARY KEY, ok boolean, small smallint, n integer, r real, d double precision,
		price numeric(12,2), any_size numeric, name text, raw bytea, day date, clock time, ts timestamp, tz timestamptz, u uuid,
		doc jsonb, tags text[], long text);
	ALTER TABLE "The things" ALTER COLUMN long SET STORAGE EXTERNAL`,
	`INSERT INTO "The things" VALUES (1, true, -1, 2147483647, 1.5, 0.1, 12.30, 123456789012345678901234567890.5, E'copied "row"\n', '\x00ff',
		'2026-01-02', '03:04:05.000006', '2026-01-02 03:04:05', '2026-01-02 03:04:05+02', '8e4d1c3a-0000-4000-8000-000000000001',
		'{"b": 1, "a": [null]}', '{x,NULL,"y z"}', NULL)`,
}

var postgresChanges = []string{
	`INSERT INTO "The things" VALUES (9007199254740993, false, 1, 1, 'NaN', '-Infinity', 0.00, 'NaN', '', '', 'infinity', '00:00',
		'-infinity', 'epoch', NULL, 'null', '{}', repeat('long', 1000))`,
	`UPDATE "The things" SET name = 'not sent: long' WHERE id > 1`,
	`UPDATE "The things" SET id = 2 WHERE id = 1`,
	`DELETE FROM "The things" WHERE id = 2`,
	`TRUNCATE "The things"`,
}

const mariadbSource = `{type: mysql, url: "${SOURCE_URL}", tables: ["shop.*"], snapshot: {mode: initial}, before: true}`

var mariadbTable = []string{
	`CREATE TABLE things (id bigint unsigned PRIMARY KEY, tiny tinyint, n int unsigned, f float, d double, price decimal(12,2),
		name varchar(40), kind enum('small','large'), raw varbinary(8), day date, span time(3), dt datetime(6), ts timestamp, doc json)
		CHARACTER SET utf8mb4`,
	`INSERT INTO things VALUES (1, -1, 4294967295, 1.5, 0.1, 12.30, 'copied "row"\n', 'small', x'00ff', '2026-01-02', '-12:34:56.789',
		'2026-01-02 03:04:05.000006', '2026-01-02 03:04:05', '{"b": 1}')`,
}

var mariadbChanges = []string{
	`INSERT INTO things VALUES (18446744073709551615, NULL, NULL, 0, -0.5, 0, '', NULL, '', NULL, '838:59:59', NULL, NULL, NULL)`,
	`UPDATE things SET name = 'changed', kind = 'large' WHERE id = 1`,
	`UPDATE things SET id = 2 WHERE id = 1`,
	`DELETE FROM things WHERE id = 2`,
	`TRUNCATE things`,
}

// TestEvents documents the events in all formats: the goldens are what a reader gets, without what differs from run to run.
func TestEvents(t *testing.T) {
	t.Run("postgres", func(t *testing.T) {
		pg := harness.StartPostgres(t, harness.PostgresConfig{})
		events(t, "postgres", mesh.CDCPostgres, pg.URL("postgres"), postgresSource, postgresTable, postgresChanges,
			func(ctx context.Context, sql string) error { return pg.Exec(ctx, "postgres", sql) })
	})
	t.Run("mariadb", func(t *testing.T) {
		my := harness.StartMariaDB(t, harness.MySQLConfig{})
		if err := my.Exec(t.Context(), "", "CREATE DATABASE shop"); err != nil {
			t.Fatal(err)
		}
		events(t, "mariadb", mesh.CDCMySQL, my.URL("shop"), mariadbSource, mariadbTable, mariadbChanges,
			func(ctx context.Context, sql string) error { return my.Exec(ctx, "shop", sql) })
	})
}

var formats = []string{"debezium", "flat", "cloudevents"}

func events(
	t *testing.T, name string, reader mesh.Role, url, source string, table, changes []string, exec func(context.Context, string) error,
) {
	t.Helper()
	run := func(statements []string) {
		t.Helper()
		for _, sql := range statements {
			if err := exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
		}
	}
	run(table)
	m := mesh.Start(t, mesh.Config{Roles: []mesh.Role{mesh.Coordinator, reader, mesh.Sink}, Env: []string{"SOURCE_URL=" + url}})
	var spec strings.Builder
	fmt.Fprintf(&spec, "apiVersion: weir/v1\njob: golden\nepoch: {interval: 250ms}\nsources:\n  db: %s\nsinks:\n", source)
	for _, f := range formats {
		fmt.Fprintf(&spec, "  %s: {from: [db], type: nats, url: %q, stream: %[1]s, prefix: cdc.%[1]s, format: %[1]s, create: true}\n", f, m.URL)
	}
	m.Submit(t, "golden", spec.String())
	m.CaughtUp(t, "golden")
	run(changes)
	m.CaughtUp(t, "golden")
	m.Verify(t, "golden")
	for _, f := range formats {
		golden(t, filepath.Join("testdata", name+"."+f+".golden"), stored(t, m, f))
	}
}

// stored are the events of a stream in order, each under its subject.
func stored(t *testing.T, m *mesh.Mesh, format string) []byte {
	t.Helper()
	var out bytes.Buffer
	for _, e := range readAll(t, open(t, m.URL, format, "cdc."+format), "cdc."+format) {
		for _, h := range []string{"Weir-Job", "Weir-Life", "Weir-Fence", "Weir-Epoch", "Weir-Index", "Weir-Seq", "Content-Type"} {
			if e.Header.Get(h) == "" {
				t.Errorf("an event of %s has no header %s", e.Key, h)
			}
		}
		body := bytes.ReplaceAll(e.Value, []byte(e.Header.Get("Weir-Life")), []byte("LIFE"))
		fmt.Fprintf(&out, "%s\n%s\n\n", e.Key, settled(body))
	}
	return out.Bytes()
}

// What differs from run to run.
var (
	numbers = regexp.MustCompile(`"(ts_ms|ts_us|lsn|txId|txn|ord|seq)":[1-9][0-9]*`)
	places  = regexp.MustCompile(`"(weirepoch|weirindex|weirseq)":"[0-9]+"`)
	ids     = regexp.MustCompile(`"id":"LIFE-[0-9]+-[0-9]+"`)
	times   = regexp.MustCompile(`"time":"[^"]+"`)
)

func settled(body []byte) []byte {
	body = numbers.ReplaceAll(body, []byte(`"$1":1`))
	body = places.ReplaceAll(body, []byte(`"$1":"1"`))
	body = ids.ReplaceAll(body, []byte(`"id":"LIFE-EPOCH-INDEX"`))
	return times.ReplaceAll(body, []byte(`"time":"2026-01-02T03:04:05Z"`))
}

func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; have\n%s", path, got)
	}
}

// open opens a stream as its readers have it.
func open(t *testing.T, url, stream, prefix string) *bus.Outlet {
	t.Helper()
	conn, err := bus.Connect(t.Context(), bus.Options{URL: url, Name: "reader"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	o, err := conn.OpenOutlet(t.Context(), bus.OutletConfig{Stream: stream, Prefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func readAll(t *testing.T, o *bus.Outlet, prefix string) []bus.Entry {
	t.Helper()
	all, err := o.Read(t.Context(), prefix+".*.*.*", time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
