package cdcmysql

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/spec"
)

const idSpec = `apiVersion: weir/v1
job: %s
sources:
  db: {type: mysql, url: "${SOURCE_URL}", tables: ["ids.*"], server_id: 70000, readers: 2}
sinks:
  hole: {from: [db], type: blackhole}
`

// Of two jobs with the same server id the second is refused with the name of the first, which is not disturbed (O22).
func TestServerIDsOfTwoJobs(t *testing.T) {
	t.Parallel()
	run(t, mysql, "CREATE DATABASE ids", "CREATE TABLE ids.t (id int PRIMARY KEY)", "INSERT INTO ids.t VALUES (1)")
	m := begin(t, fmt.Sprintf(idSpec, "first"), mysql.URL(""), "")
	m.CaughtUp(t, "first")
	fence := m.Status(t, "first").Fence
	m.Must(t, "job", "submit", m.File(t, "shop.yaml", fmt.Sprintf(idSpec, "shop")))
	wantStop(t, m, string(fault.MYServerIDTaken))
	if why := m.Status(t, "shop").Reason.Text; !strings.Contains(why, "first") {
		t.Errorf("the owner is not named: %s", why)
	}
	run(t, mysql, "INSERT INTO ids.t VALUES (2)")
	m.CaughtUp(t, "first")
	if now := m.Status(t, "first").Fence; now != fence {
		t.Errorf("the first job began attempt %d", now)
	}
}

// A client from elsewhere that comes with the server id of a source ends its log. The source says so, and does not come back to
// end the other's in turn.
func TestServerIDTakenFromOutside(t *testing.T) {
	t.Parallel()
	for name, server := range map[string]*harness.MySQL{"mysql": mysql, "mariadb": harness.StartMariaDB(t, harness.MySQLConfig{})} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, server, "CREATE DATABASE kicked", "CREATE TABLE kicked.t (id int PRIMARY KEY)")
			c := &spec.MySQLSource{Readers: 1, ServerID: 71000, Snapshot: spec.Snapshot{Mode: spec.SnapshotNever}}
			a, err := openSource(t, server, nil, c, "kicked.*")
			if err != nil {
				t.Fatal(err)
			}
			run(t, server, "INSERT INTO kicked.t VALUES (1)")
			wantRows(t, a.take(t, 1), "insert kicked.t id=1")
			same := *c // another mesh, which knows nothing of the first
			same.Tables = nil
			b, err := openSource(t, server, nil, &same, "kicked.*")
			if err != nil {
				t.Fatal(err)
			}
			if e, ok := errors.AsType[*fault.Error](a.failure(t)); !ok || e.Code != fault.MYServerIDTaken || !strings.Contains(e.Why, "71000") {
				t.Errorf("%v, want %s", e, fault.MYServerIDTaken)
			}
			run(t, server, "INSERT INTO kicked.t VALUES (2)")
			wantRows(t, b.take(t, 1), "insert kicked.t id=2")
		})
	}
}

// Another server that has all that was read goes on with it: a replica that was promoted, or the same one with a log of another
// name. Places in files are of one server and one series (O25, O26, O27).
func TestPrimarySwitch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		start  func(testing.TB, harness.MySQLConfig) *harness.MySQL
		noGTID bool
		follow string
		alone  []string
	}{
		{
			"gtid", harness.StartMySQL, false, "CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = %d, SOURCE_USER = '%s', SOURCE_PASSWORD = '%s', " +
				"SOURCE_AUTO_POSITION = 1, GET_SOURCE_PUBLIC_KEY = 1, SOURCE_CONNECT_RETRY = 1, SOURCE_RETRY_COUNT = 1000", []string{"STOP REPLICA", "RESET REPLICA ALL"},
		},
		{
			"mariadb", harness.StartMariaDB, false, "CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = %d, MASTER_USER = '%s', MASTER_PASSWORD = '%s', " +
				"MASTER_USE_GTID = slave_pos, MASTER_CONNECT_RETRY = 1", []string{"STOP SLAVE", "RESET SLAVE ALL"},
		},
		{"files", harness.StartMySQL, true, "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := c.start(t, harness.MySQLConfig{NoGTID: c.noGTID})
			run(t, server, "CREATE DATABASE d", "CREATE TABLE d.t (id int PRIMARY KEY)")
			var other *harness.MySQL
			if !c.noGTID {
				other = c.start(t, harness.MySQLConfig{Settings: map[string]string{"server_id": "2", "log_slave_updates": "ON"}})
				run(t, other, fmt.Sprintf(c.follow, server.Port, server.Admin.Name, server.Admin.Password), "START "+strings.Fields(c.alone[0])[1])
				awaitRows(t, other, "0")
				wantReplicaLeft(t, server, 2)
				purge(t, server) // a log that does not have everything it ever had
			}
			a := start(t, server, spec.SnapshotNever, "d.*")
			run(t, server, "INSERT INTO d.t VALUES (1)")
			wantRows(t, a.take(t, 1), "insert d.t id=1")
			a.settle(t)
			a.stop()
			if !server.MariaDB() { // which keeps what it has logged beside the log, under the log's name
				server.Configure(map[string]string{"log_bin": "other"})
			}
			if err := errors.Join(server.Stop(t.Context()), server.Start(t.Context())); err != nil {
				t.Fatal(err)
			}
			run(t, server, "INSERT INTO d.t VALUES (2)")
			b, err := resume(t, server, a, spec.SnapshotNever, "d.*")
			if c.noGTID {
				if e, ok := errors.AsType[*fault.Error](err); !ok || e.Code != fault.MYOtherHistory || !strings.Contains(e.Remedy, "weir job resnapshot shop") {
					t.Errorf("%v, want %s", err, fault.MYOtherHistory)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			wantRows(t, b.take(t, 1), "insert d.t id=2")
			b.settle(t)
			b.stop()
			awaitRows(t, other, "2")
			run(t, other, append(c.alone, "INSERT INTO d.t VALUES (3)")...)
			after, err := resume(t, other, b, spec.SnapshotNever, "d.*")
			if err != nil {
				t.Fatal(err)
			}
			wantRows(t, after.take(t, 1), "insert d.t id=3")
		})
	}
}

// wantReplicaLeft refuses a source that comes with the server id of a replica, which a server would end for it, or of the server.
func wantReplicaLeft(t *testing.T, server *harness.MySQL, id int) {
	t.Helper()
	for who, id := range map[string]int{"the server itself": 1, "a replica": id} {
		c := &spec.MySQLSource{Readers: 1, ServerID: id, Snapshot: spec.Snapshot{Mode: spec.SnapshotNever}}
		a, err := openSource(t, server, nil, c, "d.*")
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := errors.AsType[*fault.Error](a.failure(t)); !ok || e.Code != fault.MYServerIDTaken || !strings.Contains(e.Why, who) {
			t.Errorf("server id %d: %v, want %s", id, e, fault.MYServerIDTaken)
		}
		a.stop()
	}
}

// awaitRows waits until a replica has so many rows of d.t.
func awaitRows(t *testing.T, replica *harness.MySQL, want string) {
	t.Helper()
	harness.Await(t, patience, "the replica", func(ctx context.Context) error {
		n, err := replica.Text(ctx, "", "SELECT COUNT(*) FROM d.t")
		if err == nil && n != want {
			err = errors.New("it has " + n + " rows")
		}
		return err
	})
}
