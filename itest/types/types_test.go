package types

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/itest/mesh"
	"weir.dev/weir/pkg/pgcodec"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/services/weir/verify/audit"
)

var update = flag.Bool("update", false, "rewrite the goldens")

// path is a way of rows into the product.
type path struct {
	name     string
	snapshot string // mode of the source
	before   bool   // rows are there before the job starts
	op       string // of the rows in a changelog
	binary   bool   // only types with a binary form, so that the server is asked for it
}

var paths = []path{
	{name: "log as text", snapshot: "never", op: "insert"},
	{name: "log as binary", snapshot: "never", op: "insert", binary: true},
	{name: "snapshot", snapshot: "initial", before: true, op: "read"},
}

const jobSpec = `apiVersion: weir/v1
job: types
epoch: {interval: 250ms}
sources:
  db:
    type: postgres
    url: ${SOURCE_URL}
    tables: ["m.*"]
    snapshot: {mode: %s}
sinks:
  copy: {from: [db], type: postgres, url: "${TARGET_URL}", schema: copy, mode: upsert}
  lines: {from: [db], type: files, mode: changelog, files: {path: %[2]s/lines, format: jsonl}}
  parquet: {from: [db], type: files, mode: changelog, files: {path: %[2]s/parquet, format: parquet}}
`

// world is the product between two servers, the matrix's tables at the source.
type world struct {
	source, target *harness.Postgres
	mesh           *mesh.Mesh
	dir            string // of the files sinks
}

// start brings the rows into the product by a path, those of the matrix and those of more tables. Changes are made after
// the job has begun.
func start(t *testing.T, p path, moreTables, moreRows, changes string) *world {
	t.Helper()
	w := &world{
		source: harness.StartPostgres(t, harness.PostgresConfig{}), target: harness.StartPostgres(t, harness.PostgresConfig{}),
		dir: t.TempDir(),
	}
	w.exec(t, w.source, preamble)
	w.exec(t, w.target, knownAtTarget)
	var create, insert strings.Builder
	for _, f := range p.families() {
		create.WriteString(f.createSQL())
		insert.WriteString(f.insertSQL())
	}
	create.WriteString(moreTables)
	insert.WriteString(moreRows)
	w.exec(t, w.source, create.String())
	if p.before {
		w.exec(t, w.source, insert.String())
	}
	job := filepath.Join(t.TempDir(), "types.yaml")
	if err := os.WriteFile(job, fmt.Appendf(nil, jobSpec, p.snapshot, w.dir), 0o600); err != nil {
		t.Fatal(err)
	}
	w.mesh = mesh.Up(t, []string{"SOURCE_URL=" + w.source.URL("postgres"), "TARGET_URL=" + w.target.URL("postgres")}, job)
	w.mesh.Must(t, "status", "types", "--wait-for", "running", "--timeout", "60s")
	if !p.before {
		w.exec(t, w.source, insert.String())
	}
	w.exec(t, w.source, changes)
	w.mesh.CaughtUp(t, "types")
	return w
}

func (w *world) exec(t *testing.T, pg *harness.Postgres, sql string) {
	t.Helper()
	if err := pg.Exec(t.Context(), "postgres", sql); err != nil {
		t.Fatalf("%v\n%.400s", err, sql)
	}
}

// O44: every type with its extremes, among them NaN, the infinities, -0, years BC and the last ones there are, is the same by the
// copy and by the log, at the sink and in what a SELECT says; no row of them stops the job.
func TestMatrix(t *testing.T) {
	for _, p := range paths {
		t.Run(p.name, func(t *testing.T) {
			create, insert, changes := keySQL(p.keys())
			tables := keyed(p.keys())
			if !p.binary {
				create, insert, changes = create+toastTables, insert+toastRows, changes+toastChanges
				tables = append(tables, "m.toast")
			}
			w := start(t, p, create, insert, changes)
			w.readAs(t, p)
			for _, f := range p.families() {
				tables = append(tables, f.table())
			}
			w.compare(t, tables)
			w.targetTypes(t)
			conn := w.pinned(t)
			var jsonText, parquetText strings.Builder
			for _, f := range p.families() {
				w.sameAsSelect(t, conn, f, p)
				w.renderJSON(t, &jsonText, f)
				w.renderParquet(t, &parquetText, f)
			}
			if !p.binary {
				harness.Golden(t, *update, "json.golden", jsonText.String())
				harness.Golden(t, *update, "parquet.golden", parquetText.String())
			}
		})
	}
}

