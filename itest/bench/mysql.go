package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/client"
	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/itest/mesh"
)

// MySQLConfig says how much is measured, and by how many readers a table is copied.
type MySQLConfig struct {
	// Rows are those of the log, CopyRows those of the table that is copied, Runs the runs of each kind. A copy has costs that do not
	// grow with its table, of two seconds or so: few rows would measure these.
	Rows, CopyRows, Runs int
	// Readers are those of the copies, in turn.
	Readers []int
}

// The table whose changes the log has, and the one that is copied.
const (
	logged     = "bench.wide"
	copiedFrom = "bench.many"
)

// mysqlSchema is a table of 10 columns of common types, another like it, and ten numbers to make rows of.
var mysqlSchema = []string{
	"CREATE DATABASE bench", "CREATE DATABASE beside",
	`CREATE TABLE bench.wide (
		id       bigint PRIMARY KEY,
		customer int NOT NULL,
		account  bigint NOT NULL,
		amount   decimal(12,2) NOT NULL,
		ratio    double NOT NULL,
		active   tinyint(1) NOT NULL,
		placed   timestamp NOT NULL,
		name     varchar(100) NOT NULL,
		note     text,
		due      date NOT NULL
	) DEFAULT CHARSET utf8mb4`,
	"CREATE TABLE bench.many LIKE bench.wide",
	"CREATE TABLE beside.digits (d bigint PRIMARY KEY)",
	"INSERT INTO beside.digits VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)",
}

// mysqlFill inserts into %[3]s the thousand rows behind %[1]d, up to %[2]d.
const mysqlFill = `INSERT INTO %[3]s SELECT i, i MOD 10007, i * 7919, (i MOD 1000000) / 100, i / 7, i MOD 3 = 0,
	timestamp '2026-01-01 00:00:00' + INTERVAL i SECOND, concat('customer number ', i MOD 10007),
	if(i MOD 4 > 0, concat('a note of about forty letters, number ', i), NULL), date '2026-01-01' + INTERVAL i MOD 365 DAY
	FROM (SELECT %[1]d + 1 + x.d + 10 * y.d + 100 * z.d AS i FROM beside.digits x, beside.digits y, beside.digits z) every WHERE i <= %[2]d`

// mysqlDigest is asked of both ends: how many rows there are, and sums of what is in them.
const mysqlDigest = "SELECT concat_ws(' ', count(*), sum(id), sum(customer), sum(account), sum(amount), sum(length(name)), sum(length(note)), min(due)) FROM %s"

// mysqlStand is a source whose log does not change once it is filled, and a target of each kind.
type mysqlStand struct {
	*stand
	cfg MySQLConfig

	server, second *harness.MySQL
	conn           *client.Conn
}

// prepared is a job that stands at the beginning of the log; its process does not run.
type prepared struct {
	*product

	check func() // whether the target has what the source has
}

// MySQL measures the log of MySQL, its copy and the way into both kinds of tables.
func MySQL(tb testing.TB, cfg MySQLConfig) *MySQLReport {
	tb.Helper()
	s := &mysqlStand{stand: &stand{TB: tb}, cfg: cfg}
	s.server, s.second = harness.StartMySQL(tb, harness.MySQLConfig{Durable: true}), harness.StartMySQL(tb, harness.MySQLConfig{Durable: true})
	s.target = harness.StartPostgres(tb, harness.PostgresConfig{Durable: true})
	defer s.open()()
	r := &MySQLReport{MySQLConfig: cfg, Server: "MySQL " + s.ask("SELECT version()"), copied: make(map[int][]time.Duration)}
	s.log(r)
	s.copies(r)
	for _, line := range r.lines() {
		tb.Log(line)
	}
	return r
}

// open connects to the source and makes its table.
func (s *mysqlStand) open() (closed func()) {
	s.Helper()
	var err error
	if s.conn, err = s.server.Connect(s.Context(), ""); err != nil {
		s.Fatal(err)
	}
	for _, sql := range mysqlSchema {
		s.run(sql)
	}
	return func() { _ = s.conn.Close() }
}

// fill writes the rows into files of the log of their own, and returns the first of these.
func (s *mysqlStand) fill() (first string) {
	s.Helper()
	s.run("FLUSH BINARY LOGS")
	first = s.status()
	for at := 0; at < s.cfg.Rows; at += 1000 {
		s.run(fmt.Sprintf(mysqlFill, at, s.cfg.Rows, logged))
	}
	s.run("FLUSH BINARY LOGS")
	return first
}

