package bench

import (
	"fmt"
	"runtime"
	"strings"
	"time"
)

// Figure is one line of a report.
type Figure struct {
	Name, Measured, Target string
	Met                    bool
}

// Report is what was measured.
type Report struct {
	Config  Config
	Server  string // version of PostgreSQL
	Figures []Figure
}

// notATarget marks a figure by which others are to be understood.
const notATarget = "what no reader can pass"

// Config says how much is measured.
type Config struct {
	// Rows of the log that is read, and the number of runs of each kind.
	Rows, Runs int
	// MemoryRows are moved while resident memory is watched.
	MemoryRows int
	// Epochs is the number of idle epochs.
	Epochs int
	// LatencyFor is how long the latency load goes on.
	LatencyFor time.Duration
}

func (r *Report) add(name string, met bool, target, measured string, args ...any) {
	r.Figures = append(r.Figures, Figure{Name: name, Met: met, Target: target, Measured: fmt.Sprintf(measured, args...)})
}

// addRate compares rows per second with those of a baseline; the baseline itself has none.
func (r *Report) addRate(name, target string, rows int, took, base []time.Duration, want float64) {
	perSecond := float64(rows) / median(took).Seconds()
	if base == nil {
		r.add(name, true, target, "%.0f rows/s", perSecond)
		return
	}
	ratio := median(base).Seconds() / median(took).Seconds()
	r.add(name, ratio >= want, target, "%.2f (%.0f rows/s)", ratio, perSecond)
}

// addCeiling says what a reader reaches that does nothing with the log, and what the server's session costs per row.
func (r *Report) addCeiling(rows int, took, base, sender []time.Duration) {
	r.add("the same log read and thrown away", true, notATarget, "%.2f (%.0f rows/s; the walsender alone %.1f us of processor per row)",
		median(base).Seconds()/median(took).Seconds(), float64(rows)/median(took).Seconds(), float64(median(sender).Nanoseconds())/1e3)
}

func (r *Report) addPerSecond(name string, rows int, took []time.Duration, want float64) {
	perSecond := float64(rows) / median(took).Seconds()
	r.add(name, perSecond >= want, fmt.Sprintf(">= %.0f rows/s", want), "%.0f rows/s", perSecond)
}

// addDuration judges the median and, where p99 is not zero, the 99th percentile.
func (r *Report) addDuration(name string, took []time.Duration, p50, p99 time.Duration) {
	half, most := median(took), quantile(took, 0.99)
	target := "p50 <= " + p50.String()
	if p99 > 0 {
		target += ", p99 <= " + p99.String()
	}
	r.add(name, half <= p50 && (p99 == 0 || most <= p99), target, "p50 %s, p99 %s (of %d)",
		half.Round(10*time.Microsecond), most.Round(10*time.Microsecond), len(took))
}

// flat is what the median of memory may grow by behind the first million rows.
const flat = 1.15

func (r *Report) addMemory(part, rows int, early, late, peak float64) {
	name := fmt.Sprintf("RSS of weir up: median of the first %d rows, of the rest up to %d, peak", part, rows)
	r.add(name, peak <= 256 && late <= flat*early, fmt.Sprintf("peak <= 256 MiB, medians flat (<= %.2f)", flat),
		"%.0f MiB, %.0f MiB (%.2f), peak %.0f MiB", early, late, late/early, peak)
}

// Markdown is the report as docs/bench/ has it.
func (r *Report) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, `# Benchmarks, end to end

<!-- Written by "make bench"; do not edit. -->

Source, target and `+"`weir up`"+` (all services and NATS in one process) share one machine with %d cores; %s,
fsync on at both servers and in JetStream; %s. The log has %d rows of 10 columns in transactions of 1,000. Each run
reads its own copy of one slot. Figures are medians of %d interleaved runs, from the start of the server's replication
session to the commit of the epoch that holds the last row. Ratios compare runs of the same minutes and survive a
change of machine; rows per second do not.

| figure | measured | target | |
| --- | --- | --- | --- |
`, runtime.NumCPU(), r.Server, runtime.Version(), r.Config.Rows, r.Config.Runs)
	for _, f := range r.Figures {
		met := "met"
		if !f.Met {
			met = "**missed**"
		}
		if f.Target == "the baseline" || f.Target == notATarget {
			met = ""
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", f.Name, f.Measured, f.Target, met)
	}
	b.WriteString(`
How each is measured: ` + "`itest/bench`" + `. Random updates go to a table of as many rows, 100 per transaction. Idle epochs are
asked for one by one and measured from the leader's trigger to the server's time of the head record. Visible is the first
look of a reader that polls the target every 5 ms. Where a target is missed, ` + "`docs/bench/profile.md`" + ` says where the time goes.
`)
	return b.String()
}
