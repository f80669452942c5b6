package cdcmysql

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/itest/mesh"
)

// rosterSpec is a job with these tables.
func rosterSpec(patterns string) string {
	return fmt.Sprintf(`apiVersion: weir/v1
job: shop
epoch: {interval: 200ms}
restart: {backoff: 100ms, cap: 1000}
sources:
  db: {type: mysql, url: "${SOURCE_URL}", tables: [%s], snapshot: {chunk_rows: 100}}
sinks:
  copy: {from: [db], type: postgres, url: "${TARGET_URL}", schema: copy, allow: [truncate]}
`, patterns)
}

// Tables are added to a running job, leave it and come back, while all of them are written to, and one that was dropped, or made
// again, stops it with the command that mends it (O31).
func TestTablesOfARunningJob(t *testing.T) {
	t.Parallel()
	target := harness.StartPostgres(t, harness.PostgresConfig{})
	values := make([]string, 1000)
	for i := range values {
		values[i] = fmt.Sprintf("(%d, 0)", i)
	}
	run(t, mysql, "CREATE DATABASE roster")
	for _, table := range []string{"a", "b"} {
		run(t, mysql, "CREATE TABLE roster."+table+" (id int PRIMARY KEY, n int)", "INSERT INTO roster."+table+" VALUES "+strings.Join(values, ", "))
	}
	m := begin(t, rosterSpec(`"roster.a"`), mysql.URL(""), target.URL("postgres"))
	m.CaughtUp(t, "shop")
	ctx, stop := context.WithCancel(t.Context())
	written := make(chan error, 1)
	go func() { written <- write(ctx) }()
	added, removed := apply(t, m, `"roster.a", "roster.b"`)
	if !slices.Equal(added, []string{"db/roster.b"}) || len(removed) != 0 {
		t.Errorf("added %v, removed %v", added, removed)
	}
	run(t, mysql, "CREATE TABLE roster.c (id int PRIMARY KEY, n int)", "INSERT INTO roster.c VALUES (1, 1)")
	if added, removed = apply(t, m, `"roster.*", "!roster.a"`); !slices.Equal(added, []string{"db/roster.c"}) || !slices.Equal(removed, []string{"db/roster.a"}) {
		t.Errorf("added %v, removed %v", added, removed)
	}
	if added, _ = apply(t, m, `"roster.*"`); !slices.Equal(added, []string{"db/roster.a"}) {
		t.Errorf("added %v", added)
	}
	m.CaughtUp(t, "shop")
	run(t, mysql, "DROP TABLE roster.c", "CREATE TABLE roster.c (id int PRIMARY KEY, m int, n int)", "INSERT INTO roster.c VALUES (2, 3, 4)")
	command := advised.FindStringSubmatch(wantStop(t, m, "WEIR-MY-019"))
	if command == nil || command[1] != "job resnapshot shop roster.c" {
		t.Fatalf("advised is %q", command)
	}
	m.Must(t, strings.Fields(command[1])...)
	m.CaughtUp(t, "shop")
	run(t, mysql, "DROP TABLE roster.c")
	wantStop(t, m, "WEIR-MY-019")
	if _, removed = apply(t, m, `"roster.*"`); len(removed) != 0 { // nobody knows what a job that stood still had
		t.Errorf("removed %v", removed)
	}
	stop()
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	m.CaughtUp(t, "shop")
	for _, table := range []string{"a", "b"} {
		want, err := mysql.Text(t.Context(), "", "SELECT CONCAT_WS(' ', COUNT(*), SUM(id), SUM(n), SUM(id * n)) FROM roster."+table)
		if err != nil {
			t.Fatal(err)
		}
		got, err := harness.Value[string](t.Context(), target, "postgres", "SELECT concat_ws(' ', count(*), sum(id), sum(n), sum(id::bigint * n)) FROM copy."+table)
		if err != nil || got != want {
			t.Errorf("%s at the target: %s, %v; want %s", table, got, err, want)
		}
	}
	if got, err := harness.Value[string](t.Context(), target, "postgres", "SELECT concat_ws(' ', id, n, m) FROM copy.c"); err != nil || got != "2 4 3" {
		t.Errorf("c at the target: %s, %v", got, err)
	}
	m.Verify(t, "shop")
}

// write changes the tables until ctx ends.
func write(ctx context.Context) error {
	conn, err := mysql.Connect(ctx, "roster")
	if err != nil {
		return err
	}
	defer conn.Close()
	for i := 0; harness.Pause(ctx, 5*time.Millisecond) == nil; i++ {
		for _, table := range []string{"a", "b"} {
			for _, sql := range []string{
				fmt.Sprintf("UPDATE %s SET n = n + 1 WHERE id MOD 50 = %d", table, i%50), fmt.Sprintf("DELETE FROM %s WHERE id = %d", table, i*7%1000),
				fmt.Sprintf("REPLACE INTO %s VALUES (%d, %d)", table, i*3%1500, i),
			} {
				if _, err := conn.Execute(sql); err != nil {
					return errors.Join(err, errors.New(sql))
				}
			}
		}
	}
	return nil
}

// apply applies the job with these tables, and returns what the command says.
func apply(t *testing.T, m *mesh.Mesh, patterns string) (added, removed []string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "changed.yaml")
	if err := os.WriteFile(file, []byte(rosterSpec(patterns)), 0o600); err != nil {
		t.Fatal(err)
	}
	var a struct{ Added, Removed []string }
	if err := m.Must(t, "--json", "job", "apply", file).Data(&a); err != nil {
		t.Fatal(err)
	}
	return a.Added, a.Removed
}