// fillCopied writes the rows that are copied, which nobody reads in the log.
func (s *mysqlStand) fillCopied() {
	s.Helper()
	const together = 100_000 // in a transaction
	s.run("SET SESSION sql_log_bin = 0")
	for at := 0; at < s.cfg.CopyRows; at += 1000 {
		if at%together == 0 {
			s.run("COMMIT")
			s.run("BEGIN")
		}
		s.run(fmt.Sprintf(mysqlFill, at, s.cfg.CopyRows, copiedFrom))
	}
	s.run("COMMIT")
	s.run("SET SESSION sql_log_bin = 1")
	s.run("ANALYZE NO_WRITE_TO_BINLOG TABLE " + copiedFrom)
}

func (s *mysqlStand) run(sql string) {
	s.Helper()
	if _, err := s.conn.Execute(sql); err != nil {
		s.Fatal(err)
	}
}

// ask returns the first cell of a result.
func (s *mysqlStand) ask(sql string) string {
	s.Helper()
	result, err := s.conn.Execute(sql)
	if err != nil {
		s.Fatal(err)
	}
	text, err := result.GetString(0, 0)
	if err != nil {
		s.Fatal(err)
	}
	return text
}

// log reads the same log with the parser that every reader has and with the product into four sinks. The jobs are set up
// before the log is filled, each in a process of its own, so that each has all of it to read.
func (s *mysqlStand) log(r *MySQLReport) {
	s.Helper()
	var jobs [][]*prepared
	for run := range s.cfg.Runs {
		jobs = append(jobs, []*prepared{
			s.prepare(blackhole(), nil),
			s.prepare(parquet(filepath.Join(s.TempDir(), "out")), nil),
			s.prepare(s.toPostgres(run)),
			s.prepare(s.toMySQL(run)),
		})
	}
	first := s.fill()
	for _, kinds := range jobs {
		r.parsed = append(r.parsed, s.parse(first))
		r.dumped = append(r.dumped, s.dump(first))
		for i, into := range []*[]time.Duration{&r.hole, &r.files, &r.postgres, &r.mysql} {
			*into = append(*into, s.drain(kinds[i]))
		}
	}
}

// status is the file that the log is written to.
func (s *mysqlStand) status() string {
	s.Helper()
	return s.ask("SHOW BINARY LOG STATUS")
}

// files are those of the log from one on.
func (s *mysqlStand) files(first string) []string {
	s.Helper()
	result, err := s.conn.Execute("SHOW BINARY LOGS")
	if err != nil {
		s.Fatal(err)
	}
	var names []string
	for i := range result.RowNumber() {
		name, err := result.GetString(i, 0)
		if err != nil {
			s.Fatal(err)
		}
		if name >= first {
			names = append(names, name)
		}
	}
	return names
}

// parse is the baseline: go-mysql's parser over the files, in memory of the operating system, every value decoded and thrown
// away.
func (s *mysqlStand) parse(first string) time.Duration {
	s.Helper()
	dir, n := s.ask("SELECT @@datadir"), 0
	began := time.Now()
	for _, name := range s.files(first) {
		err := replication.NewBinlogParser().ParseFile(filepath.Join(dir, name), 4, func(e *replication.BinlogEvent) error {
			n += rowsOf(e)
			return nil
		})
		if err != nil {
			s.Fatal(err)
		}
	}
	if n != s.cfg.Rows {
		s.Fatalf("the log has %d rows, want %d", n, s.cfg.Rows)
	}
	return time.Since(began)
}

func rowsOf(e *replication.BinlogEvent) int {
	if rows, ok := e.Event.(*replication.RowsEvent); ok && string(rows.Table.Schema)+"."+string(rows.Table.Table) == logged {
		return len(rows.Rows)
	}
	return 0
}

// dump is the same over a replication connection, as every program has it that uses go-mysql.
func (s *mysqlStand) dump(first string) time.Duration {
	s.Helper()
	syncer := replication.NewBinlogSyncer(replication.BinlogSyncerConfig{
		ServerID: 4_000_000_001, Flavor: mysql.MySQLFlavor, Host: "127.0.0.1", Port: uint16(s.server.Port),
		User: s.server.Admin.Name, Password: s.server.Admin.Password,
		Logger: slog.New(slog.DiscardHandler),
	})
	defer syncer.Close()
	began := time.Now()
	events, err := syncer.StartSync(mysql.Position{Name: first, Pos: 4})
	for n := 0; err == nil && n < s.cfg.Rows; {
		var e *replication.BinlogEvent
		if e, err = events.GetEvent(s.Context()); err == nil {
			n += rowsOf(e)
		}
	}
	if err != nil {
		s.Fatal(err)
	}
	return time.Since(began)
}

// prepare has a job follow the log from here on, and ends its process when an epoch says so.
func (s *mysqlStand) prepare(sink string, check func()) *prepared {
	s.Helper()
	p := s.submitMySQL(logged, "200ms", "snapshot: {mode: never}", sink)
	p.committed(0)
	if _, err := p.Members[0].Stop(s.Context()); err != nil {
		s.Fatal(err)
	}
	return &prepared{product: p, check: check}
}

