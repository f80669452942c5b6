package bench

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"weir.dev/weir/itest/harness"
)

// The load of the latency figure: 1,000 rows/s in transactions of ten.
const (
	perTransaction = 10
	perSecond      = 1000
)

// latency measures for each row the time from its insert at the source, just before the commit, to the first look at the
// target that sees it. The rows carry the time themselves; both servers and the looker share one clock.
func (s *stand) latency(r *Report) {
	s.Helper()
	s.exec(`DROP TABLE IF EXISTS bench.ticks; CREATE TABLE bench.ticks (id bigint PRIMARY KEY, at timestamptz NOT NULL, note text)`)
	database := s.database()
	p := s.startOn("bench.ticks", "200ms", "", database, upsert())
	p.running()

	source, err := s.source.Connect(s.Context(), "postgres")
	if err != nil {
		s.Fatal(err)
	}
	defer source.Close(context.WithoutCancel(s.Context()))
	target, err := s.target.Connect(s.Context(), database)
	if err != nil {
		s.Fatal(err)
	}
	defer target.Close(context.WithoutCancel(s.Context()))

	transactions := int(s.LatencyFor.Seconds() * perSecond / perTransaction)
	var load sync.WaitGroup
	load.Go(func() {
		if err := tick(s.Context(), source, transactions); err != nil && s.Context().Err() == nil {
			s.Error(err)
		}
	})
	took := s.look(target, transactions*perTransaction)
	load.Wait()
	p.stop()
	// The first second opens connections and makes the table.
	r.addDuration("commit to visible at 1,000 rows/s, epochs of 200 ms", took[min(len(took)/2, perSecond):], 150*time.Millisecond, 300*time.Millisecond)
}

func tick(ctx context.Context, conn *pgx.Conn, transactions int) error {
	began := time.Now()
	for i := range transactions {
		due := began.Add(time.Duration(i) * time.Second * perTransaction / perSecond)
		if err := harness.Pause(ctx, time.Until(due)); err != nil {
			return err
		}
		_, err := conn.Exec(ctx, `INSERT INTO bench.ticks SELECT i, clock_timestamp(), 'tick ' || i
			FROM generate_series($1::bigint, $1::bigint + $2::bigint - 1) i`, i*perTransaction+1, perTransaction)
		if err != nil {
			return err
		}
	}
	return nil
}

// look reads new rows of the target until all n have been seen.
func (s *stand) look(conn *pgx.Conn, n int) []time.Duration {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), s.LatencyFor+time.Minute)
	defer cancel()
	var took []time.Duration
	last := int64(0)
	for len(took) < n {
		if err := harness.Pause(ctx, 5*time.Millisecond); err != nil {
			s.Fatalf("%d of %d rows were seen: %v", len(took), n, err)
		}
		found, err := conn.Query(ctx, "SELECT id, at FROM bench.ticks WHERE id > $1 ORDER BY id", pgx.QueryExecModeExec, last)
		if err != nil {
			continue // no table yet
		}
		seen := time.Now()
		for found.Next() {
			var at time.Time
			if err := found.Scan(&last, &at); err != nil {
				s.Fatal(err)
			}
			took = append(took, seen.Sub(at))
		}
	}
	return took
}
