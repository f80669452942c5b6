package dlq

import (
	"os"
	"path/filepath"
	"testing"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/itest/mesh"
)

const mysqlSpec = `apiVersion: weir/v1
job: shop
epoch: {interval: 100ms}
restart: {backoff: 100ms, cap: 1000}
sources:
  db: {type: mysql, url: "${SERVER_URL}", tables: [shop.orders]}
sinks:
  wh: {from: [db], type: mysql, url: "${SERVER_URL}", database: out, existing: keep, dlq: true}
`

// TestTheLifeOfAMySQLLetter replays letters into MySQL: refused while the target refuses them, applied once, and not over a later change.
func TestTheLifeOfAMySQLLetter(t *testing.T) {
	server := harness.StartMySQL(t, harness.MySQLConfig{})
	at := func(statements ...string) {
		t.Helper()
		for _, sql := range statements {
			if err := server.Exec(t.Context(), "", sql); err != nil {
				t.Fatalf("%v\n%.400s", err, sql)
			}
		}
	}
	want := func(text string) {
		t.Helper()
		got, err := server.Text(t.Context(), "", "SELECT GROUP_CONCAT(id, ' ', v ORDER BY id) FROM `out`.orders")
		if err != nil || got != text {
			t.Errorf("the target has %q, %v; want %q", got, err, text)
		}
	}
	at("CREATE DATABASE shop", "CREATE TABLE shop.orders (id int PRIMARY KEY, v varchar(50))", "CREATE DATABASE `out`",
		"CREATE TABLE `out`.orders (id int PRIMARY KEY, v varchar(50), CONSTRAINT good CHECK (v <> 'bad'))",
		"INSERT INTO shop.orders VALUES (1, 'good'), (2, 'bad'), (3, 'bad'), (4, 'good')")
	file := filepath.Join(t.TempDir(), "shop.yaml")
	if err := os.WriteFile(file, []byte(mysqlSpec), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &scene{Mesh: mesh.Up(t, []string{"SERVER_URL=" + server.URL("")}, file)}
	s.CaughtUp(t, job)
	want("1 good,4 good")
	all := s.letters(t)
	if len(all) != 2 {
		t.Fatalf("letters %+v", all)
	}
	if a := s.Ask(t, "dlq", "replay", job, all[0].ID); a.Exit != 3 {
		t.Errorf("replay into a target that refuses: %s", a)
	}
	at("UPDATE shop.orders SET v = 'better' WHERE id = 3")
	s.CaughtUp(t, job)
	at("ALTER TABLE `out`.orders DROP CONSTRAINT good")
	if a := s.Ask(t, "dlq", "replay", job, "--all"); a.Exit != 2 {
		t.Errorf("replay of a letter with a later change: %s", a)
	}
	want("1 good,2 bad,3 better,4 good")
	if left := s.letters(t); len(left) != 1 || left[0].Code != "WEIR-SINK-005" {
		t.Errorf("letters after the replay: %+v", left)
	}
	at("DELETE FROM shop.orders WHERE id = 2")
	s.CaughtUp(t, job)
	want("1 good,3 better,4 good")
	s.Verify(t, job)
}
