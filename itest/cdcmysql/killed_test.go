package cdcmysql

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/client"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/itest/mesh"
	"weir.dev/weir/pkg/fault"
)

const (
	// killedRows is how many rows each table has before the copy.
	killedRows = 60_000
	killedSpec = `apiVersion: weir/v1
job: shop
epoch: {interval: 100ms}
restart: {backoff: 200ms, cap: 1000}
sources:
  db: {type: mysql, url: "${SOURCE_URL}", tables: ["pair.*"], readers: 2, snapshot: {chunk_rows: 100}}
sinks:
  copy: {from: [db], type: postgres, url: "${TARGET_URL}", schema: copy}
`
)

// couples writes transactions, each the same row into two tables, until it is ended. A commit that the server did not answer
// has happened or not: the source knows.
type couples struct {
	t      *testing.T
	server *harness.MySQL
	stop   context.CancelFunc
	done   sync.WaitGroup
}

func startCouples(t *testing.T, server *harness.MySQL) *couples {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	c := &couples{t: t, server: server, stop: cancel}
	for w := range 4 {
		c.done.Go(func() { c.write(ctx, killedRows+w) })
	}
	t.Cleanup(c.end)
	return c
}

func (c *couples) end() {
	c.stop()
	c.done.Wait()
}

func (c *couples) write(ctx context.Context, n int) {
	var conn *client.Conn
	defer func() {
		if conn != nil {
			_ = conn.Close()
		}
	}()
	for ; harness.Pause(ctx, 5*time.Millisecond) == nil; n += 4 {
		if conn == nil {
			var err error
			if conn, err = c.server.Connect(ctx, "pair"); err != nil {
				conn = nil
				continue // the server is away
			}
		}
		for _, sql := range []string{
			"BEGIN", fmt.Sprintf("INSERT INTO a VALUES (%d, 0)", n), fmt.Sprintf("UPDATE a SET n = n + 1 WHERE id = %d", n*7%killedRows),
			fmt.Sprintf("UPDATE b SET n = n + 1 WHERE id = %d", n*7%killedRows), fmt.Sprintf("INSERT INTO b VALUES (%d, 0)", n), "COMMIT",
		} {
			if _, err := conn.Execute(sql); err != nil {
				_ = conn.Close()
				conn = nil
				break
			}
		}
	}
}

