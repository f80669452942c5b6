package bench

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"
)

// IcebergReport is what was measured of the way into Iceberg tables.
type IcebergReport struct {
	IcebergConfig

	Server, mysqlServer string

	done                            []string // parts
	base, parsed, mysql             []time.Duration
	both, less, changes             runs
	copyHole, copyCurrent, copyBoth runs
	visible                         []time.Duration
	early, whole                    []float64
	commits                         []time.Duration
	scans                           map[string][2][]time.Duration // of many epochs, and of one
}

// heading is the title of a part in the page.
func heading(part string) string {
	return map[string]string{
		"log": "The log of PostgreSQL", "mysql": "The log of MySQL", "copy": "The copy", "latency": "Commit to visible", "tiny": "Tiny epochs", "memory": "Resident memory",
	}[part]
}

// judged is the end of a line with a target.
func judged(target string, met bool) string {
	if met {
		return target + ": met |\n"
	}
	return target + ": **missed** |\n"
}

// section is one part of the page, with its heading.
func (r *IcebergReport) section(part string) string {
	speed := func(rows int, took []time.Duration) float64 { return float64(rows) / median(took).Seconds() }
	perRow := func(used []time.Duration) float64 { return float64(median(used).Nanoseconds()) / 1e3 / float64(r.Rows) }
	machine := fmt.Sprintf("%d cores, %s, %s", runtime.NumCPU(), r.Server, runtime.Version())
	var b strings.Builder
	var lines []string
	b.WriteString("## " + heading(part))
	switch part {
	case "log":
		rate := func(took []time.Duration) (float64, float64) {
			return speed(r.Rows, took), median(r.base).Seconds() / median(took).Seconds()
		}
		fmt.Fprintf(&b, "\n\n%s. %d rows of 10 columns in transactions of 1,000; %s; epochs of 200 ms.\n\n", machine, r.Rows, r.runs())
		b.WriteString("| log -> committed epochs | rows | of `pg_recvlogical` | Weir, CPU per row | target |\n| --- | --- | --- | --- | --- |\n")
		n, _ := rate(r.base)
		fmt.Fprintf(&b, "| `pg_recvlogical` to /dev/null | %.0f rows/s | 1 | | the baseline |\n", n)
		n, of := rate(r.both.took)
		fmt.Fprintf(&b, "| changelog and current table | %.0f rows/s | %.2f | %.2f us | %s", n, of, perRow(r.both.weir), judged(">= 0.9", of >= 0.9))
		n, of = rate(r.less.took)
		fmt.Fprintf(&b, "| the same, `guarantee: at_least_once` | %.0f rows/s | %.2f | %.2f us | |\n", n, of, perRow(r.less.weir))
		n, of = rate(r.changes.took)
		fmt.Fprintf(&b, "| changelog alone | %.0f rows/s | %.2f | %.2f us | |\n", n, of, perRow(r.changes.weir))
		cost := perRow(r.both.weir)/perRow(r.less.weir) - 1
		fmt.Fprintf(&b, "| exactly once costs, of the CPU of at least once | | | %+.1f %% | %s", 100*cost, judged("<= 5 %", cost <= 0.05))
	case "mysql":
		of := median(r.parsed).Seconds() / median(r.mysql).Seconds()
		fmt.Fprintf(&b, "\n\n%d cores, %s, %s. %d rows of 10 columns in transactions of 1,000; %s; epochs of 200 ms.\n\n",
			runtime.NumCPU(), r.mysqlServer, runtime.Version(), r.Rows, r.runs())
		b.WriteString("| log -> committed epochs | rows | of the parser | target |\n| --- | --- | --- | --- |\n")
		fmt.Fprintf(&b, "| go-mysql's parser over the files, everything decoded, thrown away | %.0f rows/s | 1 | the baseline |\n", speed(r.Rows, r.parsed))
		fmt.Fprintf(&b, "| changelog and current table | %.0f rows/s | %.2f | %s", speed(r.Rows, r.mysql), of, judged(">= 0.4", of >= 0.4))
	case "copy":
		perCPU := func(c runs) float64 { return float64(r.Rows) / median(c.weir).Seconds() }
		line := func(name string, c runs) string {
			return fmt.Sprintf("| %s | %.0f rows/s | %.0f | %.2f us | ", name, speed(r.Rows, c.took), perCPU(c), perRow(c.weir))
		}
		fmt.Fprintf(&b, "\n\n%s. A table of %d rows of 10 columns, %d readers, chunks of %d rows; %s; epochs of 1 s. From before the job is submitted.\n\n",
			machine, r.Rows, snapshotReaders, chunkRows, r.runs())
		b.WriteString("| copy -> committed epochs | rows | rows per CPU second of Weir | CPU per row | target |\n| --- | --- | --- | --- | --- |\n")
		b.WriteString(line("blackhole", r.copyHole) + "|\n")
		b.WriteString(line("current table", r.copyCurrent) + judged(">= 300000", perCPU(r.copyCurrent) >= 300_000))
		b.WriteString(line("changelog and current table", r.copyBoth) + "|\n")
	case "latency":
		visible := r.visible[min(len(r.visible)/2, perSecond):] // the first second opens connections and makes the tables
		fmt.Fprintf(&b, "\n\n%s. 1,000 rows/s in transactions of ten, both tables, epochs of 1 s; a row waits half an epoch for its end. Visible is the\n"+
			"first look at the catalog, every 5 ms, that finds metadata with the row's epoch.\n\n", machine)
		b.WriteString("| rows | p50 | p99 | target |\n| --- | --- | --- | --- |\n")
		p99 := quantile(visible, 0.99)
		fmt.Fprintf(&b, "| %d | %s | %s | %s", len(visible), median(visible).Round(time.Millisecond), p99.Round(time.Millisecond), judged("p99 <= 2 s", p99 <= 2*time.Second))
	case "tiny":
		part := min(tinyPart, len(r.commits)/2)
		begin, end := r.commits[:part], r.commits[len(r.commits)-part:]
		fmt.Fprintf(&b, "\n\n%s. %d epochs of %d rows, half of them updates, given to writer and committer one by one; maintenance on. A commit is that of both\n"+
			"tables and the ledger, with the maintenance behind it. A compacted table is one that has the same rows by one epoch.\n\n", machine, r.TinyEpochs, tinyNew+tinyOld)
		fmt.Fprintf(&b, "| | begin | end | | target |\n| --- | --- | --- | --- | --- |\n| commit, p50 of %d | %s | %s | %.2f | %s", part, short(median(begin)), short(median(end)),
			median(end).Seconds()/median(begin).Seconds(), judged("<= 2", median(end) <= 2*median(begin)))
		fmt.Fprintf(&b, "| commit, p99 of all | | %s | | |\n", short(quantile(r.commits, 0.99)))
		b.WriteString("\n| full scan | compacted | after the epochs | | target |\n| --- | --- | --- | --- | --- |\n")
		for name, title := range map[string]string{"tiny": "current table", "tiny_changes": "changelog"} {
			many, one := median(r.scans[name][0]), median(r.scans[name][1])
			lines = append(lines, fmt.Sprintf("| %s | %s | %s | %.2f | %s", title, short(one), short(many), many.Seconds()/one.Seconds(), judged("<= 2", many <= 2*one)))
		}
		slices.Sort(lines)
		b.WriteString(strings.Join(lines, ""))
	case "memory":
		early, late := median(r.early), median(r.whole[len(r.early)-1:])
		fmt.Fprintf(&b, "\n\n%s. `weir up` while %d rows are written and moved into both tables; epochs of 1 s, maintenance on.\n\n", machine, r.MemoryRows)
		fmt.Fprintf(&b, "| median of the first %d rows | of the rest | | peak | target |\n| --- | --- | --- | --- | --- |\n", min(r.Rows, r.MemoryRows))
		fmt.Fprintf(&b, "| %.0f MiB | %.0f MiB | %.2f | %.0f MiB | %s", early, late, late/early, slices.Max(r.whole), judged(fmt.Sprintf("medians flat (<= %.2f)", flat), late <= flat*early))
	}
	return b.String()
}

