package bench

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"weir.dev/weir/itest/harness"
)

// IcebergConfig says how much is measured of the way into Iceberg tables, and which parts.
type IcebergConfig struct {
	// Rows of each log and of the table that is copied, and the number of runs of each kind.
	Rows, Runs int
	// MemoryRows are moved while resident memory is watched.
	MemoryRows int
	// LatencyFor is how long the latency load goes on.
	LatencyFor time.Duration
	// TinyEpochs are committed one after the other.
	TinyEpochs int
	// Parts are what is measured, of [IcebergParts].
	Parts []string
	// Keep is called after each part with what there is so far: a run that is cut has not been for nothing. Optional.
	Keep func(*IcebergReport)
}

// IcebergParts are what can be measured by itself: a run of all of them takes a quarter of an hour.
func IcebergParts() []string { return []string{"log", "mysql", "copy", "latency", "tiny", "memory"} }

// icebergSink writes both tables of each source table, which change at once. The catalog is a database of the target's server.
func icebergSink(dir, namespace string) string {
	return changesSink(dir, namespace) + "\n    mode: upsert\n    changelog: \"{table}_changes\""
}

// changesSink writes the changelog alone, when nothing is said of a mode behind it.
func changesSink(dir, namespace string) string {
	return "    type: iceberg\n    warehouse: " + dir + "\n    catalog: ${TARGET_URL}\n    namespace: " + namespace
}

// atLeastOnce is a sink's part of a job that promises less: what follows it is the job's.
func atLeastOnce(sink string) string { return sink + "\nguarantee: at_least_once" }

// Iceberg measures the way into Iceberg tables: from both logs, by a copy, with the latency, the memory and the price of exactly once.
func Iceberg(tb testing.TB, cfg IcebergConfig) *IcebergReport {
	tb.Helper()
	s := newStand(tb, Config{Rows: cfg.Rows, Runs: cfg.Runs, MemoryRows: cfg.MemoryRows, LatencyFor: cfg.LatencyFor})
	r := &IcebergReport{IcebergConfig: cfg, Server: "PostgreSQL " + value[string](s, "SELECT current_setting('server_version')")}
	for _, part := range IcebergParts() {
		if !slices.Contains(cfg.Parts, part) {
			continue
		}
		switch part {
		case "log":
			s.icebergLog(r)
		case "mysql":
			s.icebergMySQL(r)
		case "copy":
			s.icebergCopy(r)
		case "latency":
			s.icebergLatency(r)
		case "tiny":
			s.icebergTiny(r)
		case "memory":
			r.early, r.whole = s.resident(min(s.Rows, s.MemoryRows), s.database(), icebergSink(s.TempDir(), "bench"))
		}
		r.done = append(r.done, part)
		tb.Log("\n" + r.section(part))
		if cfg.Keep != nil {
			cfg.Keep(r)
		}
	}
	return r
}

// icebergLog reads the same log with PostgreSQL's own client and with the product, into both tables and into the changelog alone, and
// into both tables by a job that promises less.
func (s *stand) icebergLog(r *IcebergReport) {
	s.Helper()
	end := value[string](s, "SELECT pg_current_wal_insert_lsn()::text")
	into := func(to *runs, sink func(dir, namespace string) string) (database string) {
		database = s.database()
		to.add(s.drainCPU(insertsSlot, s.Rows, database, sink(s.TempDir(), "bench")))
		return database
	}
	for range s.Runs {
		slot, drop := s.copySlot(insertsSlot)
		r.base = append(r.base, s.recvlogical(slot, end))
		drop()
		database := into(&r.both, icebergSink)
		s.sameLake(database, "bench", r.Rows, value[int64](s, "SELECT sum(id)::bigint FROM bench.wide"))
		into(&r.less, func(dir, namespace string) string { return atLeastOnce(icebergSink(dir, namespace)) })
		into(&r.changes, func(dir, namespace string) string { return changesSink(dir, namespace) + "\n    mode: changelog" })
	}
}

// drainCPU is drainSlot with the processor time of the product.
func (s *stand) drainCPU(from string, n int, database, sink string) spent {
	s.Helper()
	slot, drop := s.copySlot(from)
	p := s.start("200ms", slot, database, sink)
	began := s.sessionStart(slot, p.Members[0].Done())
	took := p.committed(n).Sub(began)
	usage, err := p.Members[0].Usage()
	if err != nil {
		s.Fatal(err)
	}
	p.stop()
	drop()
	return spent{took: took, weir: usage.CPU}
}

// icebergMySQL reads the same log of MySQL with the parser that every reader has and with the product into both tables.
func (s *stand) icebergMySQL(r *IcebergReport) {
	s.Helper()
	m := &mysqlStand{stand: &stand{TB: s.TB, target: s.target}, cfg: MySQLConfig{Rows: r.Rows, Runs: r.Runs}}
	m.server = harness.StartMySQL(s, harness.MySQLConfig{Durable: true})
	m.second = m.server
	defer m.open()()
	r.mysqlServer = "MySQL " + m.ask("SELECT version()")
	var jobs []*prepared
	for i := range r.Runs {
		namespace := fmt.Sprintf("mysql_%d", i)
		jobs = append(jobs, m.prepare(icebergSink(s.TempDir(), namespace), func() {
			s.sameLake("postgres", namespace, r.Rows, int64(r.Rows)*int64(r.Rows+1)/2)
		}))
	}
	first := m.fill()
	for _, p := range jobs {
		r.parsed = append(r.parsed, m.parse(first))
		r.mysql = append(r.mysql, m.drain(p))
	}
}

// icebergCopy copies the table into both tables, and into a blackhole: what the sink adds is the difference.
func (s *stand) icebergCopy(r *IcebergReport) {
	s.Helper()
	for range s.Runs {
		got, _ := s.snapshot("postgres", blackhole())
		r.copyHole.add(got)
		got, _ = s.snapshot(s.database(), changesSink(s.TempDir(), "bench")+"\n    mode: upsert")
		r.copyCurrent.add(got)
		database := s.database()
		got, _ = s.snapshot(database, icebergSink(s.TempDir(), "bench"))
		r.copyBoth.add(got)
		s.sameLake(database, "bench", r.Rows, value[int64](s, "SELECT sum(id)::bigint FROM bench.wide"))
	}
}
