package cdcmysql

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/pkg/fault"
)

const alteredSpec = `apiVersion: weir/v1
job: shop
epoch: {interval: 100ms}
restart: {backoff: 100ms, cap: 1000}
sources:
  db: {type: mysql, url: "${SOURCE_URL}", tables: ["amid.*"], readers: 2, snapshot: {chunk_rows: 50}}
sinks:
  copy: {from: [db], type: postgres, url: "${TARGET_URL}", schema: copy}
`

// A table that waits for its copy is altered twice under load, and once more behind it: the job goes on by itself, and the target has what
// the source has, also in columns that were added with a value for the rows that were there.
func TestAlterUnderLoad(t *testing.T) {
	t.Parallel()
	target := harness.StartPostgres(t, harness.PostgresConfig{})
	for name, server := range map[string]*harness.MySQL{
		"gtid": harness.StartMySQL(t, harness.MySQLConfig{}), "mariadb": harness.StartMariaDB(t, harness.MySQLConfig{}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := "amid_" + name
			if err := target.CreateDatabase(t.Context(), database); err != nil {
				t.Fatal(err)
			}
			run(t, server, big("amid")...)
			const double = "INSERT INTO amid.a (e, v) SELECT e, v FROM amid.a"
			run(t, server, double, double, double) // there is time to alter what comes behind it
			run(t, server, "CREATE TABLE amid.b (id int PRIMARY KEY, v varchar(30), n int NOT NULL)", "INSERT INTO amid.b SELECT id, CONCAT('v', id), 1 FROM amid.a WHERE id <= 20000")
			end := writeTo(t, server, "amid.b")
			m := begin(t, alteredSpec, server.URL(""), target.URL(database))
			look := func(sql string) (int64, error) { return harness.Value[int64](t.Context(), target, database, sql) }
			harness.Await(t, patience, "rows of the first table", func(context.Context) error {
				n, err := look("SELECT count(*) FROM copy.a")
				if err == nil && n == 0 {
					err = errors.New("none yet")
				}
				return err
			})
			run(t, server, "ALTER TABLE amid.b ADD w int NOT NULL DEFAULT 7 FIRST")
			if n, err := look("SELECT count(*) FROM pg_tables WHERE schemaname = 'copy' AND tablename = 'b'"); err != nil || n != 0 {
				t.Fatalf("%d, %v: the table was copied before it was altered", n, err)
			}
			run(t, server, "ALTER TABLE amid.b DROP v")
			m.CaughtUp(t, "shop")
			run(t, server, "ALTER TABLE amid.b ADD x varchar(10) NOT NULL DEFAULT 'seven'") // the rows that were copied have it at the target too
			end()
			run(t, server, "INSERT INTO amid.b (id, n) VALUES (-1000000, 0)") // the log describes a table with the next row
			m.CaughtUp(t, "shop")
			const digest = "SELECT concat_ws(' ', count(*), sum(id), sum(n), sum(w), sum(n * (id %% 1000)), count(x), sum(length(x))) FROM %s.b"
			want, err := server.Text(t.Context(), "", fmt.Sprintf(digest, "amid"))
			if err != nil {
				t.Fatal(err)
			}
			got, err := harness.Value[string](t.Context(), target, database, fmt.Sprintf(digest, "copy"))
			if err != nil || got != want {
				t.Errorf("the target has %s, %v; want %s", got, err, want)
			}
			st := m.Status(t, "shop")
			if st.Phase != "RUNNING" {
				t.Errorf("the job is %s", st.Phase)
			}
			t.Logf("attempt %d; %s", st.Fence, got)
			m.Verify(t, "shop")
		})
	}
}

// As TestAlterUnderLoad, and the server is killed between the two alterations of the table that waits, when the first one is being copied.
func TestAlterAndKillUnderLoad(t *testing.T) {
	t.Parallel()
	eachSilent(t, func(t *testing.T, s *silent) {
		end := writeTo(t, s.server, "shop.b")
		run(t, s.server, "ALTER TABLE shop.b ADD w int NOT NULL DEFAULT 7 FIRST")
		if n, err := harness.Value[int64](t.Context(), s.target, s.database, "SELECT count(*) FROM pg_tables WHERE schemaname = 'copy' AND tablename = 'b'"); err != nil || n != 0 {
			t.Fatalf("%d, %v: the table was copied before it was altered", n, err)
		}
		s.server.Kill()
		if err := s.server.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		back := time.Now()
		run(t, s.server, "ALTER TABLE shop.b DROP v")
		s.way.Heal()
		s.CaughtUp(t, "shop")
		t.Logf("caught up %.1f s after the server was back, attempt %d", time.Since(back).Seconds(), s.Status(t, "shop").Fence)
		end()
		run(t, s.server, "INSERT INTO shop.b (id, n) VALUES (-1000000, 0)") // the log describes a table with the next row
		s.CaughtUp(t, "shop")
		const digest = "SELECT concat_ws(' ', count(*), sum(w), sum(w * (id %% 1000))) FROM %s.b"
		want, err := s.server.Text(t.Context(), "", fmt.Sprintf(digest, "shop"))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := harness.Value[string](t.Context(), s.target, s.database, fmt.Sprintf(digest, "copy")); err != nil || got != want {
			t.Errorf("the target has %s, %v; want %s", got, err, want)
		}
	})
}

// A table that is altered when a part of it was copied stops the job with the command that copies it anew.
func TestAlterStopsJob(t *testing.T) {
	t.Parallel()
	server, target := harness.StartMySQL(t, harness.MySQLConfig{}), harness.StartPostgres(t, harness.PostgresConfig{})
	if err := target.CreateDatabase(t.Context(), "amid"); err != nil {
		t.Fatal(err)
	}
	run(t, server, big("amid")...)
	m := begin(t, alteredSpec, server.URL(""), target.URL("amid"))
	harness.Await(t, patience, "rows of the table", func(context.Context) error {
		n, err := harness.Value[int64](t.Context(), target, "amid", "SELECT count(*) FROM copy.a")
		if err == nil && n == 0 {
			err = errors.New("none yet")
		}
		return err
	})
	run(t, server, "ALTER TABLE amid.a ADD w int NOT NULL DEFAULT 7")
	wantStop(t, m, string(fault.MYSchemaChanged))
}

// writeTo changes rows of a table, by columns that it keeps, until it is ended.
func writeTo(t *testing.T, server *harness.MySQL, table string) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		for n := 0; harness.Pause(ctx, 4*time.Millisecond) == nil; n++ {
			conn, err := server.Connect(ctx, "")
			if err != nil {
				continue // the server is away
			}
			for _, sql := range []string{
				fmt.Sprintf("INSERT INTO %s (id, n) VALUES (%d, 0)", table, 100_000+n), fmt.Sprintf("UPDATE %s SET n = n + 1 WHERE id = %d", table, n*7%20_000),
				fmt.Sprintf("DELETE FROM %s WHERE id = %d", table, n*11%20_000), fmt.Sprintf("UPDATE %s SET id = -id WHERE id = %d", table, n*13%20_000),
			} {
				_, _ = conn.Execute(sql) // or it is killed: the source knows
			}
			_ = conn.Close()
		}
	})
	end = func() { cancel(); done.Wait() }
	t.Cleanup(end)
	return end
}
