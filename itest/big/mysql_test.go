package big

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/itest/mesh"
)

const mysqlSpec = `apiVersion: weir/v1
job: big
epoch: {interval: 100ms, max_transaction_rows: %d}
restart: {backoff: 100ms, cap: 1000}
sources:
  db:
    type: mysql
    url: ${SOURCE_URL}
    tables: ["big.t"]
    snapshot: {mode: never}
sinks:
%s`

// mysqlScene is a [scene] whose source is MySQL or MariaDB.
type mysqlScene struct {
	source *harness.MySQL
	target *harness.Postgres
	*mesh.Mesh
}

func mysqlSetting(t *testing.T, source *harness.MySQL) *mysqlScene {
	t.Helper()
	s := &mysqlScene{source: source, target: harness.StartPostgres(t, harness.PostgresConfig{})}
	s.Mesh = mesh.Start(t, mesh.Config{
		Roles: []mesh.Role{mesh.Coordinator, mesh.CDCMySQL, mesh.Sink},
		Env:   []string{"SOURCE_URL=" + source.URL(""), "TARGET_URL=" + s.target.URL("postgres")},
	})
	if err := source.Exec(t.Context(), "", "CREATE DATABASE big"); err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{
		"CREATE TABLE big.t (n bigint PRIMARY KEY, v text NOT NULL) DEFAULT CHARSET utf8mb4",
		"CREATE DATABASE beside", "CREATE TABLE beside.digits (d bigint PRIMARY KEY)",
		"INSERT INTO beside.digits VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)",
	} {
		s.run(t, sql)
	}
	return s
}

func (s *mysqlScene) run(t *testing.T, sql string) {
	t.Helper()
	if err := s.source.Exec(t.Context(), "big", sql); err != nil {
		t.Fatal(err)
	}
}

// insert writes the rows 1 to rows in one transaction: a digit of n from each of as many tables as n has digits.
func (s *mysqlScene) insert(t *testing.T, rows, repeat int) {
	t.Helper()
	n, from, where := "1", "", ""
	for i, unit := 0, 1; unit < rows; i, unit = i+1, unit*10 {
		n += fmt.Sprintf(" + %d * t%d.d", unit, i)
		from += fmt.Sprintf(", beside.digits t%d", i)
		where = fmt.Sprintf("%d * t%d.d < %d", unit, i, rows)
	}
	s.run(t, fmt.Sprintf("INSERT INTO big.t SELECT n, repeat(sha2(n, 256), %d) FROM (SELECT %s AS n FROM %s WHERE %s) every WHERE n <= %d",
		repeat, n, strings.TrimPrefix(from, ", "), where, rows))
}

// same compares the table with its copy: how many rows there are, and the sum of their digests.
func (s *mysqlScene) same(t *testing.T) {
	t.Helper()
	want, err := s.source.Text(t.Context(), "big",
		"SELECT concat(count(*), ' rows, ', sum(n), ', ', sum(CAST(conv(left(sha2(concat(n, '|', v), 256), 8), 16, 10) AS UNSIGNED))) FROM t")
	if err != nil {
		t.Fatal(err)
	}
	got := ask[string](t, s.target, `SELECT format('%s rows, %s, %s', count(*), sum(n),
		sum(('x' || left(encode(sha256(convert_to(concat(n, '|', v), 'UTF8')), 'hex'), 8))::bit(32)::bigint)) FROM copy.t`)
	if got != want {
		t.Errorf("the copy has %s, want %s", got, want)
	}
}

// A transaction of more rows than max_transaction_rows, from MySQL or MariaDB, whose source is killed inside it: what was
// durable is not read again, although the log can only be entered before a transaction, and every row comes once (O10).
func TestMySQLTransactionKilledInTheMiddle(t *testing.T) {
	for name, start := range map[string]func(testing.TB, harness.MySQLConfig) *harness.MySQL{
		"mysql": harness.StartMySQL, "mariadb": harness.StartMariaDB,
	} {
		t.Run(name, func(t *testing.T) {
			const rows = 100_000
			s := mysqlSetting(t, start(t, harness.MySQLConfig{}))
			s.Submit(t, job, fmt.Sprintf(mysqlSpec, 5000, toCopy+toLog))
			s.insert(t, rows, 4)
			s.run(t, "UPDATE big.t SET v = 'behind it' WHERE n = 1")
			killInside(t, s.Mesh, s.Of(mesh.CDCMySQL)[0], "big.t", rows)
			s.CaughtUp(t, job)
			s.same(t)
			const log = "SELECT format('%s rows, %s of them different', count(*), count(DISTINCT (_op, n))) FROM log.t"
			if got, want := ask[string](t, s.target, log), fmt.Sprintf("%d rows, %[1]d of them different", rows+1); got != want {
				t.Errorf("the changelog has %s, want %s", got, want)
			}
			s.Verify(t, job)
		})
	}
}

// One transaction of any size, from MySQL, needs no more memory than many small ones (O47).
func TestMySQLHugeTransaction(t *testing.T) {
	rows, cut := 100_000, 10_000
	if large() {
		rows, cut = 2_000_000, 1_000_000 // the default
	}
	s := mysqlSetting(t, harness.StartMySQL(t, harness.MySQLConfig{}))
	s.Submit(t, job, fmt.Sprintf(mysqlSpec, cut, toCopy))
	source, sink := watch(t, s.Of(mesh.CDCMySQL)[0].PID()), watch(t, s.Of(mesh.Sink)[0].PID())
	began := time.Now()
	s.insert(t, rows, 2)
	written := time.Since(began)
	s.Must(t, "status", job, "--wait-for", "caught-up", "--timeout", "600s")
	took := time.Since(began)
	median, peak := source.end(t)
	sinkMedian, sinkPeak := sink.end(t)
	t.Logf("%d rows in one transaction, written in %.1f s and committed at the sink after %.1f s; resident memory of the source: "+
		"median %.0f MiB, peak %.0f MiB; of the sink: %.0f and %.0f", rows, written.Seconds(), took.Seconds(), median, peak, sinkMedian, sinkPeak)
	if peak > memoryLimit || sinkPeak > sinkLimit {
		t.Errorf("peaks are %.0f MiB and %.0f MiB", peak, sinkPeak)
	}
	s.same(t)
	s.Verify(t, job)
}
