package progress

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/itest/mesh"
	"weir.dev/weir/pkg/progress"
	"weir.dev/weir/pkg/report"
)

// canary is in the names of tables; no metric may have it.
const canary = "canary"

const bothSpec = `apiVersion: weir/v1
job: shop
epoch: {interval: 250ms, timeout: 10s}
restart: {backoff: 200ms, cap: 1000}
sources:
  pg:
    type: postgres
    url: ${PG_URL}
    tables: ["public.canary_*"]
    readers: 3
    snapshot: {mode: initial, chunk_rows: 100}
  my:
    type: mysql
    url: ${MY_URL}
    tables: ["canary.goods_*"]
    readers: 2
    snapshot: {mode: initial, chunk_rows: 100}
sinks:
  copy:
    from: [pg, my]
    type: postgres
    url: ${TARGET_URL}
    schema: copy
    dlq: true
  lake:
    from: [pg]
    type: files
    mode: append
    files: {path: "${LAKE}", format: jsonl}
`

// scene is a job with two databases as its sources, in separate processes, with two progress services.
type scene struct {
	t      *testing.T
	pg     *harness.Postgres
	my     *harness.MySQL
	target *harness.Postgres
	mesh   *mesh.Mesh
	lake   string // where the sink of files writes
	alerts *prometheus
}

const (
	rowsBefore = 8_000
	// keepLimit is the size of log at which the PostgreSQL server gives a slot up.
	keepLimit = 1 << 30
)

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{
		t: t, pg: harness.StartPostgres(t, harness.PostgresConfig{}), my: harness.StartMySQL(t, harness.MySQLConfig{}),
		target: harness.StartPostgres(t, harness.PostgresConfig{}), lake: t.TempDir(),
	}
	s.source(fmt.Sprintf("ALTER SYSTEM SET max_slot_wal_keep_size = '%dMB'", keepLimit>>20))
	s.source("SELECT pg_reload_conf()")
	s.source("CREATE TABLE canary_a (id int PRIMARY KEY, v text); CREATE TABLE canary_b (id int PRIMARY KEY, v text); CREATE TABLE canary_empty (id int PRIMARY KEY)")
	s.source(fmt.Sprintf("INSERT INTO canary_a SELECT i, 'x' FROM generate_series(1, %d) i; INSERT INTO canary_b SELECT i, 'y' FROM generate_series(1, 900) i", rowsBefore))
	s.mysql("", "CREATE DATABASE canary")
	for _, table := range []string{"goods_a", "goods_b"} {
		s.mysql("canary", "CREATE TABLE "+table+" (id int PRIMARY KEY, v varchar(20))")
		s.mysql("canary", "INSERT INTO "+table+" WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 900) SELECT i, 'z' FROM n")
	}
	s.mesh = mesh.Start(t, mesh.Config{
		Roles: []mesh.Role{mesh.Coordinator, mesh.CDCPostgres, mesh.CDCMySQL, mesh.Sink, mesh.Progress, mesh.Progress},
		Env:   []string{"PG_URL=" + s.pg.URL("postgres"), "MY_URL=" + s.my.URL("canary"), "TARGET_URL=" + s.target.URL("postgres"), "LAKE=" + s.lake},
	})
	s.alerts = startPrometheus(t, s.mesh.Of(mesh.Progress)[0])
	return s
}

func (s *scene) source(sql string) {
	s.t.Helper()
	if err := s.pg.Exec(s.t.Context(), "postgres", sql); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) mysql(database, sql string) {
	s.t.Helper()
	if err := s.my.Exec(s.t.Context(), database, sql); err != nil {
		s.t.Fatal(err)
	}
}

// ask reads one path of a progress service.
func ask(ctx context.Context, m *mesh.Member, path string, into any) error {
	body, err := harness.Get(ctx, m.HTTP+path)
	if err != nil {
		return err
	}
	return json.Unmarshal(body, into)
}

// detail is what the service says of the job now.
func (s *scene) detail(ctx context.Context) (d progress.Detail, err error) {
	return d, ask(ctx, s.mesh.Of(mesh.Progress)[0], "/v1/jobs/shop", &d)
}

// until waits for a detail that ok likes; every one on the way is held against what must always be so.
func (s *scene) until(within time.Duration, what string, ok func(*progress.Detail) error) progress.Detail {
	s.t.Helper()
	var last progress.Detail
	harness.Await(s.t, within, what, func(ctx context.Context) error {
		d, err := s.detail(ctx)
		if err != nil {
			return err
		}
		s.judge(&d)
		last = d
		return ok(&d)
	})
	return last
}

// judge holds a detail against what must be so at every moment.
func (s *scene) judge(d *progress.Detail) {
	s.t.Helper()
	for i := range d.Sources {
		src := &d.Sources[i]
		if err := src.State().Validate(); err != nil {
			s.t.Errorf("%s: %v", src.Name, err)
		}
		if m := src.Summary; m.Fresh+m.Stale+m.Missing != m.Tasks {
			s.t.Errorf("%s: %+v", src.Name, m)
		}
		if e := src.Enumerator; e != nil {
			assigned, _ := e.Assigned.Get()
			completed, _ := e.Completed.Get()
			running, _ := e.Running.Get()
			if assigned != completed+running {
				s.t.Errorf("%s: %d splits assigned, %d completed and %d running", src.Name, assigned, completed, running)
			}
			parts := splitsOf(src)
			if prepared, _ := e.PreparedUnsent.Get(); parts.Completed != completed || parts.Running != running || parts.Prepared != prepared {
				s.t.Errorf("%s: tables have %+v, the source %d, %d and %d", src.Name, parts, completed, running, prepared)
			}
			if open, _ := e.TablesNotChunked.Get(); open > 0 {
				if _, known := src.Summary.Total.Get(); known {
					s.t.Errorf("%s: a total while %d tables are not cut", src.Name, open)
				}
			}
		}
		s.watermarks(src)
		for _, r := range src.Readers {
			family := map[string]string{"pg": "POSTGRES_LSN", "my": "MYSQL_"}[src.Name]
			if p, ok := r.Consumed.Get(); ok && !strings.HasPrefix(string(p.Type), family) {
				s.t.Errorf("%s is at a position of %s", r.Subtask, p.Type)
			}
		}
	}
}

// splitsOf adds up the splits of a source's tables.
func splitsOf(src *progress.Source) (sum report.Splits) {
	for _, t := range src.Tables {
		if p := t.Splits; p != nil {
			sum.Completed, sum.Running, sum.Prepared = sum.Completed+p.Completed, sum.Running+p.Running, sum.Prepared+p.Prepared
		}
	}
	return sum
}

// live says what a detail lacks to be of a job that follows both logs.
func live(d *progress.Detail) error {
	if len(d.Sources) != 2 || d.CDC == nil || len(d.CDC.Sources) != 2 {
		return errors.New("not of two sources")
	}
	for _, src := range d.Sources {
		if src.Lifecycle != report.Incremental {
			return fmt.Errorf("%s is %s", src.Name, src.Lifecycle)
		}
		for _, r := range src.Readers {
			if _, ok := r.Completed.Get(); !ok && !r.Copies {
				return fmt.Errorf("%s has completed nothing", r.Subtask)
			}
		}
	}
	return nil
}
