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
		r.copied = append(r.copied, s.copyOut())
		took, state := s.snapshot("postgres", blackhole())
		r.hole, r.state = append(r.hole, took), max(r.state, state)
		took, _ = s.snapshot("postgres", parquet(filepath.Join(s.TempDir(), "out")))
		r.files = append(r.files, took)
		database = s.database()
		took, _ = s.snapshot(database, upsert())
		r.rows = append(r.rows, took)
	}
	s.sameRows(database)
	_, figures, _ := strings.Cut(r.Markdown(), "--- |\n") // a benchmark may log ten lines
	tb.Log("\n" + figures)
	return r
}

// copyOut is the baseline: one session, the rows as text, thrown away.
func (s *stand) copyOut() time.Duration {
	s.Helper()
	conn, err := s.source.Connect(s.Context(), "postgres")
	if err != nil {
		s.Fatal(err)
	}
	defer func(conn *pgx.Conn) { _ = conn.Close(s.Context()) }(conn)
	began := time.Now()
	tag, err := conn.PgConn().CopyTo(s.Context(), io.Discard, "COPY (SELECT * FROM bench.wide) TO STDOUT")
	if err != nil || tag.RowsAffected() != int64(s.Rows) {
		s.Fatalf("copy %d rows: %v", tag.RowsAffected(), err)
	}
	return time.Since(began)
}

// snapshot runs a job that copies the table until all of it is committed. state is what the last epoch holds of all
// subtasks, in bytes.
func (s *stand) snapshot(database, sink string) (took time.Duration, state int) {
	s.Helper()
	source := fmt.Sprintf("readers: %d\n    snapshot: {mode: initial, chunk_rows: %d}", snapshotReaders, chunkRows)
	p := s.submit("bench.wide", "1s", source, database, sink)
	took = p.committed(s.Rows).Sub(p.began)
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
	return took, state
}

// SnapshotReport is what a copy costs.
type SnapshotReport struct {
	SnapshotConfig

	Server                    string
	copied, hole, files, rows []time.Duration
	state                     int
}

// Markdown is the report as docs/bench/ has it.
func (r *SnapshotReport) Markdown() string {
	rate := func(took []time.Duration) float64 { return float64(r.Rows) / median(took).Seconds() }
	line := func(name string, took []time.Duration, target string) string {
		return fmt.Sprintf("| %s | %.0f rows/s | %.2f | %s |\n", name, rate(took), rate(took)/rate(r.copied), target)
	}
	verdict := ">= 0.8: met"
	if rate(r.hole) < 0.8*rate(r.copied) {
		verdict = ">= 0.8: **missed**"
	}
	chunks := func(rows int) int { return (rows + chunkRows - 1) / chunkRows }
	perChunk := float64(r.state) / float64(chunks(r.Rows))
	return fmt.Sprintf(`# Benchmark of the copy

<!-- Written by "make bench-snapshot"; do not edit. -->

A table of %d rows of 10 columns, %d readers, chunks of %d rows; %s and `+"`weir up`"+`
on one machine, fsync on. Medians of %d interleaved runs, from before the job is submitted to the commit of the epoch with the
last row.

| copy | rows | of COPY | target |
| --- | --- | --- | --- |
`, r.Rows, snapshotReaders, chunkRows, r.Server, r.Runs) +
		line("`COPY (SELECT ...) TO STDOUT` as text, one session, thrown away", r.copied, "the baseline") +
		line("-> committed epochs, blackhole", r.hole, verdict) +
		line("-> Parquet", r.files, "") +
		line("-> PostgreSQL", r.rows, "") +
		fmt.Sprintf(`
A table of %d rows by arithmetic: %d chunks (here %d). The state of all subtasks in the epoch with the last row is
%d bytes here, %.1f per chunk, so at most %.1f MB there if all of it grew with the chunks. At the rates above it takes %s into
the blackhole, %s to Parquet, %s to PostgreSQL.
`, plannedRows, chunks(plannedRows), chunks(r.Rows), r.state, perChunk, perChunk*float64(chunks(plannedRows))/1e6,
			planned(rate(r.hole)), planned(rate(r.files)), planned(rate(r.rows)))
}

func planned(perSecond float64) time.Duration {
	return time.Duration(plannedRows / perSecond * float64(time.Second)).Round(time.Second)
}