// readAs checks in which form the server was asked for the log.
func (w *world) readAs(t *testing.T, p path) {
	t.Helper()
	query, err := harness.Value[string](t.Context(), w.source, "postgres", "SELECT query FROM pg_stat_activity WHERE backend_type = 'walsender'")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(query, "binary 'true'") != p.binary {
		t.Errorf("the log is read by %s", query)
	}
}

func (w *world) compare(t *testing.T, tables []string) {
	t.Helper()
	var pairs []audit.TablePair
	for _, table := range tables {
		pairs = append(pairs, audit.TablePair{Source: table, Target: "copy." + strings.TrimPrefix(table, "m.")})
	}
	outcomes, err := audit.CompareTables(t.Context(), audit.CompareConfig{
		SourceURL: w.source.URL("postgres"), TargetURL: w.target.URL("postgres"), Tables: pairs, Values: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range outcomes {
		if !c.Equal() || c.SourceRows == 0 {
			t.Error(c)
		}
	}
}

// targetTypes checks what the columns of the copy became: built-in types and those the target knows are the source's own,
// the others text.
func (w *world) targetTypes(t *testing.T) {
	t.Helper()
	const columnTypes = `SELECT c.relname || '.' || a.attname, format_type(a.atttypid, a.atttypmod)
		FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = $1 AND a.attnum > 0 AND c.relkind = 'r'`
	read := func(pg *harness.Postgres, schema string) map[string]string {
		conn, err := pg.Connect(t.Context(), "postgres")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(context.WithoutCancel(t.Context()))
		types := make(map[string]string)
		found, err := conn.Query(t.Context(), columnTypes, schema)
		if err != nil {
			t.Fatal(err)
		}
		var name, sqlType string
		if _, err := pgx.ForEachRow(found, []any{&name, &sqlType}, func() error {
			types[name] = sqlType
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return types
	}
	source, target := read(w.source, "m"), read(w.target, "copy")
	other := map[string]string{ // of the source's types that the target has not, or names differently
		"two.mood": "text", `m."odd Type"`: "text", "two.mood[]": "text[]", "m.price": "numeric(10,2)",
		"m.code": "character varying(8)", "m.price[]": "numeric(10,2)[]", "m.ints": "integer[]", "m.grid": "integer[]",
		"m.ints[]": "text", "m.address": "text", "m.person": "text", "m.address[]": "text[]", "citext": "text",
		"citext[]": "text[]", "ltree": "text", "cube": "text", "isbn13": "text", "m.floatrange": "text",
		"m.floatranges": "text", "regclass": "text", "regtype": "text", "regproc": "text", "regrole": "text",
		"regnamespace": "text", "regprocedure": "text", "regconfig": "text", "aclitem": "text", "regclass[]": "text[]",
		"interval day to second(2)": "interval",
	}
	if source["k_hs.k"] == "hstore" { // it is known there, but not its operators: as a key it is text
		source["k_hs.k"] = "text"
	}
	for _, name := range slices.Sorted(maps.Keys(source)) {
		want := source[name]
		if o, ok := other[want]; ok {
			want = o
		}
		if target[name] != want {
			t.Errorf("%s is %s at the source and %s at the target, want %s", name, source[name], target[name], want)
		}
	}
}

// pinned is a connection under the settings that every reader of the product has.
func (w *world) pinned(t *testing.T) *pgconn.PgConn {
	t.Helper()
	cfg, err := pgconn.ParseConfig(w.source.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(cfg.RuntimeParams, pgcodec.Settings())
	conn, err := pgconn.ConnectConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

// sameAsSelect compares the rows that went through the product with those the codecs make of a SELECT, in both forms.
func (w *world) sameAsSelect(t *testing.T, conn *pgconn.PgConn, f family, p path) {
	t.Helper()
	got := make(map[int]line)
	for _, l := range readLines(t, filepath.Join(w.dir, "lines"), f.table()) {
		if l.Op != p.op {
			t.Errorf("%s: a row of op %s", f.table(), l.Op)
		}
		got[l.id(t)] = l
	}
	for _, form := range []pgcodec.Format{pgcodec.Text, pgcodec.Binary} {
		batch := selected(t, conn, f, form)
		if batch.NumRows() != len(got) {
			t.Errorf("%s: %d rows came of %d", f.table(), len(got), batch.NumRows())
		}
		for i := range batch.NumRows() {
			want := parseLine(t, batch.AppendRowJSON(nil, i))
			have := got[want.id(t)]
			if !bytes.Equal(have.Row, want.Row) || !bytes.Equal(have.Special, want.Special) {
				t.Errorf("%s as %c, row %d\n of the %s %.2000s special %.2000s\n of SELECT %.2000s special %.2000s",
					f.table(), form, want.id(t), p.name, have.Row, have.Special, want.Row, want.Special)
			}
		}
	}
}

// codec is what the catalog would say of the i-th column of a SELECT; the first is the id. The result has the base type of
// a domain.
func (f family) codec(i int, d pgconn.FieldDescription) pgcodec.Codec {
	codec := pgcodec.ForOID(d.DataTypeOID, d.TypeModifier, "")
	if i == 0 {
		return codec
	}
	const firstUserOID = 16384
	name := f.columns[i-1].sqlType
	elem, array := strings.CutSuffix(name, "[]")
	switch {
	case name == "int[][]" || name == "m.grid" || name == "m.ints[]":
		return pgcodec.Opaque(name)
	case name == "m.price[]":
		return pgcodec.ArrayOf(pgcodec.ForOID(1700, 10<<16+2+4, ""))
	case array && (d.DataTypeOID >= firstUserOID || elem == "regclass"):
		return pgcodec.ArrayOf(pgcodec.Opaque(elem))
	case d.DataTypeOID >= firstUserOID:
		return pgcodec.Opaque(name)
	}
	return codec
}

// selected reads a family by SELECT; what has no binary form comes as text.
func selected(t *testing.T, conn *pgconn.PgConn, f family, form pgcodec.Format) *rows.Batch {
	t.Helper()
	sql := "SELECT * FROM " + f.table() + " ORDER BY id"
	described, err := conn.Prepare(t.Context(), "", sql, nil)
	if err != nil {
		t.Fatal(err)
	}
	var columns []rows.Column
	var codecs []pgcodec.Codec
	for i, d := range described.Fields {
		codecs = append(codecs, f.codec(i, d))
		columns = append(columns, rows.Column{Name: d.Name, Type: codecs[i].Type(), Source: codecs[i].SourceType(), Nullable: i > 0})
	}
	schema, err := rows.NewSchema(rows.TableID(f.table()), 1, pgcodec.Origin, columns)
	if err != nil {
		t.Fatal(err)
	}
	b := rows.NewBuilder(schema)
	formats, decoders := make([]int16, len(codecs)), make([]pgcodec.Decoder, len(codecs))
	for i, c := range codecs {
		use := pgcodec.Text
		if form == pgcodec.Binary && c.HasBinary() {
			use, formats[i] = pgcodec.Binary, 1
		}
		if decoders[i], err = c.Decoder(b, i, use); err != nil {
			t.Fatal(err)
		}
	}
	result := conn.ExecParams(t.Context(), sql, nil, nil, nil, formats)
	for result.NextRow() {
		for i, cell := range result.Values() {
			if cell == nil {
				b.Null(i)
			} else if err := decoders[i](cell); err != nil {
				t.Fatalf("%s.%s: %v", f.table(), described.Fields[i].Name, err)
			}
		}
		b.EndRow(rows.Meta{Op: rows.OpRead, Ts: rows.NoTs})
	}
	if _, err := result.Close(); err != nil {
		t.Fatal(err)
	}
	batch, err := b.Flush()
	if err != nil {
		t.Fatal(err)
	}
	return batch
}
