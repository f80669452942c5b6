package bench

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/itest/mesh"
)

// ReportsConfig says how much is measured.
type ReportsConfig struct {
	// Rows of the log that each run reads, and the number of runs of each kind.
	Rows, Runs int
	// Epochs are asked for in each run when the log has been read, Rest is how long the mesh is left alone then.
	Epochs int
	Rest   time.Duration
}

// Reports measures what it costs that a job says how far it is: the same log is read into the same sink by a mesh whose nodes
// publish no reports and by one that has them and a progress service, in turn.
func Reports(tb testing.TB, cfg ReportsConfig) *ReportsReport {
	tb.Helper()
	s := newStand(tb, Config{Rows: cfg.Rows})
	r := &ReportsReport{ReportsConfig: cfg, Server: "PostgreSQL " + value[string](s, "SELECT current_setting('server_version')")}
	for i := range cfg.Runs {
		// Who is first in a pair changes, so that whatever drifts falls on both.
		for _, reports := range []bool{i%2 == 1, i%2 == 0} {
			if reports {
				r.on.measure(s, cfg, nil, mesh.Progress)
			} else {
				r.off.measure(s, cfg, []string{"BENCH_WEIR_REPORTS=off"})
			}
		}
	}
	tb.Log("\n" + r.table())
	return r
}

// reported is what runs of one kind took.
type reported struct {
	perRow, atRest, epochs []time.Duration // of processors per row and per second, and of the clock
}

// measure is one run: the log, then epochs without rows, then nothing.
func (k *reported) measure(s *stand, cfg ReportsConfig, env []string, more ...mesh.Role) {
	s.Helper()
	slot, drop := s.copySlot(insertsSlot)
	p := s.on(mesh.Start(s, mesh.Config{
		Roles: append([]mesh.Role{mesh.Coordinator, mesh.CDCPostgres, mesh.Sink}, more...),
		Env:   append(s.urls("postgres"), env...),
	}))
	used := p.cpu()
	p.submit("bench.wide", "200ms", followed(slot), blackhole())
	p.committed(cfg.Rows)
	k.perRow = append(k.perRow, (p.cpu()-used)/time.Duration(cfg.Rows))
	k.epochs = append(k.epochs, p.idle(cfg.Epochs)...)
	used = p.cpu()
	began := time.Now()
	if err := harness.Pause(s.Context(), cfg.Rest); err != nil {
		s.Fatal(err)
	}
	k.atRest = append(k.atRest, time.Duration(float64(p.cpu()-used)/time.Since(began).Seconds()))
	p.stop()
	drop()
}

// cpu is what all processes of the mesh have used, its NATS server among them. The command line is not.
func (p *product) cpu() (total time.Duration) {
	p.s.Helper()
	all := []*harness.Process{p.NATS.Process}
	for _, m := range p.Members {
		all = append(all, m.Process)
	}
	for _, one := range all {
		u, err := one.Usage()
		if err != nil {
			p.s.Fatal(err)
		}
		total += u.CPU
	}
	return total
}

// ReportsReport is what reports cost.
type ReportsReport struct {
	ReportsConfig

	Server  string
	off, on reported
}

// What reports may cost.
const (
	reportsPerRow   = 1.03
	reportsPerEpoch = time.Millisecond
)

func (r *ReportsReport) table() string {
	var b strings.Builder
	b.WriteString("| figure, medians | off | on | difference | target | |\n| --- | --- | --- | --- | --- | --- |\n")
	verdict := func(ok bool) string {
		if ok {
			return "met"
		}
		return "**missed**"
	}
	off, on := median(r.off.perRow), median(r.on.perRow)
	ratio := float64(on) / float64(off)
	fmt.Fprintf(&b, "| CPU per row | %.2f us | %.2f us | %+.1f %% | <= %.0f %% | %s |\n", micros(off), micros(on), 100*(ratio-1), 100*(reportsPerRow-1),
		verdict(ratio <= reportsPerRow))
	off, on = median(r.off.epochs), median(r.on.epochs)
	fmt.Fprintf(&b, "| epoch without rows, trigger to durable | %.2f ms | %.2f ms | %+.2f ms | <= %s | %s |\n", millis(off), millis(on), millis(on-off), reportsPerEpoch,
		verdict(on-off <= reportsPerEpoch))
	off, on = quantile(r.off.epochs, 0.99), quantile(r.on.epochs, 0.99)
	fmt.Fprintf(&b, "| the same, 99th percentile | %.2f ms | %.2f ms | %+.2f ms | | |\n", millis(off), millis(on), millis(on-off))
	off, on = median(r.off.atRest), median(r.on.atRest)
	fmt.Fprintf(&b, "| CPU per second of a job at rest | %.1f ms | %.1f ms | %+.1f ms | | |\n", millis(off), millis(on), millis(on-off))
	return b.String()
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
func millis(d time.Duration) float64 { return micros(d) / 1e3 }

// spread is the least and the most of runs of one kind.
func spread(all []time.Duration) string {
	return fmt.Sprintf("%.2f to %.2f us", micros(slices.Min(all)), micros(slices.Max(all)))
}

// Markdown is the report as docs/bench/ has it.
func (r *ReportsReport) Markdown() string {
	return fmt.Sprintf(`# What reports cost

<!-- Written by "make bench-reports"; do not edit. -->

A log of %d rows of 10 columns is read into a blackhole by a mesh of separate processes, %d times with reports and as often
without, in turn. %s, %s, %d cores, everything on one machine.

%s
CPU is that of all processes of Weir and of its NATS server, from the submission of the job to the commit of the epoch with the
last row; single runs took %s without and %s with reports. Epochs are asked for one after the other, %d in a run, and measured
from the leader's trigger to the server's time of the head record. At rest nothing happens for %s.

**On** is the product as it is: each node samples its subtasks every second and publishes one batch, and one progress service
looks at everything every second and keeps the newest records. **Off** is the same programs with the variable
`+"`BENCH_WEIR_REPORTS=off`"+`, which is for this benchmark and no setting: nodes neither sample nor publish, and there is no progress
service. What a reader notes for its reports, a position and a count once per batch under a lock that nobody holds for long, is
in both: it is needed for its metrics too.
`, r.Rows, r.Runs, r.Server, runtime.Version(), runtime.NumCPU(), r.table(), spread(r.off.perRow), spread(r.on.perRow), r.Epochs, r.Rest)
}
