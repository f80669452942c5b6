package stops

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/itest/mesh"
	"weir.dev/weir/services/weir/verify/audit"
)

const name = "shop"

// sourceSpec is the beginning of every job's spec; its sinks follow. The readers are open.
const sourceSpec = `apiVersion: weir/v1
job: shop
epoch: {interval: 100ms}
restart: {backoff: 100ms, cap: 1000}
sources:
  db: {type: postgres, url: "${SOURCE_URL}", tables: ["public.*"], heartbeat: 1s, readers: %d, snapshot: {chunk_rows: 100}}
sinks:
`

// scene is a mesh between two databases of one server, with a table that is written to all the while.
type scene struct {
	*mesh.Mesh
	pg *harness.Postgres
}

// begin makes source and target, fills table t, does what else has to be at the source, and starts the job.
func begin(t *testing.T, spec string, before ...string) *scene {
	t.Helper()
	s := &scene{pg: harness.StartPostgres(t, harness.PostgresConfig{})}
	for _, db := range []string{"source", "target"} {
		if err := s.pg.CreateDatabase(t.Context(), db); err != nil {
			t.Fatal(err)
		}
	}
	s.exec(t, "CREATE TABLE t (id bigint PRIMARY KEY, n bigint NOT NULL DEFAULT 0)")
	s.exec(t, "INSERT INTO t SELECT i FROM generate_series(1, 1000) i")
	for _, sql := range before {
		s.exec(t, sql)
	}
	s.Mesh = mesh.Start(t, mesh.Config{
		Roles: []mesh.Role{mesh.Coordinator, mesh.CDCPostgres, mesh.Sink},
		Env:   []string{"SOURCE_URL=" + s.pg.URL("source"), "TARGET_URL=" + s.pg.URL("target")},
	})
	s.Submit(t, name, spec)
	return s
}

func (s *scene) exec(t *testing.T, sql string) {
	t.Helper()
	if err := s.pg.Exec(t.Context(), "source", sql); err != nil {
		t.Fatalf("%v\n%.400s", err, sql)
	}
}

func (s *scene) connect(ctx context.Context, t *testing.T, db string) *pgx.Conn {
	t.Helper()
	conn, err := s.pg.Connect(ctx, db)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(ctx)) })
	return conn
}

// load writes until quiet is called: inserts, updates, changes of keys, deletes.
func (s *scene) load(t *testing.T) (quiet func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	conn := s.connect(t.Context(), t, "source")
	done := make(chan error, 1)
	go func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for i := 2000; ; i++ {
			if _, err := conn.Exec(t.Context(), fmt.Sprintf(`INSERT INTO t VALUES (%d); UPDATE t SET n = n + 1 WHERE id %% 50 = %d;
				UPDATE t SET id = -id WHERE id = %d; DELETE FROM t WHERE id = -%d`, i, i%50, i-10, i-20)); err != nil {
				done <- err
				return
			}
			select {
			case <-ctx.Done():
				done <- nil
				return
			case <-tick.C:
			}
		}
	}()
	quiet = func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the load ended: %v", err)
		}
		done <- nil
	}
	t.Cleanup(quiet)
	return quiet
}

// wantExact waits until everything is at the sinks and judges it: the copy, the changelog, the chain of epochs.
func (s *scene) wantExact(t *testing.T) {
	t.Helper()
	s.CaughtUp(t, name)
	s.wantSame(t)
	s.wantChanges(t)
	s.Verify(t, name)
}

// wantSame compares the table with its copy.
func (s *scene) wantSame(t *testing.T) {
	t.Helper()
	all, err := audit.CompareTables(t.Context(), audit.CompareConfig{
		SourceURL: s.pg.URL("source"), TargetURL: s.pg.URL("target"), Values: true,
		Tables: []audit.TablePair{{Source: "public.t", Target: "copy.t"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		if !c.Equal() {
			t.Error(c)
		}
	}
}

// slots are the source's slots.
func (s *scene) slots(t *testing.T) []string {
	t.Helper()
	rows, err := s.connect(t.Context(), t, "source").Query(t.Context(), "SELECT slot_name FROM pg_replication_slots ORDER BY 1")
	if err != nil {
		t.Fatal(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// wantSlots waits until the source has so many slots.
func (s *scene) wantSlots(t *testing.T, n int) {
	t.Helper()
	harness.Await(t, 60*time.Second, fmt.Sprintf("%d slots", n), func(context.Context) error {
		if all := s.slots(t); len(all) != n {
			return fmt.Errorf("the slots are %q", all)
		}
		return nil
	})
}

// wantPhase checks where the job is.
func (s *scene) wantPhase(t *testing.T, phases ...string) {
	t.Helper()
	if st := s.Status(t, name); !slices.Contains(phases, st.Phase) {
		t.Fatalf("the job is %s, want %q: %+v", st.Phase, phases, st.Reason)
	}
}

// wantRefused runs a command that has to be refused as a bad request with a code.
func (s *scene) wantRefused(t *testing.T, code string, args ...string) mesh.Fault {
	t.Helper()
	a := s.Ask(t, append([]string{"--json"}, args...)...)
	if a.Exit != 2 {
		t.Fatalf("not refused: %s", a)
	}
	f, err := a.Fault()
	if err != nil {
		t.Fatal(err)
	}
	if f.Code != code || f.Remedy == "" {
		t.Fatalf("refused by %+v, want %s", f, code)
	}
	return f
}
