package cdcmysql

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/itest/mesh"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/spec"
)

// A log that is purged behind what is committed is found out while the job runs: it could not be taken up again (O24).
func TestPurgedWhileRunning(t *testing.T) {
	t.Parallel()
	for name, server := range kinds(t) {
		if name == "gtid" { // the other tests need the log of the one that is shared
			server = harness.StartMySQL(t, harness.MySQLConfig{})
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, server, "CREATE DATABASE d", "CREATE TABLE d.t (id int PRIMARY KEY)")
			a := start(t, server, spec.SnapshotNever, "d.*")
			run(t, server, "INSERT INTO d.t VALUES (1)")
			a.take(t, 1)
			purge(t, server)
			e, ok := errors.AsType[*fault.Error](a.failure(t))
			if !ok || e.Code != fault.MYPurged || !strings.Contains(e.Remedy, "weir job resnapshot shop") {
				t.Errorf("%v, want %s with the remedy", e, fault.MYPurged)
			}
		})
	}
}

// purge has a server forget its log, however often it says that some of it is still in use.
func purge(t *testing.T, server *harness.MySQL) {
	t.Helper()
	run(t, server, "FLUSH BINARY LOGS")
	conn, err := server.Connect(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	harness.Await(t, patience, "the log to be purged", func(context.Context) error {
		files, err := conn.Execute("SHOW BINARY LOGS")
		if err != nil || files.RowNumber() == 1 {
			return err
		}
		last, err := files.GetString(files.RowNumber()-1, 0)
		if err == nil {
			_, err = conn.Execute("PURGE BINARY LOGS TO '" + last + "'")
		}
		return errors.Join(err, fmt.Errorf("%d files are left", files.RowNumber()))
	})
}

const lostSpec = `apiVersion: weir/v1
job: shop
epoch: {interval: 200ms}
restart: {backoff: 100ms, cap: 1000}
sources:
  db: {type: mysql, url: "${SOURCE_URL}", tables: ["lost.*"], snapshot: {chunk_rows: 100}}
sinks:
  copy: {from: [db], type: postgres, url: "${TARGET_URL}", schema: copy, allow: [truncate]}
`

// advised finds the command in a remedy.
var advised = regexp.MustCompile("`weir (job resnapshot [^`]*)`")

// A log that was purged or reset while nobody read it stops the job by its name, and the command that the stop
// advises mends it: whatever was written meanwhile, the target equals the source (O24).
func TestLogIsLost(t *testing.T) {
	t.Parallel()
	target := harness.StartPostgres(t, harness.PostgresConfig{})
	for _, c := range []struct {
		name, code, reset string // nothing to reset is log that is purged
		config            harness.MySQLConfig
	}{
		{"purged", "WEIR-MY-009", "", harness.MySQLConfig{}},
		{"reset", "WEIR-MY-010", "RESET BINARY LOGS AND GTIDS", harness.MySQLConfig{NoGTID: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := harness.StartMySQL(t, c.config)
			database := "lost_" + c.name
			if err := target.CreateDatabase(t.Context(), database); err != nil {
				t.Fatal(err)
			}
			values := make([]string, 500)
			for i := range values {
				values[i] = fmt.Sprintf("(%d, 'x')", i)
			}
			run(t, server, "CREATE DATABASE lost", "CREATE TABLE lost.a (id int PRIMARY KEY, v varchar(10))", "CREATE TABLE lost.b (id int PRIMARY KEY)",
				"INSERT INTO lost.a VALUES "+strings.Join(values, ", "))
			m := begin(t, lostSpec, server.URL(""), target.URL(database))
			m.CaughtUp(t, "shop")
			run(t, server, "UPDATE lost.a SET v = 'y' WHERE id < 5")
			m.CaughtUp(t, "shop")
			m.Members[0].Kill()
			run(t, server, "DELETE FROM lost.a WHERE id = 7")
			if c.reset != "" {
				run(t, server, c.reset)
			} else {
				purge(t, server)
			}
			if err := m.Members[0].Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			run(t, server, "UPDATE lost.a SET v = 'lost' WHERE id < 100", "DELETE FROM lost.a WHERE id BETWEEN 200 AND 300", "INSERT INTO lost.b VALUES (1)")
			remedy := wantStop(t, m, c.code)
			command := advised.FindStringSubmatch(remedy)
			if command == nil {
				t.Fatalf("no command in %q", remedy)
			}
			m.Must(t, strings.Fields(command[1])...)
			run(t, server, "INSERT INTO lost.a VALUES (5000, 'new')", "DELETE FROM lost.a WHERE id = 2")
			m.CaughtUp(t, "shop")
			wantSame(t, server, target, database)
			m.Verify(t, "shop")
		})
	}
}

// begin runs a job in one process.
func begin(t *testing.T, job, source, target string) *mesh.Mesh {
	t.Helper()
	file := filepath.Join(t.TempDir(), "shop.yaml")
	if err := os.WriteFile(file, []byte(job), 0o600); err != nil {
		t.Fatal(err)
	}
	return mesh.Up(t, []string{"SOURCE_URL=" + source, "TARGET_URL=" + target}, file)
}

// wantStop waits until the job has failed and returns the remedy that it names.
func wantStop(t *testing.T, m *mesh.Mesh, code string) string {
	t.Helper()
	harness.Await(t, 60*time.Second, "the job to stop", func(context.Context) error {
		if phase := m.Status(t, "shop").Phase; phase != "FAILED" {
			return fmt.Errorf("the job is %s", phase)
		}
		return nil
	})
	reason := m.Status(t, "shop").Reason
	if reason.Code != code {
		t.Fatalf("stopped by %+v, want %s", reason, code)
	}
	return reason.Remedy
}

// wantSame compares the rows of lost.a, and the number of those of lost.b, with their copies.
func wantSame(t *testing.T, server *harness.MySQL, target *harness.Postgres, database string) {
	t.Helper()
	want, err := server.Text(t.Context(), "", "SELECT CONCAT_WS(' ', COUNT(*), SUM(id), SUM(v = 'lost'), SUM(v = 'y'), SUM(v = 'new'), (SELECT COUNT(*) FROM lost.b)) FROM lost.a")
	if err != nil {
		t.Fatal(err)
	}
	got, err := harness.Value[string](t.Context(), target, database, `SELECT concat_ws(' ', count(*), sum(id), sum((v = 'lost')::int), sum((v = 'y')::int), sum((v = 'new')::int),
		(SELECT count(*) FROM copy.b)) FROM copy.a`)
	if err != nil || got != want {
		t.Errorf("the target has %q, %v; want %q", got, err, want)
	}
}
