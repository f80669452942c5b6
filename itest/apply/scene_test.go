package apply

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/itest/mesh"
	"weir.dev/weir/services/weir/verify/audit"
)

const name = "shop"

var source, target *harness.Postgres

func TestMain(m *testing.M) {
	for _, pg := range []**harness.Postgres{&source, &target} {
		started, err := harness.RunPostgres(context.Background(), harness.PostgresConfig{})
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

// scene is a mesh between databases of its own, with the job that it runs.
type scene struct {
	*mesh.Mesh
	db string // at both servers
}

// begin makes the databases.
func begin(t *testing.T) *scene {
	t.Helper()
	s := &scene{db: fmt.Sprintf("d%d", time.Now().UnixNano())}
	for _, pg := range []*harness.Postgres{source, target} {
		if err := pg.CreateDatabase(t.Context(), s.db); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// run starts the mesh and the job.
func (s *scene) run(t *testing.T, spec string) {
	t.Helper()
	s.Mesh = mesh.Start(t, mesh.Config{
		Roles: []mesh.Role{mesh.Coordinator, mesh.CDCPostgres, mesh.Sink},
		Env:   []string{"SOURCE_URL=" + source.URL(s.db), "TARGET_URL=" + target.URL(s.db)},
	})
	s.Submit(t, name, spec)
}

func (s *scene) connect(t *testing.T, pg *harness.Postgres) *pgx.Conn {
	t.Helper()
	conn, err := pg.Connect(t.Context(), s.db)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

func (s *scene) at(t *testing.T, pg *harness.Postgres, sql string) {
	t.Helper()
	if err := pg.Exec(t.Context(), s.db, sql); err != nil {
		t.Fatalf("%v\n%.400s", err, sql)
	}
}

// application is what `weir job apply --json` says.
type application struct {
	Epoch                    uint64
	Settings, Added, Removed []string
	Tables                   bool
}

// apply applies a spec.
func (s *scene) apply(t *testing.T, spec string) application {
	t.Helper()
	var a application
	if err := s.Must(t, "--json", "job", "apply", s.File(t, "changed.yaml", spec)).Data(&a); err != nil {
		t.Fatal(err)
	}
	return a
}

// wantSame compares tables, given by their names at the source, with their copies.
func (s *scene) wantSame(t *testing.T, tables ...string) {
	t.Helper()
	cfg := audit.CompareConfig{SourceURL: source.URL(s.db), TargetURL: target.URL(s.db), Values: true}
	for _, table := range tables {
		_, short, _ := strings.Cut(table, ".")
		cfg.Tables = append(cfg.Tables, audit.TablePair{Source: table, Target: "copy." + short})
	}
	all, err := audit.CompareTables(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		if !c.Equal() {
			t.Error(c)
		}
	}
}

// wantStop waits until the job has failed and returns the remedy that it names.
func (s *scene) wantStop(t *testing.T, code string) string {
	t.Helper()
	harness.Await(t, 60*time.Second, "the job to stop", func(context.Context) error {
		if phase := s.Status(t, name).Phase; phase != "FAILED" {
			return fmt.Errorf("the job is %s", phase)
		}
		return nil
	})
	reason := s.Status(t, name).Reason
	if reason.Code != code {
		t.Fatalf("stopped by %+v, want %s", reason, code)
	}
	return reason.Remedy
}
