package bench

import (
	"context"
	"fmt"
	"testing"

	"weir.dev/weir/itest/harness"
)

// stand is what all figures share: two servers and a log that does not change.
type stand struct {
	testing.TB
	Config

	source, target *harness.Postgres
	counter        int // makes names unique
}

// schema is a table of 10 columns of common types.
const schema = `
CREATE SCHEMA bench;
CREATE TABLE bench.wide (
	id       bigint PRIMARY KEY,
	customer integer NOT NULL,
	account  bigint NOT NULL,
	amount   numeric(12,2) NOT NULL,
	ratio    double precision NOT NULL,
	active   boolean NOT NULL,
	placed   timestamptz NOT NULL,
	name     text NOT NULL,
	note     text,
	due      date NOT NULL
);
CREATE PUBLICATION bench FOR TABLE bench.wide;

-- fill inserts the rows from..upto in transactions of 1000 rows.
CREATE PROCEDURE bench.fill(first bigint, last bigint) LANGUAGE plpgsql AS $$
BEGIN
	FOR at IN 0 .. (last - first) / 1000 LOOP
		INSERT INTO bench.wide SELECT i, i % 10007, i * 7919, (i % 1000000) / 100.0, i / 7.0, i % 3 = 0,
			timestamptz '2026-01-01 00:00:00Z' + i * interval '1 second', 'customer number ' || i % 10007,
			CASE WHEN i % 4 > 0 THEN 'a note of about forty letters, number ' || i END, date '2026-01-01' + (i % 365)::int
		FROM generate_series(first + at * 1000, least(first + at * 1000 + 999, last)) i;
		COMMIT;
	END LOOP;
END $$;

-- touch updates n rows chosen at random, in transactions of 100.
CREATE PROCEDURE bench.touch(n bigint, below bigint) LANGUAGE plpgsql AS $$
DECLARE
	chosen bigint; -- random() in a WHERE would be drawn for every row of the table
BEGIN
	PERFORM setseed(0.5);
	FOR at IN 1 .. n / 100 LOOP
		FOR each IN 1 .. 100 LOOP
			chosen := 1 + floor(random() * below)::bigint;
			UPDATE bench.wide SET amount = amount + 1, ratio = ratio * 1.01, note = 'touched ' || at WHERE id = chosen;
		END LOOP;
		COMMIT;
	END LOOP;
END $$;
`

// The slots whose copies are read: inserts, then updates.
const (
	insertsSlot = "bench_inserts"
	updatesSlot = "bench_updates"
)

func newStand(tb testing.TB, cfg Config) *stand {
	tb.Helper()
	s := &stand{
		TB: tb, Config: cfg,
		source: harness.StartPostgres(tb, harness.PostgresConfig{Durable: true}),
		target: harness.StartPostgres(tb, harness.PostgresConfig{Durable: true}),
	}
	s.exec(schema)
	s.slot(insertsSlot)
	s.exec(fmt.Sprintf("CALL bench.fill(1, %d)", cfg.Rows))
	s.exec("CHECKPOINT")
	return s
}

func (s *stand) exec(sql string) {
	s.Helper()
	if err := s.source.Exec(s.Context(), "postgres", sql); err != nil {
		s.Fatal(err)
	}
}

func (s *stand) slot(name string) {
	s.Helper()
	s.exec("SELECT pg_create_logical_replication_slot('" + name + "', 'pgoutput')")
}

// copySlot makes a slot that begins where another does; it is dropped when the returned function is called.
func (s *stand) copySlot(from string) (name string, drop func()) {
	s.Helper()
	s.counter++
	name = fmt.Sprintf("run_%d", s.counter)
	s.exec(fmt.Sprintf("SELECT pg_copy_logical_replication_slot('%s', '%s')", from, name))
	return name, func() {
		s.Helper()
		harness.Await(s, settle, "slot "+name+" to be free", func(ctx context.Context) error {
			return s.source.Exec(ctx, "postgres", "SELECT pg_drop_replication_slot('"+name+"')")
		})
	}
}

// value asks the source.
func value[T any](s *stand, sql string, args ...any) T {
	s.Helper()
	v, err := harness.Value[T](s.Context(), s.source, "postgres", sql, args...)
	if err != nil {
		s.Fatal(err)
	}
	return v
}

// database makes an empty one at the target.
func (s *stand) database() string {
	s.Helper()
	s.counter++
	name := fmt.Sprintf("run_%d", s.counter)
	if err := s.target.CreateDatabase(s.Context(), name); err != nil {
		s.Fatal(err)
	}
	return name
}
