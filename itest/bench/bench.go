package bench

import "testing"

// Run measures every figure.
func Run(tb testing.TB, cfg Config) *Report {
	tb.Helper()
	s := newStand(tb, cfg)
	r := &Report{Config: cfg, Server: "PostgreSQL " + value[string](s, "SELECT current_setting('server_version')")}
	s.throughput(r)
	s.idleEpochs(r)
	s.latency(r)
	s.memory(r)
	for _, f := range r.Figures {
		tb.Logf("%-60s %s (%s)", f.Name, f.Measured, f.Target)
	}
	return r
}