func short(d time.Duration) string { return d.Round(100 * time.Microsecond).String() }

func (r *IcebergReport) runs() string {
	if r.Runs == 1 {
		return "one run of each"
	}
	return fmt.Sprintf("medians of %d interleaved runs", r.Runs)
}

// icebergHead is the beginning of the page.
const icebergHead = `# Benchmarks of Iceberg tables

<!-- Written by "make bench-iceberg"; what is below "Where the time goes" by hand. -->

Source, catalog (a database in PostgreSQL) and ` + "`weir up`" + ` (all services and NATS in one process) share one machine, fsync on everywhere: servers,
JetStream, every file of the warehouse, which is a directory. A log is timed from the start of the session that sends it, up to the commit of
the epoch with the last row. Ratios compare runs of the same minutes and survive a change of machine; rows per second do not. After every
run the rows of both tables are counted and their keys added up. CPU is that of the whole process, from its start. How each is measured:
` + "`itest/bench/iceberg.go`" + `.

`

// icebergNotes is the heading of what nobody measures anew.
const icebergNotes = "## Where the time goes"

// Markdown is the page with what was measured; parts that were not are as they stand in the page of before.
func (r *IcebergReport) Markdown(before string) string {
	stood := make(map[string]string)
	before, notes, kept := strings.Cut(before, icebergNotes)
	for _, text := range strings.Split(before, "\n## ")[1:] {
		title, _, _ := strings.Cut(text, "\n")
		stood[title] = "## " + strings.TrimRight(text, "\n") + "\n"
	}
	var sections []string
	for _, part := range IcebergParts() {
		text := ""
		if slices.Contains(r.done, part) {
			text = r.section(part)
		} else {
			text = stood[heading(part)]
		}
		if text != "" {
			sections = append(sections, text)
		}
	}
	page := icebergHead + strings.Join(sections, "\n")
	if kept {
		page += "\n" + icebergNotes + notes
	}
	return page
}
