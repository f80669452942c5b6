package schema

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/itest/mesh"
)

const (
	// aliveRows is how many rows a table has that is altered while it is copied.
	aliveRows = 15_000
	// aliveDelay is what each request to the source takes at least while tables are altered: a second and more for a table, on a machine of any speed.
	aliveDelay = 3 * time.Millisecond
	aliveSpec  = `apiVersion: weir/v1
job: schema
epoch: {interval: 100ms}
restart: {backoff: 100ms}
sources:
  db: {type: postgres, url: "${SOURCE_URL}", tables: ["public.*"], readers: 2, snapshot: {mode: initial, chunk_rows: 40}}
sinks:
  out: {from: [db], type: postgres, url: "${TARGET_URL}", schema: out, schema_change: evolve}
  mild: {from: [db], type: postgres, url: "${TARGET_URL}", schema: mild}
`
)

// alive are changes of tables that are made amid their first copy, and whether `lenient` keeps the target equal to the source.
var alive = []struct {
	table, alter string
	mild         bool
}{
	{"added", "ADD w int NOT NULL DEFAULT 7", true},
	{"dropped", "DROP v", false},
	{"renamed", "RENAME v TO name", false},
	{"widened", "ALTER n TYPE bigint", true},
}

// Tables are altered amid their first copy, while they are written to: the job goes on by the behaviour that each sink has chosen,
// and the targets are the source row by row.
func TestAlterAmidTheFirstCopy(t *testing.T) {
	s := &scene{db: fmt.Sprintf("d%d", time.Now().UnixNano())}
	for _, pg := range []*harness.Postgres{source, target} {
		if err := pg.CreateDatabase(t.Context(), s.db); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range alive {
		s.at(t, source, fmt.Sprintf("CREATE TABLE %s (id int PRIMARY KEY, v text, n int NOT NULL);"+
			"INSERT INTO %[1]s SELECT i, 'v' || i, i FROM generate_series(1, %d) i", c.table, aliveRows))
	}
	job := filepath.Join(t.TempDir(), "schema.yaml")
	if err := os.WriteFile(job, []byte(aliveSpec), 0o600); err != nil {
		t.Fatal(err)
	}
	stop := s.load(t)
	line := harness.StartCutter(t, source.Port)
	line.Delay(aliveDelay)
	s.Mesh = mesh.Up(t, []string{"SOURCE_URL=" + line.URL(source.URL(s.db)), "TARGET_URL=" + target.URL(s.db)}, job)
	for _, c := range alive {
		harness.Await(t, 120*time.Second, "the first rows of "+c.table, func(context.Context) error {
			if s.count(t, "out."+c.table) == 0 {
				return errors.New("none has come")
			}
			return nil
		})
		before := s.count(t, "out."+c.table)
		s.at(t, source, "ALTER TABLE "+c.table+" "+c.alter)
		t.Logf("%s: %d rows were at the target, %d when it was altered", c.table, before, s.count(t, "out."+c.table))
		if before >= aliveRows*9/10 {
			t.Fatalf("table %s was copied before it was altered", c.table)
		}
	}
	line.Heal()
	s.Must(t, "status", "schema", "--wait-for", "caught-up", "--timeout", "180s")
	stop()
	s.CaughtUp(t, "schema")
	for _, c := range alive {
		want := s.rows(t, source, "public."+c.table)
		if s.rows(t, target, "out."+c.table) != want {
			t.Errorf("out.%s is not the source's", c.table)
		}
		if c.mild && s.rows(t, target, "mild."+c.table) != want {
			t.Errorf("mild.%s is not the source's", c.table)
		}
	}
	s.Verify(t, "schema")
}

// count counts rows at the target; none while there is no such table.
func (s *scene) count(t *testing.T, table string) (n int) {
	t.Helper()
	conn, err := target.Connect(t.Context(), s.db)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	err = conn.QueryRow(t.Context(), "SELECT CASE WHEN to_regclass($1) IS NULL THEN 0 ELSE"+
		" (xpath('/row/n/text()', query_to_xml('SELECT count(*) AS n FROM ' || $1, false, true, '')))[1]::text::int END", table).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// load writes to the tables until it is told to stop, by columns that they keep.
func (s *scene) load(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	for i, c := range alive {
		writers.Go(func() {
			conn, err := source.Connect(ctx, s.db)
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close(context.WithoutCancel(ctx))
			rng, next := rand.New(rand.NewPCG(1, uint64(i))), 1_000_000
			for ctx.Err() == nil {
				if err := write(ctx, conn, c.table, rng.IntN(aliveRows)+1, next); err != nil && ctx.Err() == nil {
					t.Error(err)
					return
				}
				next++
				_ = harness.Pause(ctx, 4*time.Millisecond)
			}
		})
	}
	return func() { cancel(); writers.Wait() }
}

// write changes three rows of a table: one row, one that comes and one that goes, or moves.
func write(ctx context.Context, conn *pgx.Conn, table string, id, fresh int) error {
	gone := fmt.Sprintf("DELETE FROM %s WHERE id = $1 + 1", table)
	if id%2 == 0 {
		gone = fmt.Sprintf("UPDATE %s SET id = -id WHERE id = $1 + 1", table)
	}
	for sql, arg := range map[string]int{
		fmt.Sprintf("UPDATE %s SET n = n + 1 WHERE id = $1", table): id,
		fmt.Sprintf("INSERT INTO %s (id, n) VALUES ($1, 0)", table): fresh,
		gone: id,
	} {
		if _, err := conn.Exec(ctx, sql, arg); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	return nil
}
