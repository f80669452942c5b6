package flows

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"weir.dev/weir/itest/copies"
	"weir.dev/weir/itest/harness"
	"weir.dev/weir/itest/mesh"
	"weir.dev/weir/itest/rig"
	"weir.dev/weir/services/weir/verify/audit"
)

const (
	// copyRows is how many rows each of the five tables has at first; ITEST_COPY_ROWS is for longer runs.
	copyRows = 10_000
	// copyKills of processes, in turn of their kinds; ITEST_KILLS is for longer runs.
	copyKills = 8
	// copyRate is transactions a second, each of one to eight changes.
	copyRate = 120
	// bareJob moves the table without a key, which only a changelog can take.
	bareJob = "bare"
)

// copySpec has the job of [rig], so that its ways to wait serve here too.
const copySpec = `apiVersion: weir/v1
job: shop
epoch: {interval: 250ms, timeout: 10s}
restart: {backoff: 100ms, cap: 1000}
sources:
  db:
    type: postgres
    url: ${SOURCE_URL}
    tables: ["goods.by_*"]
    readers: 4
    snapshot: {mode: initial, chunk_rows: 500}
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
    type: postgres
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

// TestKillWhileTablesAreCopied kills processes of every kind, SIGKILL, while four readers on two nodes copy tables that
// are written to before, during and after: in the snapshot, at the hand-over, in the catch-up and in the stream. In the end
// the copy equals the source, row by row, and the changelog has every row once, as read or as change.
func TestKillWhileTablesAreCopied(t *testing.T) {
	seed := rig.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	rows := harness.Number(t, "ITEST_COPY_ROWS", copyRows)
	r := &rig.Rig{
		Source: harness.StartPostgres(t, harness.PostgresConfig{}),
		Target: harness.StartPostgres(t, harness.PostgresConfig{}),
	}
	source, target := connection(t, r.Source), connection(t, r.Target)
	if err := copies.Fill(t.Context(), source, rows); err != nil {
		t.Fatal(err)
	}
	load, err := copies.Open(t.Context(), func(ctx context.Context) (*pgx.Conn, error) {
		return r.Source.Connect(ctx, "postgres")
	}, rows, copyRate, seed)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = load.Close() }) // its error is asked for below
	r.Mesh = mesh.Start(t, mesh.Config{
		Roles: []mesh.Role{mesh.Coordinator, mesh.Coordinator, mesh.CDCPostgres, mesh.CDCPostgres, mesh.Sink, mesh.Sink},
		Env:   []string{"SOURCE_URL=" + r.Source.URL("postgres"), "TARGET_URL=" + r.Target.URL("postgres")},
	})
	r.Mesh.Submit(t, bareJob, bareSpec)
	r.Mesh.Submit(t, rig.Job, copySpec)
	r.Records = r.Mesh.Records(t)

	var names []string
	for _, table := range copies.Keyed() {
		names = append(names, table.Name)
	}
	times := make(map[string][]time.Duration)
	n := harness.Number(t, "ITEST_KILLS", copyKills)
	for i := range n {
		kind := kinds[(i+2)%len(kinds)] // the readers first: what they read is under way
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
	compareCopies(t, r)
	for _, table := range copies.Keyed() {
		audited(t, source, target, "goods_log", table)
	}
	audited(t, source, target, "goods_bare", copies.Bare())
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

func compareCopies(tb testing.TB, r *rig.Rig) {
	tb.Helper()
	var pairs []audit.TablePair
	for _, table := range copies.Keyed() {
		pairs = append(pairs, audit.TablePair{Source: copies.Schema + "." + table.Name, Target: "goods_copy." + table.Name})
	}
	outcomes, err := audit.CompareTables(tb.Context(), audit.CompareConfig{
		SourceURL: r.Source.URL("postgres"), TargetURL: r.Target.URL("postgres"), Tables: pairs, Values: true,
	})
	if err != nil {
		tb.Fatal(err)
	}
	for _, c := range outcomes {
		if !c.Equal() {
			tb.Error(c)
		}
	}
}

func audited(tb testing.TB, source, target *pgx.Conn, schema string, table copies.Table) {
	tb.Helper()
	read, changes, err := copies.Audit(tb.Context(), source, target, schema, table)
	if err != nil {
		tb.Error(err)
	}
	if read == 0 || changes == 0 {
		tb.Errorf("%s: %d rows came as read and %d changes: the copy or the log was not put to the test", table.Name, read, changes)
	}
	tb.Logf("%s: %d rows came as read, %d changes", table.Name, read, changes)
}
