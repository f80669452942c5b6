package schema

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/itest/mesh"
)

var source, target *harness.Postgres

func TestMain(m *testing.M) {
	for _, pg := range []**harness.Postgres{&source, &target} {
		started, err := harness.RunPostgres(context.Background(), harness.PostgresConfig{
			Settings: map[string]string{"max_replication_slots": "40", "max_wal_senders": "40"},
		})
		if err != nil {
			panic(err)
		}
		*pg = started
	}
	m.Run()
	for _, pg := range []*harness.Postgres{source, target} {
		if err := pg.Close(); err != nil {
			panic(err)
		}
	}
}

// scene is one job between databases of its own.
type scene struct {
	*mesh.Mesh
	db  string // at both servers
	dir string // of files
}

const head = `apiVersion: weir/v1
job: schema
epoch: {interval: 100ms}
restart: {backoff: 100ms, cap: 1000}
sources:
  db: {type: postgres, url: "${SOURCE_URL}", tables: ["public.*"], snapshot: {mode: initial}}
sinks:
`

// sink is the spec of a sink under a behaviour, which is also its name and its schema.
func sink(name, behaviour, more string) string {
	return fmt.Sprintf("  %s: {from: [db], type: postgres, url: \"${TARGET_URL}\", schema: %[1]s, schema_change: %s%s}\n", name, behaviour, more)
}

// start makes tables with rows at the source and has them copied.
func start(t *testing.T, tables, sinks string) *scene {
	t.Helper()
	s := &scene{db: fmt.Sprintf("d%d", time.Now().UnixNano()), dir: t.TempDir()}
	for _, pg := range []*harness.Postgres{source, target} {
		if err := pg.CreateDatabase(t.Context(), s.db); err != nil {
			t.Fatal(err)
		}
	}
	s.at(t, source, tables)
	job := filepath.Join(t.TempDir(), "schema.yaml")
	if err := os.WriteFile(job, []byte(head+strings.ReplaceAll(sinks, "{dir}", s.dir)), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Mesh = mesh.Up(t, []string{"SOURCE_URL=" + source.URL(s.db), "TARGET_URL=" + target.URL(s.db)}, job)
	s.Must(t, "status", "schema", "--wait-for", "running", "--timeout", "60s")
	s.CaughtUp(t, "schema")
	return s
}

func (s *scene) at(t *testing.T, pg *harness.Postgres, sql string) {
	t.Helper()
	if err := pg.Exec(t.Context(), s.db, sql); err != nil {
		t.Fatalf("%v\n%.400s", err, sql)
	}
}

// rows shows a table: names and types of its columns, then its rows by the first column.
func (s *scene) rows(t *testing.T, pg *harness.Postgres, table string) string {
	t.Helper()
	conn, err := pg.Connect(t.Context(), s.db)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	found, err := conn.Query(t.Context(), "SELECT string_agg(quote_ident(attname) || ' ' || format_type(atttypid, atttypmod), ', ' ORDER BY attname)"+
		" FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped", table)
	if err != nil {
		t.Fatal(err)
	}
	columns, err := pgx.CollectExactlyOneRow(found, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	found, err = conn.Query(t.Context(), "SELECT to_jsonb(t)::text FROM "+table+" t ORDER BY 1")
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(found, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return columns + "\n" + strings.Join(lines, "\n")
}

// wantRows compares a target's table with what is written down.
func (s *scene) wantRows(t *testing.T, table string, lines ...string) {
	t.Helper()
	if got, want := s.rows(t, target, table), strings.Join(lines, "\n"); got != want {
		t.Errorf("%s is\n%s\nwant\n%s", table, got, want)
	}
}

// wantSame compares a target's table with the source's.
func (s *scene) wantSame(t *testing.T, schema, table string) {
	t.Helper()
	if got, want := s.rows(t, target, schema+"."+table), s.rows(t, source, "public."+table); got != want {
		t.Errorf("%s.%s is\n%s\nthe source has\n%s", schema, table, got, want)
	}
}

// wantStop waits until the job has failed and checks why.
func (s *scene) wantStop(t *testing.T, code string, says ...string) {
	t.Helper()
	harness.Await(t, 60*time.Second, "the job to stop", func(context.Context) error {
		if phase := s.Status(t, "schema").Phase; !strings.EqualFold(phase, "failed") {
			return fmt.Errorf("the job is %s", phase)
		}
		return nil
	})
	reason := s.Status(t, "schema").Reason
	if reason.Code != code {
		t.Fatalf("stopped by %+v, want %s", reason, code)
	}
	for _, part := range says {
		if !strings.Contains(reason.Text+" "+reason.Remedy, part) {
			t.Errorf("the reason does not say %q: %+v", part, reason)
		}
	}
}