// submitMySQL runs the product with a job over a table.
func (s *mysqlStand) submitMySQL(table, interval, source, sink string) *product {
	s.Helper()
	s.counter++
	p := &product{s: s.stand, job: fmt.Sprintf("run-%d", s.counter)}
	p.Mesh = mesh.Up(s, []string{"SOURCE_URL=" + s.server.URL(""), "TARGET_URL=" + s.target.URL("postgres"), "SECOND_URL=" + s.second.URL("")})
	p.Records = p.Mesh.Records(s)
	spec := strings.Replace(jobSpec(p.job, table, interval, source, sink), "type: postgres\n    url: ${SOURCE_URL}", "type: mysql\n    url: ${SOURCE_URL}", 1)
	file := p.File(s, p.job+".yaml", spec)
	p.began = time.Now()
	p.Must(s, "job", "submit", file)
	return p
}

// drain lets a prepared job go on until everything is committed, and returns how long that took from when the server began to
// send the log.
func (s *mysqlStand) drain(p *prepared) time.Duration {
	s.Helper()
	if err := p.Members[0].Start(s.Context()); err != nil {
		s.Fatal(err)
	}
	p.Records = p.Mesh.Records(s)
	began := s.dumping(p)
	took := p.committed(s.cfg.Rows).Sub(began)
	if p.check != nil {
		p.check()
	}
	p.stop()
	return took
}

// dumping waits until the server sends the log to somebody.
func (s *mysqlStand) dumping(p *prepared) time.Time {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), settle)
	defer cancel()
	for {
		if s.ask("SELECT count(*) FROM performance_schema.processlist WHERE COMMAND LIKE 'Binlog Dump%'") != "0" {
			return time.Now()
		}
		err := harness.Pause(ctx, 2*time.Millisecond)
		select {
		case <-p.Members[0].Done():
			err = cmp.Or(err, errors.New("the process has ended"))
		default:
		}
		if err != nil {
			s.Fatalf("wait for the log to be read: %v; end of the process's log:\n%s", err, p.Members[0].LogTail(4<<10))
		}
	}
}

// toPostgres is a sink and what compares it.
func (s *mysqlStand) toPostgres(run int) (sink string, check func()) {
	schema := fmt.Sprintf("run_%d", run)
	return "    type: postgres\n    url: ${TARGET_URL}\n    schema: " + schema, func() {
		s.Helper()
		got, err := harness.Value[string](s.Context(), s.target, "postgres", fmt.Sprintf(mysqlDigest, schema+".wide"))
		s.same(got, err)
	}
}

func (s *mysqlStand) toMySQL(run int) (sink string, check func()) {
	database := fmt.Sprintf("run_%d", run)
	return "    type: mysql\n    url: ${SECOND_URL}\n    database: " + database, func() {
		s.Helper()
		got, err := s.second.Text(s.Context(), "", fmt.Sprintf(mysqlDigest, database+".wide"))
		s.same(got, err)
	}
}

// same holds a target's digest against the source's: speed without the rows would be nothing.
func (s *mysqlStand) same(got string, err error) {
	s.Helper()
	if want := s.ask(fmt.Sprintf(mysqlDigest, logged)); err != nil || got != want {
		s.Fatalf("the target has %q (%v), the source %q", got, err, want)
	}
}

// copies copies the table into a blackhole, by one reader and by several.
func (s *mysqlStand) copies(r *MySQLReport) {
	s.Helper()
	s.fillCopied()
	for range s.cfg.Runs {
		r.selected = append(r.selected, s.selectAll())
		for _, readers := range s.cfg.Readers {
			p := s.submitMySQL(copiedFrom, "1s", fmt.Sprintf("readers: %d\n    snapshot: {mode: initial, chunk_rows: %d}", readers, chunkRows), blackhole())
			r.copied[readers] = append(r.copied[readers], p.committed(s.cfg.CopyRows).Sub(p.began))
			p.stop()
		}
	}
}

// selectAll is the baseline of a copy: one session, the rows as text, thrown away by the driver.
func (s *mysqlStand) selectAll() time.Duration {
	s.Helper()
	conn, err := s.server.Connect(s.Context(), "bench")
	if err != nil {
		s.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	var result mysql.Result
	n, began := 0, time.Now()
	err = conn.ExecuteSelectStreaming("SELECT * FROM "+copiedFrom, &result, func([]mysql.FieldValue) error { n++; return nil }, nil)
	if err != nil || n != s.cfg.CopyRows {
		s.Fatalf("%d rows were selected: %v", n, err)
	}
	return time.Since(began)
}
