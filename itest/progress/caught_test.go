package progress

import (
	"context"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/itest/mesh"
)

// copyScene is a job from one PostgreSQL to another, all in one process.
type copyScene struct {
	t    *testing.T
	pg   *harness.Postgres
	mesh *mesh.Mesh
	look *pgx.Conn
}

const copySpec = `apiVersion: weir/v1
job: copy
epoch: {interval: 500ms}
sources:
  pg: {type: postgres, url: "${PG_URL}", tables: ["public.*"]}
sinks:
  copy: {from: [pg], type: postgres, url: "${TARGET_URL}", schema: copy}
`

func newCopy(t *testing.T) *copyScene {
	t.Helper()
	s := &copyScene{t: t, pg: harness.StartPostgres(t, harness.PostgresConfig{})}
	if err := s.pg.Exec(t.Context(), "postgres", "CREATE DATABASE target"); err != nil {
		t.Fatal(err)
	}
	s.source("CREATE TABLE marks (id int PRIMARY KEY); CREATE TABLE busy (id int PRIMARY KEY, n int)")
	s.source("INSERT INTO busy SELECT i, 0 FROM generate_series(1, 500) i")
	s.mesh = mesh.Up(t, []string{"PG_URL=" + s.pg.URL("postgres"), "TARGET_URL=" + s.pg.URL("target")})
	s.mesh.Submit(t, "copy", copySpec)
	var err error
	if s.look, err = s.pg.Connect(t.Context(), "target"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.look.Close(context.WithoutCancel(t.Context())) })
	return s
}

func (s *copyScene) source(sql string) {
	s.t.Helper()
	if err := s.pg.Exec(s.t.Context(), "postgres", sql); err != nil {
		s.t.Fatal(err)
	}
}

// load changes rows without a pause until stop is called.
func (s *copyScene) load() (stop func()) {
	ctx, cancel := context.WithCancel(s.t.Context())
	conn, err := s.pg.Connect(ctx, "postgres")
	if err != nil {
		s.t.Fatal(err)
	}
	var work sync.WaitGroup
	work.Go(func() {
		defer conn.Close(context.WithoutCancel(ctx))
		for i := 0; ctx.Err() == nil; i++ {
			_, err := conn.Exec(ctx, "UPDATE busy SET n = n + 1 WHERE id % 50 = $1", i%50)
			if err != nil && ctx.Err() == nil {
				s.t.Errorf("load: %v", err)
				return
			}
		}
	})
	return func() {
		cancel()
		work.Wait()
	}
}
