package progress

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/itest/mesh"
)

// TestCopy looks at a job that has no rest.
func TestCopy(t *testing.T) {
	t.Parallel()
	s := newCopy(t)
	stop := s.load(t)
	defer stop()
	t.Run("caught up means visible", s.visible)
	t.Run("page", s.page)
}

// copyScene is a job from one database to two schemas of another, all of Weir in one process.
type copyScene struct {
	pg   *harness.Postgres
	mesh *mesh.Mesh
	look *pgx.Conn
}

const copySpec = `apiVersion: weir/v1
job: copy
epoch: {interval: 500ms}
restart: {backoff: 100ms, cap: 1000}
sources:
  pg: {type: postgres, url: "${PG_URL}", tables: ["public.*"], snapshot: {mode: initial, chunk_rows: 20}}
sinks:
  copy: {from: [pg], type: postgres, url: "${TARGET_URL}", schema: copy, dlq: true}
  log: {from: [pg], type: postgres, url: "${TARGET_URL}", schema: log, mode: changelog}
`

func newCopy(t *testing.T) *copyScene {
	t.Helper()
	s := &copyScene{pg: harness.StartPostgres(t, harness.PostgresConfig{})}
	if err := s.pg.Exec(t.Context(), "postgres", "CREATE DATABASE target"); err != nil {
		t.Fatal(err)
	}
	s.source(t, "CREATE TABLE marks (id int PRIMARY KEY); CREATE TABLE busy (id int PRIMARY KEY, n int)")
	s.source(t, "INSERT INTO busy SELECT i, 0 FROM generate_series(1, 500) i")
	s.mesh = mesh.Up(t, []string{"PG_URL=" + s.pg.URL("postgres"), "TARGET_URL=" + s.pg.URL("target")})
	s.mesh.Submit(t, "copy", copySpec)
	var err error
	if s.look, err = s.pg.Connect(t.Context(), "target"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.look.Close(context.WithoutCancel(t.Context())) })
	return s
}

func (s *copyScene) source(t *testing.T, sql string) {
	t.Helper()
	if err := s.pg.Exec(t.Context(), "postgres", sql); err != nil {
		t.Fatal(err)
	}
}

// load changes rows without a pause until stop is called.
func (s *copyScene) load(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	conn, err := s.pg.Connect(ctx, "postgres")
	if err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	work.Go(func() {
		defer conn.Close(context.WithoutCancel(ctx))
		for i := 0; ctx.Err() == nil; i++ {
			_, err := conn.Exec(ctx, "UPDATE busy SET n = n + 1 WHERE id % 50 = $1", i%50)
			if err != nil && ctx.Err() == nil {
				t.Errorf("load: %v", err)
				return
			}
		}
	})
	return func() {
		cancel()
		work.Wait()
	}
}

// atOnce is how many wait at the same time.
const atOnce = 4

// A wait for caught-up is over only when what was committed before it is visible at every sink, under load, whoever else waits;
// WEIR_CAUGHT_UP is how often it is tried.
func (s *copyScene) visible(t *testing.T) {
	times := harness.Number(t, "WEIR_CAUGHT_UP", 8)
	var mu sync.Mutex
	var took []time.Duration
	var next atomic.Int64
	var waiters errgroup.Group
	for range atOnce {
		waiters.Go(func() error {
			look, err := s.pg.Connect(t.Context(), "target")
			if err != nil {
				return err
			}
			defer look.Close(context.WithoutCancel(t.Context()))
			for id := next.Add(1); id <= int64(times); id = next.Add(1) {
				d, err := s.waitFor(t, look, 1_000_000+id)
				if err != nil {
					return fmt.Errorf("wait %d: %w", id, err)
				}
				mu.Lock()
				took = append(took, d)
				mu.Unlock()
			}
			return nil
		})
	}
	if err := waiters.Wait(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(took)
	t.Logf("%d waits, %d at once, took %s to %s, half of them at most %s", len(took), atOnce, took[0], took[len(took)-1], took[len(took)/2])
}

// waitFor commits a row at the source, waits, and looks for it at the sinks.
func (s *copyScene) waitFor(t *testing.T, look *pgx.Conn, id int64) (time.Duration, error) {
	if err := s.pg.Exec(t.Context(), "postgres", fmt.Sprintf("INSERT INTO marks VALUES (%d)", id)); err != nil {
		return 0, err
	}
	began := time.Now()
	a, err := s.mesh.Weir(t.Context(), "status", "copy", "--wait-for", "caught-up", "--timeout", "90s")
	if err != nil || a.Exit != 0 {
		return 0, fmt.Errorf("%s: %w", a, err)
	}
	took := time.Since(began)
	for _, sink := range []string{"copy", "log"} {
		var there bool
		if err := look.QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM "+sink+".marks WHERE id = $1)", id).Scan(&there); err != nil {
			return 0, err
		}
		if !there {
			return 0, fmt.Errorf("it was over before the row of before it was visible at sink %s", sink)
		}
	}
	return took, nil
}
