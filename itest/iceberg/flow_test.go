package iceberg

import (
	"context"
	"fmt"
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
  db: {type: postgres, url: "${SOURCE_URL}", tables: ["public.*"], snapshot: {mode: initial}, before: true}
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
`

const tables = `CREATE TABLE goods (id int PRIMARY KEY, name text, price numeric(12,2), tag uuid, seen timestamptz);
	ALTER TABLE goods REPLICA IDENTITY FULL;
	INSERT INTO goods SELECT i, 'copied ' || i, i / 4.0, gen_random_uuid(), now() FROM generate_series(1, 500) i;`

// lake is a flow from PostgreSQL to Iceberg tables whose catalog is in PostgreSQL too.
type lake struct {
	source, catalog *harness.Postgres
	mesh            *mesh.Mesh
	judge           judge
	images          map[string]int // of changes made so far, by operation
}

func start(t *testing.T) *lake {
	t.Helper()
	dir := t.TempDir()
	l := &lake{
		source: harness.StartPostgres(t, harness.PostgresConfig{}), catalog: harness.StartPostgres(t, harness.PostgresConfig{}),
		judge: newJudge(t, dir), images: map[string]int{"1": 500},
	}
	l.exec(t, tables)
	l.mesh = mesh.Start(t, mesh.Config{
		Roles: []mesh.Role{mesh.Coordinator, mesh.CDCPostgres, mesh.Sink},
		Env:   []string{"SOURCE_URL=" + l.source.URL("postgres"), "CATALOG_URL=" + l.catalog.URL("postgres")},
	})
	l.mesh.Submit(t, "lake", fmt.Sprintf(jobSpec, dir))
	l.mesh.Must(t, "status", "lake", "--wait-for", "running", "--timeout", "60s")
	return l
}

func (l *lake) exec(t *testing.T, sql string) {
	t.Helper()
	if err := l.source.Exec(t.Context(), "postgres", sql); err != nil {
		t.Fatal(err)
	}
}

// change makes n transactions and counts the images that they have.
func (l *lake) change(t *testing.T, round, n int) {
	t.Helper()
	conn, err := l.source.Connect(t.Context(), "postgres")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	for i := range n {
		id := 1000*(round+1) + i
		for op, sql := range map[string]string{
			"insert": fmt.Sprintf("INSERT INTO goods VALUES (%d, 'new', %d.25, gen_random_uuid(), now())", id, i),
			"update": fmt.Sprintf("UPDATE goods SET name = 'changed %d', price = price + 1 WHERE id = %d", id, 1+(round*n+i)%200),
			"delete": fmt.Sprintf("DELETE FROM goods WHERE id = %d", 201+round*n+i),
			// A key change is a delete and an insert.
			"move": fmt.Sprintf("UPDATE goods SET id = id + 100000 WHERE id = %d", 400+round*n+i),
		} {
			tag, err := conn.Exec(t.Context(), sql)
			if err != nil {
				t.Fatal(err)
			}
			k := int(tag.RowsAffected())
			switch op {
			case "insert":
				l.images["2"] += k
			case "update":
				l.images["3"] += k
				l.images["4"] += k
			case "delete":
				l.images["5"] += k
			case "move":
				l.images["5"] += k
				l.images["2"] += k
			}
		}
	}
}

// metadata is the file that the catalog points at.
func (l *lake) metadata(t *testing.T, table string) string {
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
func (l *lake) verdict(t *testing.T) {
	t.Helper()
	l.mesh.CaughtUp(t, "lake")
	want := one(t, l.source, "SELECT id || '|' || name || '|' || trim_scale(price) || '|' || tag FROM goods ORDER BY id")
	got := l.judge.lines(t, l.metadata(t, "goods"), "SELECT concat(toString(id), '|', name, '|', toString(price), '|', toString(tag)) FROM TABLE ORDER BY id")
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
	// The last image of every key is its row.
	folded := l.judge.lines(t, changes, `SELECT concat(toString(id), '|', n, '|', toString(p)) FROM (SELECT id, argMax(name, _seq + if(_op = 1, 0, 1000000000)) AS n,
		argMax(price, _seq + if(_op = 1, 0, 1000000000)) AS p, argMax(_op, _seq + if(_op = 1, 0, 1000000000)) AS o FROM TABLE WHERE _op != 3 GROUP BY id) WHERE o != 5 ORDER BY id`)
	for i, line := range want {
		want[i] = line[:strings.LastIndex(line, "|")]
	}
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

// TestKilledSink copies and follows a table while the sink's process is killed again and again.
func TestKilledSink(t *testing.T) {
	l := start(t)
	sink := l.mesh.Of(mesh.Sink)[0]
	for round := range harness.Number(t, "ITEST_KILLS", 3) {
		l.change(t, round, 20)
		sink.Kill()
		if _, err := sink.Wait(context.WithoutCancel(t.Context())); err == nil {
			t.Fatal("the sink ended by itself")
		}
		l.change(t, round+100, 5)
		if err := sink.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := harness.Pause(t.Context(), time.Duration(300+200*round)*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	l.verdict(t)
}
