package bench

import (
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"weir.dev/weir/itest/harness"
)

// throughput reads the same log with PostgreSQL's own client and with the product into three sinks, in turn.
func (s *stand) throughput(r *Report) {
	s.Helper()
	end := value[string](s, "SELECT pg_current_wal_insert_lsn()::text")
	var base, top, sender, hole, files, copied, published []time.Duration
	var database string
	server := harness.StartNATS(s)
	for range s.Runs {
		slot, drop := s.copySlot(insertsSlot)
		base = append(base, s.recvlogical(slot, end))
		drop()
		slot, drop = s.copySlot(insertsSlot)
		took, session := s.ceiling(slot, s.Rows)
		top, sender = append(top, took), append(sender, session/time.Duration(s.Rows))
		drop()
		hole = append(hole, s.drainSlot(insertsSlot, s.Rows, "postgres", blackhole()))
		files = append(files, s.drainSlot(insertsSlot, s.Rows, "postgres", parquet(filepath.Join(s.TempDir(), "out"))))
		published = append(published, s.drainEvents(server, insertsSlot, s.Rows))
		database = s.database()
		copied = append(copied, s.drainSlot(insertsSlot, s.Rows, database, upsert()))
	}
	s.sameRows(database)
	r.addRate("pg_recvlogical to /dev/null", "the baseline", s.Rows, base, nil, 0)
	r.addCeiling(s.Rows, top, base, sender)
	r.addRate("PostgreSQL log -> committed epochs, blackhole", ">= 1.3 of the baseline", s.Rows, hole, base, 1.3)
	r.addRate("PostgreSQL log -> committed epochs, Parquet", ">= 1.15 of the baseline", s.Rows, files, base, 1.15)
	r.addPerSecond("PostgreSQL log -> events on NATS, Debezium JSON, a message each", s.Rows, published, 50_000)
	r.addPerSecond("PostgreSQL -> PostgreSQL upsert, inserts", s.Rows, copied, 100_000)
	s.updates(r, database)
}

// updates goes on from the same table: random rows of it are changed, many times over.
func (s *stand) updates(r *Report, database string) {
	s.Helper()
	n := s.Rows * 45 / 100
	s.slot(updatesSlot)
	s.exec(fmt.Sprintf("CALL bench.touch(%d, %d)", n, s.Rows))
	n = n / 100 * 100
	var took []time.Duration
	for range s.Runs {
		took = append(took, s.drainSlot(updatesSlot, n, database, upsert()))
	}
	s.sameRows(database)
	r.addPerSecond("PostgreSQL -> PostgreSQL upsert, random updates", n, took, 45_000)
}

// median of what was measured.
func median[T time.Duration | float64](all []T) T { return quantile(all, 0.5) }

// quantile is the smallest value that at least this part of all does not exceed.
func quantile[T time.Duration | float64](all []T, q float64) T {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}
