package iceberg

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/itest/mesh"
)

const jobSpec = `apiVersion: weir/v1
job: lake
epoch: {interval: 200ms, timeout: 10s}
restart: {backoff: 100ms, cap: 1000}
sources:
  db: {type: %s, url: "${SOURCE_URL}", tables: [%s], snapshot: {mode: initial}, before: true}
sinks:
  lake:
    from: [db]
    type: iceberg
    mode: upsert
    writers: 2
    warehouse: %s
    catalog: ${CATALOG_URL}
    namespace: shop
    changelog: "{table}_changes"
    partition: [day, bucket(4)]
%s`

// copied is how many rows the source has when the job starts.
const copied = 500

// source is a database with the table that flows.
type source interface {
	// do runs a statement and returns how many rows it changed.
	do(t *testing.T, sql string) int
	// lines are the table's rows by key: key, name, hundredths of the price and tag.
	lines(t *testing.T) []string
}

// scene is a flow from a database to Iceberg tables whose catalog is in PostgreSQL.
type scene struct {
	source  source
	catalog *harness.Postgres
	mesh    *mesh.Mesh
	judge   judge
	images  map[string]int // of changes made so far, by operation
	kills   int
}

// flow says what flows where.
type flow struct {
	kind, url, tables string // of the source
	reader            mesh.Role
	warehouse, more   string // of the sink
}

func start(t *testing.T, from source, catalog *harness.Postgres, j judge, f flow) *scene {
	t.Helper()
	l := &scene{source: from, catalog: catalog, judge: j, images: map[string]int{"1": copied}}
	l.mesh = mesh.Start(t, mesh.Config{
		Roles: []mesh.Role{mesh.Coordinator, f.reader, mesh.Sink},
		Env:   []string{"SOURCE_URL=" + f.url, "CATALOG_URL=" + catalog.URL("postgres")},
	})
	l.mesh.Submit(t, "lake", fmt.Sprintf(jobSpec, f.kind, f.tables, f.warehouse, f.more))
	l.mesh.CaughtUp(t, "lake") // a change before the copy would be part of it
	return l
}

// change makes n rounds of transactions and counts the images that they have.
func (l *scene) change(t *testing.T, round, n int) {
	t.Helper()
	for i := range n {
		id := 1000*(round+1) + i
		l.images["2"] += l.source.do(t, fmt.Sprintf("INSERT INTO goods SELECT %d, 'new', %d.25, tag, seen FROM goods WHERE id = 1", id, i))
		k := l.source.do(t, fmt.Sprintf("UPDATE goods SET name = 'changed %d', price = price + 1 WHERE id = %d", id, 1+(round*n+i)%200))
		l.images["3"] += k
		l.images["4"] += k
		l.images["5"] += l.source.do(t, fmt.Sprintf("DELETE FROM goods WHERE id = %d", 201+round*n+i))
		// A key change is a delete and an insert.
		k = l.source.do(t, fmt.Sprintf("UPDATE goods SET id = id + 100000 WHERE id = %d", 400+round*n+i))
		l.images["5"] += k
		l.images["2"] += k
	}
}

// metadata is the file that the catalog points at.
func (l *scene) metadata(t *testing.T, table string) string {
	t.Helper()
	return one(t, l.catalog, "SELECT metadata_location FROM iceberg_tables WHERE table_namespace = 'shop' AND table_name = '"+table+"'")[0]
}

func one(t *testing.T, pg *harness.Postgres, sql string) []string {
	t.Helper()
	conn, err := pg.Connect(t.Context(), "postgres")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	found, err := conn.Query(t.Context(), sql)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(found, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

// verdict compares what ClickHouse reads with the source: the rows as they are now, and every image once.
func (l *scene) verdict(t *testing.T) {
	t.Helper()
	l.mesh.CaughtUp(t, "lake")
	want := l.source.lines(t)
	line := "concat(toString(id), '|', name, '|', toString(toInt64(price * 100)), '|', toString(tag))"
	got := l.judge.lines(t, l.metadata(t, "goods"), "SELECT "+line+" FROM TABLE ORDER BY id")
	if !slices.Equal(got, want) {
		t.Errorf("%d rows, the source has %d; first differences: %s", len(got), len(want), differ(got, want))
	}
	changes := l.metadata(t, "goods_changes")
	counts := make(map[string]int)
	for _, row := range l.judge.ask(t, changes, "SELECT toString(_op), toInt32(count()), toInt32(uniqExact(_txn, _ord, _op, id)) FROM TABLE GROUP BY _op") {
		op := row[0].(string)
		counts[op] = int(row[1].(float64))
		if op != "1" && row[1] != row[2] { // copied rows have no place in the log
			t.Errorf("operation %s: %v images, %v of them differ", op, row[1], row[2])
		}
	}
	if fmt.Sprint(counts) != fmt.Sprint(l.images) {
		t.Errorf("images by operation are %v, the source made %v", counts, l.images)
	}
	// The last image of every key, by its place in the log, is its row.
	folded := l.judge.lines(t, changes, `SELECT argMax(`+line+`, (_op != 1, _txn, _ord)) FROM TABLE WHERE _op != 3 GROUP BY id
		HAVING argMax(_op, (_op != 1, _txn, _ord)) != 5 ORDER BY id`)
	if !slices.Equal(folded, want) {
		t.Errorf("the changelog folds to %d rows; first differences: %s", len(folded), differ(folded, want))
	}
	l.mesh.Verify(t, "lake")
}

func differ(got, want []string) string {
	var out []string
	for _, s := range got {
		if !slices.Contains(want, s) {
			out = append(out, "+"+s)
		}
	}
	for _, s := range want {
		if !slices.Contains(got, s) {
			out = append(out, "-"+s)
		}
	}
	return strings.Join(out[:min(6, len(out))], " ")
}

// kill kills processes one after the other while the source is changed.
func (l *scene) kill(t *testing.T, victims ...*harness.Process) {
	t.Helper()
	for i := range harness.Number(t, "ITEST_KILLS", len(victims)) {
		victim, round := victims[i%len(victims)], l.kills
		l.kills++
		l.change(t, round, 20)
		victim.Kill()
		if _, err := victim.Wait(context.WithoutCancel(t.Context())); err == nil {
			t.Fatalf("%s ended by itself", filepath.Base(victim.LogPath()))
		}
		l.change(t, round+100, 5)
		if err := victim.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := harness.Pause(t.Context(), time.Duration(300+200*(round%5))*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFromPostgreSQL copies and follows a table into a directory while every process of the mesh is killed, and NATS too.
func TestFromPostgreSQL(t *testing.T) {
	dir := t.TempDir()
	pg := harness.StartPostgres(t, harness.PostgresConfig{})
	from := startTable(t, pg)
	catalog := harness.StartPostgres(t, harness.PostgresConfig{})
	l := start(t, from, catalog, newJudge(t, dir), flow{
		kind: "postgres", url: pg.URL("postgres"), tables: `"public.*"`, reader: mesh.CDCPostgres, warehouse: dir, more: "    buckets: 4\n",
	})
	l.kill(t, l.mesh.Of(mesh.Sink)[0].Process, l.mesh.Of(mesh.CDCPostgres)[0].Process, l.mesh.Of(mesh.Coordinator)[0].Process, l.mesh.NATS.Process)
	l.verdict(t)
}
