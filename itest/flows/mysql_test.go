package flows

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/itest/mesh"
	"weir.dev/weir/itest/mycopies"
	"weir.dev/weir/itest/rig"
)

const (
	// mysqlRows is how many rows each table of a MySQL or MariaDB source has at first, and mysqlKills how many processes are
	// killed; ITEST_COPY_ROWS and ITEST_KILLS are for longer runs.
	mysqlRows  = 3_000
	mysqlKills = 6
	// mysqlRate is transactions a second, each of one to eight statements.
	mysqlRate = 80
)

// mysqlKinds are the processes that are killed in turn, those at work in the copy first.
var mysqlKinds = []string{string(mesh.CDCMySQL), string(mesh.Sink), "nats", string(mesh.Coordinator)}

const mysqlSpec = `apiVersion: weir/v1
job: shop
epoch: {interval: 250ms, timeout: 10s}
restart: {backoff: 100ms, cap: 1000}
sources:
  db:
    type: mysql
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

const mysqlBareSpec = `apiVersion: weir/v1
job: bare
epoch: {interval: 500ms, timeout: 10s}
restart: {backoff: 100ms, cap: 1000}
sources:
  db:
    type: mysql
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

// TestKillWhileMySQLIsCopied is [TestKillWhileTablesAreCopied] with MySQL as the source, whose snapshots say less about the
// log, and whose text keys are compared otherwise than by their bytes.
func TestKillWhileMySQLIsCopied(t *testing.T) {
	killWhileCopied(t, harness.StartMySQL(t, harness.MySQLConfig{}))
}

// TestKillWhileMySQLByPlaceIsCopied is the same without GTIDs, where places in files are all that there is.
func TestKillWhileMySQLByPlaceIsCopied(t *testing.T) {
	killWhileCopied(t, harness.StartMySQL(t, harness.MySQLConfig{NoGTID: true}))
}

// TestKillWhileMariaDBIsCopied is the same with MariaDB, whose GTIDs are by domain.
func TestKillWhileMariaDBIsCopied(t *testing.T) {
	killWhileCopied(t, harness.StartMariaDB(t, harness.MySQLConfig{}))
}

func killWhileCopied(t *testing.T, source *harness.MySQL) {
	seed := rig.Seed(t)
	rows := harness.Number(t, "ITEST_COPY_ROWS", mysqlRows)
	r := &rig.Rig{Target: harness.StartPostgres(t, harness.PostgresConfig{})}
	target := connection(t, r.Target)
	if err := mycopies.Fill(t.Context(), source, rows); err != nil {
		t.Fatal(err)
	}
	load, err := mycopies.Open(t.Context(), source, rows, mysqlRate, seed)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = load.Close() }) // its error is asked for below
	r.Mesh = mesh.Start(t, mesh.Config{
		Roles: []mesh.Role{mesh.Coordinator, mesh.Coordinator, mesh.CDCMySQL, mesh.CDCMySQL, mesh.Sink, mesh.Sink},
		Env:   []string{"SOURCE_URL=" + source.URL(""), "TARGET_URL=" + r.Target.URL("postgres")},
	})
	r.Mesh.Submit(t, bareJob, mysqlBareSpec)
	r.Mesh.Submit(t, rig.Job, fmt.Sprintf(mysqlSpec, max(100, rows/100))) // chunks enough for kills to fall between them
	r.Records = r.Mesh.Records(t)
	harm(t, r, target, rand.New(rand.NewPCG(seed, 1)))

	r.Recovered(t, time.Now(), 0)
	if err := load.Close(); err != nil {
		t.Fatalf("the load itself: %v", err)
	}
	for _, name := range []string{rig.Job, bareJob} {
		r.Mesh.CaughtUp(t, name)
		// The last process to come back may just be given its share of the work.
		r.Mesh.Must(t, "status", name, "--wait-for", "running", "--timeout", "60s")
		r.Mesh.Verify(t, name)
	}
	t.Logf("%d transactions", load.Applied())
	for _, table := range mycopies.Keyed() {
		if n, err := mycopies.Compare(t.Context(), source, target, "goods_copy", table); err != nil || n == 0 {
			t.Errorf("%d rows of %s: %v", n, table.Name, err)
		}
		auditedMySQL(t, source, target, "goods_log", table)
	}
	auditedMySQL(t, source, target, "goods_bare", mycopies.Bare())
}

// harm kills processes in turn of their kinds: half of them in the copy, as long as it lasts, the others in the stream.
func harm(t *testing.T, r *rig.Rig, target *pgx.Conn, rng *rand.Rand) {
	t.Helper()
	var names []string
	for _, table := range mycopies.Keyed() {
		names = append(names, table.Name)
	}
	times := make(map[string][]time.Duration)
	n := harness.Number(t, "ITEST_KILLS", mysqlKills)
	for i := range n {
		kind := mysqlKinds[i%len(mysqlKinds)]
		pause := 300 * time.Millisecond
		if i == n/2 {
			r.Mesh.Must(t, "status", rig.Job, "--wait-for", "caught-up", "--timeout", "10m")
		}
		if i >= n/2 {
			pause = 1500 * time.Millisecond // the other half of the kills meet the stream
		}
		moment(t, rng, pause)
		head, err := r.Records.Now(t.Context(), rig.Job)
		if err != nil {
			t.Fatal(err)
		}
		victim, name := choose(t, r, rng, kind, head)
		read, changes := copied(t, target, names)
		killed := kill(t, victim, name)
		moment(t, rng, pause)
		if err := victim.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, took := r.Recovered(t, killed, 0)
		times[kind] = append(times[kind], took)
		t.Logf("kill %2d: %-14s in epoch %d, with %d rows and %d changes at the target: durable again after %.2f s",
			i+1, name, head.NextEpoch, read, changes, took.Seconds())
	}
	report(t, times)
}

func auditedMySQL(tb testing.TB, source *harness.MySQL, target *pgx.Conn, schema string, table mycopies.Table) {
	tb.Helper()
	read, changes, err := mycopies.Audit(tb.Context(), source, target, schema, table)
	if err != nil {
		tb.Error(err)
	}
	if read == 0 || changes == 0 {
		tb.Errorf("%s: %d rows came as read and %d changes: the copy or the log was not put to the test", table.Name, read, changes)
	}
	tb.Logf("%s: %d rows came as read, %d changes", table.Name, read, changes)
}
