package cdcmysql

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/itest/mesh"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/services/weir/verify/relay"
)

// slowly is how late each statement of a copy comes to its server, so that what befalls the server amid the copy does so on any machine.
const slowly = 20 * time.Millisecond

const silentSpec = `apiVersion: weir/v1
job: shop
epoch: {interval: 100ms}
restart: {backoff: 200ms, cap: 1000}
sources:
  db: {type: mysql, url: "${SOURCE_URL}", tables: ["shop.*"], snapshot: {chunk_rows: 50}}
sinks:
  copy: {from: [db], type: postgres, url: "${TARGET_URL}", schema: copy}
`

// silent is a job whose server can be made to say nothing.
type silent struct {
	*mesh.Mesh

	server   *harness.MySQL
	way      *relay.Relay
	target   *harness.Postgres
	database string
}

// eachSilent runs a test with a server of each kind, with two tables of 5,000 rows, of which the first is being copied.
func eachSilent(t *testing.T, f func(t *testing.T, s *silent)) {
	t.Helper()
	target := harness.StartPostgres(t, harness.PostgresConfig{})
	for name, server := range map[string]*harness.MySQL{
		"gtid": harness.StartMySQL(t, harness.MySQLConfig{}), "mariadb": harness.StartMariaDB(t, harness.MySQLConfig{}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &silent{server: server, target: target, database: name}
			if err := target.CreateDatabase(t.Context(), name); err != nil {
				t.Fatal(err)
			}
			rows := make([]string, 5000)
			for i := range rows {
				rows[i] = fmt.Sprintf("(%d, %d)", i, i%7)
			}
			run(t, server, "CREATE DATABASE shop", "CREATE TABLE shop.a (id int PRIMARY KEY, n int NOT NULL)", "INSERT INTO shop.a VALUES "+strings.Join(rows, ","),
				"CREATE TABLE shop.b (id int PRIMARY KEY, v varchar(30), n int NOT NULL)", "INSERT INTO shop.b SELECT id, CONCAT('v', id), n FROM shop.a")
			role, err := server.CreateUser(t.Context(), "weir", "SELECT, REPLICATION SLAVE, REPLICATION CLIENT") // which lists its own connections only
			if err != nil {
				t.Fatal(err)
			}
			s.way = harness.StartCutter(t, server.Port)
			s.way.Delay(slowly)
			s.Mesh = begin(t, silentSpec, s.way.URL(server.URLAs(role, "")), target.URL(name))
			harness.Await(t, patience, "rows of the copy", func(context.Context) error {
				n, err := s.count("a")
				if err == nil && n == 0 {
					err = fmt.Errorf("none yet")
				}
				return err
			})
			f(t, s)
			s.way.Heal()
			s.same(t)
		})
	}
}

// count is how many rows of a table are at the target.
func (s *silent) count(table string) (int64, error) {
	return harness.Value[int64](context.Background(), s.target, s.database, "SELECT count(*) FROM copy."+table)
}

// copying fails the test when the copy is over.
func (s *silent) copying(t *testing.T) {
	t.Helper()
	if n, err := s.count("b"); err == nil && n == 5000 {
		t.Fatal("everything is copied: this proves nothing")
	}
}

// told waits until the status says why nothing comes, with the words.
func (s *silent) told(t *testing.T, words string) {
	t.Helper()
	harness.Await(t, patience, "a status that says "+words, func(context.Context) error {
		st := s.Status(t, "shop")
		if !slices.ContainsFunc(st.Why, func(why string) bool { return strings.Contains(why, words) }) {
			return fmt.Errorf("the job is %s, %q", st.Phase, st.Why)
		}
		return nil
	})
}

// gone waits until the job has given the silent server up, and says so.
func (s *silent) gone(t *testing.T) {
	t.Helper()
	harness.Await(t, patience, "a status that names the silent source", func(context.Context) error {
		if st := s.Status(t, "shop"); st.Phase != "STARTING" || st.Reason.Code != string(fault.MYSilent) || !strings.Contains(st.Reason.Remedy, "sources.db.url") {
			return fmt.Errorf("the job is %s: %+v", st.Phase, st.Reason)
		}
		return nil
	})
}

// same waits until the target has what the source has.
func (s *silent) same(t *testing.T) {
	t.Helper()
	s.CaughtUp(t, "shop")
	for _, table := range []string{"a", "b"} {
		const digest = "SELECT concat_ws(' ', count(*), sum(id), sum(n * (id %% 1000))) FROM %s.%s"
		want, err := s.server.Text(t.Context(), "", fmt.Sprintf(digest, "shop", table))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := harness.Value[string](t.Context(), s.target, s.database, fmt.Sprintf(digest, "copy", table)); err != nil || got != want {
			t.Errorf("%s at the target: %s, %v; want %s", table, got, err, want)
		}
	}
	s.Verify(t, "shop")
}

// A server that is frozen amid a copy closes no connection and answers nothing. The job says so while it waits, and that it was given up,
// and goes on when the server does.
func TestServerIsFrozen(t *testing.T) {
	t.Parallel()
	eachSilent(t, func(t *testing.T, s *silent) {
		if err := s.server.Pause(); err != nil {
			t.Fatal(err)
		}
		frozen := time.Now()
		s.told(t, "nothing comes from the server")
		t.Logf("told after %s", time.Since(frozen).Round(100*time.Millisecond))
		if a := s.Ask(t, "doctor", s.File(t, "shop.yaml", silentSpec)); a.Exit == 0 || !strings.Contains(a.Stdout+a.Stderr, string(fault.MYSilent)) {
			t.Errorf("doctor of a silent server:\n%s", a)
		}
		s.gone(t)
		t.Logf("given up after %s: %s", time.Since(frozen).Round(100*time.Millisecond), s.Status(t, "shop").Reason.Text)
		if err := s.server.Resume(); err != nil {
			t.Fatal(err)
		}
		s.copying(t)
	})
}

// A network that swallows what a server sends, while its log is followed: as with a frozen one. What was written meanwhile comes.
func TestServerIsCutOff(t *testing.T) {
	t.Parallel()
	eachSilent(t, func(t *testing.T, s *silent) {
		s.way.Heal()
		s.CaughtUp(t, "shop")
		s.way.Part(relay.Replies)
		parted := time.Now()
		run(t, s.server, "UPDATE shop.a SET n = n + 1 WHERE id % 3 = 0")
		s.gone(t)
		t.Logf("given up after %s: %s", time.Since(parted).Round(100*time.Millisecond), s.Status(t, "shop").Reason.Text)
	})
}

// A statement that waits for a lock for longer than a server may be silent is waited for, in the same attempt, and the status has the
// server's words for what it waits for.
func TestCopyWaitsForLock(t *testing.T) {
	t.Parallel()
	eachSilent(t, func(t *testing.T, s *silent) {
		conn, err := s.server.Connect(t.Context(), "shop")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := conn.Execute("LOCK TABLES a WRITE, b WRITE"); err != nil {
			t.Fatal(err)
		}
		s.copying(t)
		s.told(t, "Waiting for table metadata lock")
		if _, err := conn.Execute("UNLOCK TABLES"); err != nil {
			t.Fatal(err)
		}
		s.way.Heal()
		s.CaughtUp(t, "shop")
		if st := s.Status(t, "shop"); st.Fence != 1 {
			t.Errorf("the job is in attempt %d", st.Fence)
		}
	})
}
