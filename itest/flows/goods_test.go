package flows

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/itest/mesh"
	"weir.dev/weir/itest/rig"
)

// bareJob moves the table without a key, which only a changelog can take.
const bareJob = "bare"

// goodsSpec has the job of [rig], so that its ways to wait serve here too.
const goodsSpec = `apiVersion: weir/v1
job: shop
epoch: {interval: 250ms, timeout: 10s}
restart: {backoff: 100ms, cap: 1000}
sources:
  db:
    type: %s
    url: ${SOURCE_URL}
    tables: ["goods.by_*"]
    readers: 4
    snapshot: {mode: initial, chunk_rows: %d}
sinks:
  copy:
    from: [db]
    type: postgres
    url: ${TARGET_URL}
    schema: goods_copy
    mode: upsert
    writers: 2
  log:
    from: [db]
    type: postgres
    url: ${TARGET_URL}
    schema: goods_log
    mode: changelog
    writers: 2
`

const bareSpec = `apiVersion: weir/v1
job: bare
epoch: {interval: 500ms, timeout: 10s}
restart: {backoff: 100ms, cap: 1000}
sources:
  db:
    type: %s
    url: ${SOURCE_URL}
    tables: ["goods.bare"]
    readers: 2
    snapshot: {mode: initial}
sinks:
  log:
    from: [db]
    type: postgres
    url: ${TARGET_URL}
    schema: goods_bare
    mode: changelog
`

// goods is a flow whose tables are copied while they are written to, into a PostgreSQL: those with a key into a copy and a
// changelog, the one without into another changelog.
type goods struct {
	*rig.Rig
	target *pgx.Conn
	names  []string // of the tables with a key
	load   load
	rng    *rand.Rand
}

// load writes to the source until it is closed.
type load interface {
	// Applied counts transactions.
	Applied() int64
	Close() error
}

// begin starts the mesh and both jobs. kind is the source's type, and of it are the readers.
func (g *goods) begin(t *testing.T, kind string, readers mesh.Role, url string, chunkRows int) {
	t.Helper()
	t.Cleanup(func() { _ = g.load.Close() }) // its error is asked for by end
	g.Mesh = mesh.Start(t, mesh.Config{
		Roles: []mesh.Role{mesh.Coordinator, mesh.Coordinator, readers, readers, mesh.Sink, mesh.Sink},
		Env:   []string{"SOURCE_URL=" + url, "TARGET_URL=" + g.Target.URL("postgres")},
	})
	g.Mesh.Submit(t, bareJob, fmt.Sprintf(bareSpec, kind))
	g.Mesh.Submit(t, rig.Job, fmt.Sprintf(goodsSpec, kind, chunkRows))
	g.Records = g.Mesh.Records(t)
}

// harm kills processes in turn of their kinds: half of them in the copy, as long as it lasts, the others in the stream.
func (g *goods) harm(t *testing.T, kinds []string, kills int) {
	t.Helper()
	times := make(map[string][]time.Duration)
	n := harness.Number(t, "ITEST_KILLS", kills)
	for i := range n {
		kind := kinds[i%len(kinds)]
		pause := 300 * time.Millisecond
		if i == n/2 {
			g.Mesh.Must(t, "status", rig.Job, "--wait-for", "caught-up", "--timeout", "10m")
		}
		if i >= n/2 {
			pause = 1500 * time.Millisecond // the other half of the kills meet the stream
		}
		moment(t, g.rng, pause)
		head, err := g.Records.Now(t.Context(), rig.Job)
		if err != nil {
			t.Fatal(err)
		}
		victim, name := choose(t, g.Rig, g.rng, kind, head)
		read, changes := copied(t, g.target, g.names)
		killed := kill(t, victim, name)
		moment(t, g.rng, pause)
		if err := victim.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, took := g.Recovered(t, killed, 0)
		times[kind] = append(times[kind], took)
		t.Logf("kill %2d: %-14s in epoch %d, with %d rows and %d changes at the target: durable again after %.2f s",
			i+1, name, head.NextEpoch, read, changes, took.Seconds())
	}
	report(t, times)
}

// end ends the load and waits until both jobs have moved all of it.
func (g *goods) end(t *testing.T) {
	t.Helper()
	g.Recovered(t, time.Now(), 0)
	if err := g.load.Close(); err != nil {
		t.Fatalf("the load itself: %v", err)
	}
	for _, name := range []string{rig.Job, bareJob} {
		g.Mesh.CaughtUp(t, name)
		// The last process to come back may just be given its share of the work.
		g.Mesh.Must(t, "status", name, "--wait-for", "running", "--timeout", "60s")
		g.Mesh.Verify(t, name)
	}
	t.Logf("%d transactions", g.load.Applied())
}

// tested judges what the audit of a table's changelog has found: no fault, and work for the copy as well as for the log.
func tested(tb testing.TB, table string, read, changes int, err error) {
	tb.Helper()
	if err != nil {
		tb.Error(err)
	}
	if read == 0 || changes == 0 {
		tb.Errorf("%s: %d rows came as read and %d changes: the copy or the log was not put to the test", table, read, changes)
	}
	tb.Logf("%s: %d rows came as read, %d changes", table, read, changes)
}

func connection(tb testing.TB, pg *harness.Postgres) *pgx.Conn {
	tb.Helper()
	conn, err := pg.Connect(tb.Context(), "postgres")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = conn.Close(context.WithoutCancel(tb.Context())) })
	return conn
}

// copied is how many rows have come to the changelog as read, and how many changes behind them: the phase
// that a kill meets.
func copied(tb testing.TB, target *pgx.Conn, tables []string) (read, changes int64) {
	tb.Helper()
	for _, table := range tables {
		var there bool
		name := "goods_log." + table
		if err := target.QueryRow(tb.Context(), "SELECT to_regclass($1) IS NOT NULL", name).Scan(&there); err != nil {
			tb.Fatal(err)
		}
		if !there {
			continue
		}
		var r, c int64
		if err := target.QueryRow(tb.Context(), "SELECT count(*) FILTER (WHERE _op = 1), count(*) FROM "+name).Scan(&r, &c); err != nil {
			tb.Fatal(err)
		}
		read, changes = read+r, changes+c-r
	}
	return read, changes
}
