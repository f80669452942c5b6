package bench_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/itest/bench"
	"weir.dev/weir/itest/harness"
)

var (
	snapshotRuns = flag.Int("snapshot-runs", 3, "copies into each sink")
	snapshotRows = flag.Int("snapshot-rows", 10_000_000, "rows of the table that is copied; fewer are for trying the benchmark out")
	full         = flag.Bool("full", false, "measure longer: five runs of each kind, a minute of latency")
	mysqlRuns    = flag.Int("mysql-runs", 3, "runs of each kind with MySQL")
	mysqlRows    = flag.Int("mysql-rows", 1_000_000, "rows of MySQL's log; the page says how many there were")
	mysqlCopy    = flag.Int("mysql-copy-rows", 5_000_000, "rows of the table of MySQL that is copied; the page says how many there were")
	reportsRuns  = flag.Int("reports-runs", 7, "runs with reports, and as many without")
	reportsRows  = flag.Int("reports-rows", 500_000, "rows that each of them reads; the page says how many there were")
	rows         = flag.Int("rows", 1_000_000, "rows of the log; fewer are for trying the benchmark out")
)

// TestMeasures runs every figure once with next to no rows, so that the benchmark works when it is wanted.
func TestMeasures(t *testing.T) {
	r := bench.Run(t, bench.Config{Rows: 5000, Runs: 1, MemoryRows: 10_000, Epochs: 5, LatencyFor: 2 * time.Second})
	if len(r.Figures) != 10 {
		t.Errorf("%d figures, want 10:\n%s", len(r.Figures), r.Markdown())
	}
}

// TestSnapshotMeasures is the same for the copy.
func TestSnapshotMeasures(t *testing.T) {
	r := bench.Snapshot(t, bench.SnapshotConfig{Rows: 20_000, Runs: 1})
	if text := r.Markdown(); strings.Contains(text, "NaN") || strings.Contains(text, "Inf") || strings.Count(text, "rows/s") != 4 {
		t.Error(text)
	}
}

// TestMySQLMeasures is the same for MySQL.
func TestMySQLMeasures(t *testing.T) {
	r := bench.MySQL(t, bench.MySQLConfig{Rows: 2500, CopyRows: 3500, Runs: 1, Readers: []int{2}})
	if text := r.Markdown(); strings.Contains(text, "NaN") || strings.Contains(text, "Inf") || strings.Count(text, "rows/s") != 8 {
		t.Error(text)
	}
}

// TestReportsMeasures is the same for the price of reports.
func TestReportsMeasures(t *testing.T) {
	r := bench.Reports(t, bench.ReportsConfig{Rows: 5000, Runs: 1, Epochs: 5, Rest: 100 * time.Millisecond})
	if text := r.Markdown(); strings.Contains(text, "NaN") || strings.Contains(text, "Inf") || strings.Contains(text, "%!") {
		t.Error(text)
	}
}

// BenchmarkReports is `make bench-reports`: it writes docs/bench/reports.md.
func BenchmarkReports(b *testing.B) {
	for b.Loop() {
		write(b, "reports.md", bench.Reports(b, bench.ReportsConfig{Rows: *reportsRows, Runs: *reportsRuns, Epochs: 300, Rest: 3 * time.Second}).Markdown())
	}
}

// BenchmarkMySQL is `make bench-mysql`: it writes docs/bench/mysql.md.
func BenchmarkMySQL(b *testing.B) {
	for b.Loop() {
		cfg := bench.MySQLConfig{Rows: *mysqlRows, CopyRows: *mysqlCopy, Runs: *mysqlRuns, Readers: []int{1, 2, 3, 4}}
		write(b, "mysql.md", bench.MySQL(b, cfg).Markdown())
	}
}

// BenchmarkSnapshot is `make bench-snapshot`: it writes docs/bench/snapshot.md.
func BenchmarkSnapshot(b *testing.B) {
	for b.Loop() {
		r := bench.Snapshot(b, bench.SnapshotConfig{Rows: *snapshotRows, Runs: *snapshotRuns})
		if *snapshotRows >= 10_000_000 {
			write(b, "snapshot.md", r.Markdown())
		}
	}
}

// write replaces a page of docs/bench.
func write(b *testing.B, name, text string) {
	b.Helper()
	root, err := harness.RepoRoot()
	if err != nil {
		b.Fatal(err)
	}
	dir := filepath.Join(root, "docs", "bench")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkEndToEnd is `make bench`: it writes docs/bench/end-to-end.md.
func BenchmarkEndToEnd(b *testing.B) {
	cfg := bench.Config{Rows: *rows, Runs: 3, MemoryRows: 10 * *rows, Epochs: 200, LatencyFor: 15 * time.Second}
	if *full {
		cfg.Runs, cfg.LatencyFor = 5, time.Minute
	}
	for b.Loop() {
		r := bench.Run(b, cfg)
		if *rows >= 1_000_000 { // fewer are not what the document is about
			write(b, "end-to-end.md", r.Markdown())
		}
	}
}
