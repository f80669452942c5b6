package bench

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// snapshotReaders share a copy.
	snapshotReaders = 2
	// chunkRows is the default of snapshot.chunk_rows.
	chunkRows = 8192
	// plannedRows is the table that is planned by arithmetic from what was measured.
	plannedRows = 100_000_000
)

// SnapshotConfig says how large a table is copied, and how often into each sink.
type SnapshotConfig struct{ Rows, Runs int }

// Snapshot measures the copy of a table of 10 columns by two readers into three sinks, against the text that COPY of the
// same rows sends to a client that throws it away. The product's clock starts before the job is submitted.
func Snapshot(tb testing.TB, cfg SnapshotConfig) *SnapshotReport {
	tb.Helper()
	s := newStand(tb, Config{Rows: cfg.Rows, Runs: cfg.Runs})
	s.exec("SELECT pg_drop_replication_slot('" + insertsSlot + "')") // nobody reads the log of the load
	s.exec("VACUUM (ANALYZE, FREEZE) bench.wide")
	r := &SnapshotReport{SnapshotConfig: cfg, Server: "PostgreSQL " + value[string](s, "SELECT current_setting('server_version')")}
	var database string
	for range cfg.Runs {
		r.copied.add(s.copyOut())
		spent, state := s.snapshot("postgres", blackhole())
		r.hole.add(spent)
		r.state = max(r.state, state)
		spent, _ = s.snapshot("postgres", parquet(filepath.Join(s.TempDir(), "out")))
		r.files.add(spent)
		database = s.database()
		spent, _ = s.snapshot(database, upsert())
		r.rows.add(spent)
	}
	s.sameRows(database)
	_, figures, _ := strings.Cut(r.Markdown(), "--- |\n") // a benchmark may log ten lines
	tb.Log("\n" + figures)
	return r
}

// spent is what a copy took: time, and CPU of the source's server and of Weir.
type spent struct{ took, server, weir time.Duration }

// runs are the copies of one kind.
type runs struct{ took, server, weir []time.Duration }

func (r *runs) add(s spent) {
	r.took, r.server, r.weir = append(r.took, s.took), append(r.server, s.server), append(r.weir, s.weir)
}

// serverCPU is what the source's server has used.
func (s *stand) serverCPU() time.Duration {
	s.Helper()
	used, err := s.source.CPU()
	if err != nil {
		s.Fatal(err)
	}
	return used
}

// copyOut is the baseline: one session, the rows as text, thrown away.
func (s *stand) copyOut() spent {
	s.Helper()
	conn, err := s.source.Connect(s.Context(), "postgres")
	if err != nil {
		s.Fatal(err)
	}
	defer func(conn *pgx.Conn) { _ = conn.Close(s.Context()) }(conn)
	began, used := time.Now(), s.serverCPU()
	tag, err := conn.PgConn().CopyTo(s.Context(), io.Discard, "COPY (SELECT * FROM bench.wide) TO STDOUT")
	if err != nil || tag.RowsAffected() != int64(s.Rows) {
		s.Fatalf("copy %d rows: %v", tag.RowsAffected(), err)
	}
	return spent{took: time.Since(began), server: s.serverCPU() - used}
}

// snapshot runs a job that copies the table until all of it is committed. state is what the last epoch holds of all
// subtasks, in bytes.
func (s *stand) snapshot(database, sink string) (_ spent, state int) {
	s.Helper()
	source := fmt.Sprintf("readers: %d\n    snapshot: {mode: initial, chunk_rows: %d}", snapshotReaders, chunkRows)
	used := s.serverCPU()
	p := s.submit("bench.wide", "1s", source, database, sink)
	got := spent{took: p.committed(s.Rows).Sub(p.began), server: s.serverCPU() - used}
	usage, err := p.Members[0].Usage()
	if err != nil {
		s.Fatal(err)
	}
	got.weir = usage.CPU
	h, err := p.Now(s.Context(), p.job)
	if err != nil {
		s.Fatal(err)
	}
	m, err := p.Manifest(s.Context(), p.job, h.Durable.Ref)
	if err != nil {
		s.Fatal(err)
	}
	for _, part := range m.Subtasks {
		state += len(part.State.Inline)
		for _, o := range part.State.Objects {
			state += int(o.Size)
		}
	}
	p.stop()
	return got, state
}

// SnapshotReport is what a copy costs.
type SnapshotReport struct {
	SnapshotConfig

	Server                    string
	copied, hole, files, rows runs
	state                     int
}

// Markdown is the report as docs/bench/ has it.
func (r *SnapshotReport) Markdown() string {
	rate := func(c runs) float64 { return float64(r.Rows) / median(c.took).Seconds() }
	perRow := func(used []time.Duration) float64 { return float64(median(used).Nanoseconds()) / 1e3 / float64(r.Rows) }
	weir := func(c runs) string {
		if used := perRow(c.weir); used > 0 {
			return fmt.Sprintf("%.2f us", used)
		}
		return "" // the baseline has none of it
	}
	line := func(name string, c runs, target string) string {
		return fmt.Sprintf("| %s | %.0f rows/s | %.2f | %.2f us | %s | %s |\n", name, rate(c), rate(c)/rate(r.copied),
			perRow(c.server), weir(c), target)
	}
	verdict := ">= 0.8: met"
	if rate(r.hole) < 0.8*rate(r.copied) {
		verdict = ">= 0.8: **missed**"
	}
	bound := perRow(r.copied.server) / (perRow(r.hole.server) + perRow(r.hole.weir))
	chunks := func(rows int) int { return (rows + chunkRows - 1) / chunkRows }
	perChunk := float64(r.state) / float64(chunks(r.Rows))
	return fmt.Sprintf(`# Benchmark of the copy

<!-- Written by "make bench-snapshot"; do not edit. -->

A table of %d rows of 10 columns, %d readers, chunks of %d rows; %s and `+"`weir up`"+`
on one machine, fsync on. Medians of %d interleaved runs, from before the job is submitted to the commit of the epoch with the
last row.

| copy | rows | of COPY | server, CPU per row | Weir, CPU per row | target |
| --- | --- | --- | --- | --- | --- |
`, r.Rows, snapshotReaders, chunkRows, r.Server, r.Runs) +
		line("`COPY (SELECT ...) TO STDOUT` as text, one session, thrown away", r.copied, "the baseline") +
		line("-> committed epochs, blackhole", r.hole, verdict) +
		line("-> Parquet", r.files, "") +
		line("-> PostgreSQL", r.rows, "") +
		fmt.Sprintf(`
A table of %d rows by arithmetic: %d chunks (here %d). The state of all subtasks in the epoch with the last row is
%d bytes here, %.1f per chunk, so at most %.1f MB there if all of it grew with the chunks. At the rates above it takes %s into
the blackhole, %s to Parquet, %s to PostgreSQL.

The CPU is that of all processes of the source's server, and of `+"`weir up`"+`: readers, NATS server, sink and the rest, from its
start. Of the baseline's client nothing is counted. Where all of it shares one core, the CPU decides: the server's for the
baseline is %.2f of what the copy into the blackhole takes of both, and hardly more can be expected of its rate there. What it is
made of: [snapshot-cpu.md](snapshot-cpu.md).
`, plannedRows, chunks(plannedRows), chunks(r.Rows), r.state, perChunk, perChunk*float64(chunks(plannedRows))/1e6,
			planned(rate(r.hole)), planned(rate(r.files)), planned(rate(r.rows)), bound)
}

func planned(perSecond float64) time.Duration {
	return time.Duration(plannedRows / perSecond * float64(time.Second)).Round(time.Second)
}