// A server that is killed while its tables are copied, and again while its log is followed, and comes back with what it had: the
// job waits for it and goes on by itself. No transaction is ever seen in part, and in the end the target equals the source. A value
// of 21 MB, more than a message of the bus or a packet to the server may have, passes by the copy and by the log (O48).
func TestServerIsKilled(t *testing.T) {
	t.Parallel()
	target := harness.StartPostgres(t, harness.PostgresConfig{})
	for name, server := range map[string]*harness.MySQL{
		"gtid": harness.StartMySQL(t, harness.MySQLConfig{}), "mariadb": harness.StartMariaDB(t, harness.MySQLConfig{}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := "killed_" + name
			if err := target.CreateDatabase(t.Context(), database); err != nil {
				t.Fatal(err)
			}
			run(t, server, "CREATE DATABASE pair")
			values := make([]string, killedRows)
			for i := range values {
				values[i] = fmt.Sprintf("(%d,0)", i)
			}
			for _, table := range []string{"pair.a", "pair.b"} {
				run(t, server, "CREATE TABLE "+table+" (id int PRIMARY KEY, n int NOT NULL)", "INSERT INTO "+table+" VALUES "+strings.Join(values, ","))
			}
			run(t, server, "SET GLOBAL max_allowed_packet = 64 << 20")
			run(t, server, "CREATE TABLE pair.wide (id int PRIMARY KEY, v longblob)", "INSERT INTO pair.wide VALUES (1, REPEAT(UNHEX('00fe27'), 7000000))")
			server.Configure(map[string]string{"max_allowed_packet": "4M"}) // behind the kill
			load := startCouples(t, server)
			m := begin(t, killedSpec, server.URL(""), target.URL(database))
			look := func(sql string) (int64, error) { return harness.Value[int64](t.Context(), target, database, sql) }

			harness.Await(t, patience, "rows of the copy", func(context.Context) error {
				n, err := look("SELECT count(*) FROM copy.a")
				if err == nil && n == 0 {
					err = errors.New("none yet")
				}
				return err
			})
			server.Kill()
			const there = "SELECT count(*) FROM pg_tables WHERE schemaname = 'copy' AND tablename = 'b'"
			if n, err := look(there); err != nil || n > 0 {
				if n, err = look(fmt.Sprintf("SELECT count(*) FROM copy.b WHERE id < %d", killedRows)); err != nil || n >= killedRows {
					t.Errorf("%d rows of the second table were copied, %v: the kill came too late to prove anything", n, err)
				}
			}
			away(t, m, 2*time.Second)
			if err := server.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			back := time.Now()
			m.CaughtUp(t, "shop")
			t.Logf("killed in the copy: caught up %.1f s after the server was back, attempt %d", time.Since(back).Seconds(), m.Status(t, "shop").Fence)

			halves := watchHalves(t, target, database)
			server.Kill()
			away(t, m, time.Second)
			if err := server.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			back = time.Now()
			run(t, server, "INSERT INTO pair.wide SELECT 2, REVERSE(v) FROM pair.wide")
			harness.Await(t, 2*patience, "rows after the kill", func(context.Context) error {
				n, err := look("SELECT count(*) FROM copy.wide")
				if err == nil && n < 2 {
					err = errors.New("none yet")
				}
				return err
			})
			t.Logf("killed in the stream: rows flow %.1f s after the server was back", time.Since(back).Seconds())
			load.end()
			m.CaughtUp(t, "shop")
			halves()
			st := m.Status(t, "shop")
			if st.Phase != "RUNNING" {
				t.Errorf("the job is %s", st.Phase)
			}
			for _, table := range []string{"a", "b"} {
				const digest = "SELECT concat_ws(' ', count(*), sum(id), sum(n), sum(n * (id %% 1000))) FROM %s.%s"
				want, err := server.Text(t.Context(), "", fmt.Sprintf(digest, "pair", table))
				if err != nil {
					t.Fatal(err)
				}
				got, err := harness.Value[string](t.Context(), target, database, fmt.Sprintf(digest, "copy", table))
				if err != nil || got != want {
					t.Errorf("%s at the target: %s, %v; want %s", table, got, err, want)
				}
			}
			const wide = "SELECT %s FROM %s.wide WHERE id = %d"
			for id := range 2 {
				want, err := server.Text(t.Context(), "", fmt.Sprintf(wide, "sha2(v, 256)", "pair", id+1))
				if err != nil {
					t.Fatal(err)
				}
				if got, err := harness.Value[string](t.Context(), target, database, fmt.Sprintf(wide, "encode(sha256(v), 'hex')", "copy", id+1)); err != nil || got != want {
					t.Errorf("value %d at the target: %s, %v; want %s", id+1, got, err, want)
				}
			}
			m.Verify(t, "shop")
		})
	}
}

// away waits until the job says why it waits, which may be late where all that is under way had been read, and then a while longer,
// in which it does not end.
func away(t *testing.T, m *mesh.Mesh, d time.Duration) {
	t.Helper()
	named := func(context.Context) error {
		if st := m.Status(t, "shop"); st.Phase != "STARTING" || st.Reason.Code != string(fault.MYCannotConnect) {
			return fmt.Errorf("the job is %s: %+v", st.Phase, st.Reason)
		}
		return nil
	}
	harness.Await(t, patience, "a status that names the source", named)
	if err := harness.Pause(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	if err := named(t.Context()); err != nil {
		t.Errorf("without its source %v", err)
	}
}

// watchHalves looks for transactions of which the target has only a part, until the returned function is called.
func watchHalves(t *testing.T, target *harness.Postgres, database string) (finish func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	looks := 0
	done.Go(func() {
		for harness.Pause(ctx, 100*time.Millisecond) == nil {
			n, err := harness.Value[int64](context.WithoutCancel(ctx), target, database,
				"SELECT count(*) FROM copy.a FULL JOIN copy.b USING (id) WHERE id >= 0 AND (a.id IS NULL OR b.id IS NULL OR a.n <> b.n)")
			if err != nil || n != 0 {
				t.Errorf("%d rows of transactions in part, %v", n, err)
				return
			}
			looks++
		}
	})
	finish = func() {
		cancel()
		done.Wait()
		if looks < 5 {
			t.Errorf("%d looks, too few to mean anything", looks)
		}
	}
	t.Cleanup(cancel)
	return finish
}
