package bench

import (
	"fmt"
	"runtime"
	"strings"
	"time"
)

// MySQLReport is what was measured of MySQL.
type MySQLReport struct {
	MySQLConfig

	Server string

	parsed, dumped, hole, files, postgres, mysql []time.Duration
	selected                                     []time.Duration
	copied                                       map[int][]time.Duration // by readers
}

// rate is rows per second by the median.
func rate(rows int, took []time.Duration) float64 { return float64(rows) / median(took).Seconds() }

// line is a figure of rows against a baseline of as many; want is 0 for one without a target.
func line(name string, rows int, took, base []time.Duration, want float64) string {
	ratio := rate(rows, took) / rate(rows, base)
	target := ""
	switch {
	case want > 0 && ratio >= want:
		target = fmt.Sprintf(">= %.1f: met", want)
	case want > 0:
		target = fmt.Sprintf(">= %.1f: **missed**", want)
	}
	return fmt.Sprintf("| %s | %.0f rows/s | %.2f | %s |", name, rate(rows, took), ratio, target)
}

func (r *MySQLReport) lines() []string {
	lines := []string{
		fmt.Sprintf("| go-mysql's parser over the files, everything decoded, thrown away | %.0f rows/s | 1 | the baseline of the log |", rate(r.Rows, r.parsed)),
		line("the same over a replication connection (`BinlogSyncer`)", r.Rows, r.dumped, r.parsed, 0),
		line("log -> committed epochs, blackhole", r.Rows, r.hole, r.parsed, 0.5),
		line("log -> committed epochs, Parquet", r.Rows, r.files, r.parsed, 0.5),
		line("MySQL -> PostgreSQL, upsert", r.Rows, r.postgres, r.parsed, 0),
		line("MySQL -> MySQL, upsert", r.Rows, r.mysql, r.parsed, 0),
		fmt.Sprintf("| `SELECT *`, one session, drained by the driver | %.0f rows/s | 1 | the baseline of the copy |", rate(r.CopyRows, r.selected)),
	}
	for _, n := range r.Readers {
		name, want := fmt.Sprintf("copy -> committed epochs, blackhole, %d readers", n), 0.0
		if n == 1 {
			name, want = "copy -> committed epochs, blackhole, 1 reader", 0.8
		}
		lines = append(lines, line(name, r.CopyRows, r.copied[n], r.selected, want))
	}
	return lines
}

// Markdown is the report as docs/bench/ has it.
func (r *MySQLReport) Markdown() string {
	runs := "One run of each"
	if r.Runs > 1 {
		runs = fmt.Sprintf("Medians of %d interleaved runs", r.Runs)
	}
	return fmt.Sprintf(`# Benchmarks of MySQL

<!-- Written by "make bench-mysql"; do not edit. -->

Source, targets and `+"`weir up`"+` (all services and NATS in one process) share one machine with %d cores; %s, durable at every
commit, as is JetStream; %s. The log has %d rows of 10 columns in transactions of 1,000; the copy is of %d such rows, in chunks
of %d. %s. A log is timed from when the server begins to send it, a copy from before its job is submitted, both up to the commit of the
epoch with the last row. Ratios are of the baseline above; they survive a change of machine, rows per second do not.

| figure | rows | of the baseline | target |
| --- | --- | --- | --- |
%s

The rows at both targets are held against those at the source. The parser works on files that the operating system has in memory: no server
sends them, which costs the same machine as much again. How each is measured: `+"`itest/bench/mysql.go`"+`.
`, runtime.NumCPU(), r.Server, runtime.Version(), r.Rows, r.CopyRows, chunkRows, runs, strings.Join(r.lines(), "\n"))
}
