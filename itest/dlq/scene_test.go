package dlq

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/itest/mesh"
)

const job = "shop"

// scene is a job from the database "source" to "target" of one server, in processes of their own.
type scene struct {
	*mesh.Mesh
	pg *harness.Postgres
}

// start makes a target that does not take orders of "bad", and a mesh; the job is not there yet.
func start(t *testing.T, roles ...mesh.Role) *scene {
	t.Helper()
	s := &scene{pg: harness.StartPostgres(t, harness.PostgresConfig{})}
	for _, db := range []string{"source", "target"} {
		if err := s.pg.CreateDatabase(t.Context(), db); err != nil {
			t.Fatal(err)
		}
	}
	s.at(t, "source", "CREATE TABLE orders (id int PRIMARY KEY, v text)")
	s.at(t, "target", "CREATE SCHEMA out; CREATE TABLE out.orders (id int PRIMARY KEY, v text CONSTRAINT good CHECK (v <> 'bad'))")
	s.Mesh = mesh.Start(t, mesh.Config{Roles: roles, Env: []string{
		"SOURCE_URL=" + s.pg.URL("source"), "TARGET_URL=" + s.pg.URL("target"),
	}})
	return s
}

func (s *scene) submit(t *testing.T, dlq bool) {
	t.Helper()
	s.Submit(t, job, fmt.Sprintf(`apiVersion: weir/v1
job: %s
epoch: {interval: 100ms}
restart: {backoff: 100ms, cap: 1000}
sources:
  db: {type: postgres, url: "${SOURCE_URL}", tables: [public.orders], snapshot: {mode: initial}}
sinks:
  wh: {from: [db], type: postgres, url: "${TARGET_URL}", schema: out, existing: keep, dlq: %t}
`, job, dlq))
}

func (s *scene) at(t *testing.T, db, sql string) {
	t.Helper()
	if err := s.pg.Exec(t.Context(), db, sql); err != nil {
		t.Fatalf("%v\n%.400s", err, sql)
	}
}

// number asks the target for one number.
func (s *scene) number(t *testing.T, sql string) int64 {
	t.Helper()
	n, err := harness.Value[int64](t.Context(), s.pg, "target", sql)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// good heals the target.
func (s *scene) good(t *testing.T) {
	t.Helper()
	s.at(t, "target", "ALTER TABLE out.orders DROP CONSTRAINT good")
}

// equal compares source and target row by row, but for rows that are bad.
func (s *scene) equal(t *testing.T, where string) {
	t.Helper()
	const sum = "SELECT coalesce(string_agg(id || ' ' || v, ',' ORDER BY id), '') FROM "
	want, err := harness.Value[string](t.Context(), s.pg, "source", sum+"orders "+where)
	if err != nil {
		t.Fatal(err)
	}
	got, err := harness.Value[string](t.Context(), s.pg, "target", sum+"out.orders")
	if err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Errorf("the target has\n%.2000s\nwant\n%.2000s", got, want)
	}
}

type letter struct {
	ID, Sink, Table, Code, Op, Life string
	Epoch                           uint64
	Index                           int
	At                              time.Time
}

func (s *scene) letters(t *testing.T) []letter {
	t.Helper()
	var all []letter
	if err := s.Must(t, "dlq", "list", job, "--json").Data(&all); err != nil {
		t.Fatal(err)
	}
	return all
}

// wantLetters compares the keys of all letters, read one by one, with the rows that are bad at the source.
func (s *scene) wantLetters(t *testing.T) {
	t.Helper()
	var got []string
	for _, l := range s.letters(t) {
		var whole struct{ Key struct{ ID int } }
		if err := s.Must(t, "dlq", "show", job, l.ID, "--json").Data(&whole); err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%06d", whole.Key.ID))
	}
	slices.Sort(got)
	want, err := harness.Value[string](t.Context(), s.pg, "source",
		"SELECT coalesce(string_agg(lpad(id::text, 6, '0'), ',' ORDER BY id), '') FROM orders WHERE v = 'bad'")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Join(got, ",") != want {
		t.Errorf("letters for %s, want %s", strings.Join(got, ","), want)
	}
}

// phase waits for a phase of the job.
func (s *scene) phase(t *testing.T, want string) mesh.Status {
	t.Helper()
	var st mesh.Status
	harness.Await(t, 60*time.Second, "phase "+want, func(context.Context) error {
		if st = s.Status(t, job); st.Phase != want {
			return fmt.Errorf("the job is %s: %s", st.Phase, st.Reason.Text)
		}
		return nil
	})
	return st
}
