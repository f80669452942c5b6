package cdcmysql

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/client"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/spec"
)

// xa is a session with a distributed transaction.
type xa struct {
	t    *testing.T
	conn *client.Conn
}

func connect(t *testing.T, server *harness.MySQL) xa {
	t.Helper()
	conn, err := server.Connect(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return xa{t, conn}
}

func (x xa) run(statements ...string) {
	x.t.Helper()
	for _, sql := range statements {
		if _, err := x.conn.Execute(sql); err != nil {
			x.t.Fatalf("%v\n%s", err, sql)
		}
	}
}

// The rows of a distributed transaction come when it is committed, at its place in the log, whatever attempts have begun and
// ended since it was prepared; those of one that is rolled back never do.
func TestDistributedTransactions(t *testing.T) {
	t.Parallel()
	for name, server := range kinds(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			preparedBefore(t, server)
			run(t, server, "CREATE DATABASE xa_d", "CREATE TABLE xa_d.t (id int PRIMARY KEY)", "CREATE TABLE xa_d.other (id int PRIMARY KEY)")
			a := start(t, server, spec.SnapshotNever, "xa_d.t")
			one, two, three := connect(t, server), connect(t, server), connect(t, server)
			one.run("XA START 'one', 'x', 7", "INSERT INTO xa_d.t VALUES (1), (11)", "XA END 'one', 'x', 7", "XA PREPARE 'one', 'x', 7")
			run(t, server, "INSERT INTO xa_d.t VALUES (2)")
			two.run("XA START 'two'", "INSERT INTO xa_d.t VALUES (3)", "XA END 'two'", "XA PREPARE 'two'")
			three.run("XA START 'three'", "INSERT INTO xa_d.other VALUES (3)", "XA END 'three'", "XA PREPARE 'three'")
			wantRows(t, a.take(t, 1), "insert xa_d.t id=2")
			run(t, server, "INSERT INTO xa_d.t VALUES (20)") // all before it was read
			wantRows(t, a.take(t, 1), "insert xa_d.t id=20")
			a.settle(t)
			a.stop()
			run(t, server, "INSERT INTO xa_d.t VALUES (4)")
			one.run("XA COMMIT 'one', 'x', 7")
			three.run("XA COMMIT 'three'")
			b, err := resume(t, server, a, spec.SnapshotNever, "xa_d.t")
			if err != nil {
				t.Fatal(err)
			}
			wantRows(t, b.take(t, 3), "insert xa_d.t id=4", "insert xa_d.t id=1", "insert xa_d.t id=11")
			two.run("XA ROLLBACK 'two'")
			one.run("XA START 'four'", "INSERT INTO xa_d.t VALUES (5)", "XA END 'four'", "XA COMMIT 'four' ONE PHASE")
			run(t, server, "INSERT INTO xa_d.t VALUES (6)")
			wantRows(t, b.take(t, 2), "insert xa_d.t id=5", "insert xa_d.t id=6")
			if server != mysql { // whose log other tests need
				b.stop()
				preparedBeforeThePurge(t, server)
			}
		})
	}
}

// The rows of one that was prepared before the log of a job begins, and is committed behind the copy, are in neither: they are
// searched in the log before. One that has to do with other tables disturbs nobody, nor does one that is rolled back.
func preparedBefore(t *testing.T, server *harness.MySQL) {
	t.Helper()
	run(t, server, "CREATE DATABASE xa_before", "CREATE TABLE xa_before.t (id int PRIMARY KEY)", "INSERT INTO xa_before.t VALUES (0)",
		"CREATE TABLE xa_before.other (id int PRIMARY KEY)")
	prepared := func(xid, table string, id int) xa {
		x := connect(t, server)
		x.run("XA START "+xid, fmt.Sprintf("INSERT INTO xa_before.%s VALUES (%d)", table, id), "XA END "+xid, "XA PREPARE "+xid)
		return x
	}
	const ours, theirs, back, again = "'before_t'", "'before_other'", "'before_back'", "'before_again'"
	prepared(ours, "t", 9).run("XA ROLLBACK " + ours) // an earlier one of that name
	a, b, c, d := prepared(ours, "t", 1), prepared(theirs, "other", 1), prepared(back, "t", 2), prepared(again, "t", 3)
	one := start(t, server, spec.SnapshotInitial, "xa_before.t")
	wantRows(t, one.take(t, 1), "read xa_before.t id=0")
	run(t, server, "INSERT INTO xa_before.t VALUES (4)")
	wantRows(t, one.take(t, 1), "insert xa_before.t id=4")
	b.run("XA COMMIT " + theirs)
	c.run("XA ROLLBACK " + back)
	run(t, server, "INSERT INTO xa_before.t VALUES (5)")
	a.run("XA COMMIT " + ours)
	run(t, server, "INSERT INTO xa_before.t VALUES (6)")
	wantRows(t, one.take(t, 3), "insert xa_before.t id=5", "insert xa_before.t id=1", "insert xa_before.t id=6")
	one.settle(t)
	one.stop()
	d.run("XA COMMIT " + again)
	two, err := resume(t, server, one, spec.SnapshotInitial, "xa_before.t")
	if err != nil {
		t.Fatal(err)
	}
	wantRows(t, two.take(t, 1), "insert xa_before.t id=3")
	two.stop()
}

// Where the server has purged that part of its log nobody knows the rows, nor of which table they are: the job stops and names the
// transaction.
func preparedBeforeThePurge(t *testing.T, server *harness.MySQL) {
	t.Helper()
	x := connect(t, server)
	x.run("CREATE DATABASE xa_purged", "CREATE TABLE xa_purged.t (id int PRIMARY KEY)",
		"XA START 'purged'", "INSERT INTO xa_purged.t VALUES (1)", "XA END 'purged'", "XA PREPARE 'purged'")
	purge(t, server)
	a := start(t, server, spec.SnapshotNever, "xa_purged.*")
	x.run("XA COMMIT 'purged'")
	if e, ok := errors.AsType[*fault.Error](a.failure(t)); !ok || e.Code != fault.MYXA || !strings.Contains(e.Why, fmt.Sprintf("%x", "purged")) {
		t.Errorf("%v, want %s", e, fault.MYXA)
	}
}

// A table whose place was taken by the copy that a tool for schema changes had made of it goes on with its new columns (O33).
func TestShadowTable(t *testing.T) {
	t.Parallel()
	for db, names := range map[string][2]string{"gho": {"_t_gho", "_t_del"}, "ptosc": {"_t_new", "_t_old"}} {
		run(t, mysql, "CREATE DATABASE "+db, "CREATE TABLE "+db+".t (id int PRIMARY KEY)", "INSERT INTO "+db+".t VALUES (1)")
		a := start(t, mysql, spec.SnapshotInitial, db+".*")
		wantRows(t, a.take(t, 1), "read "+db+".t id=1")
		next, old := db+"."+names[0], db+"."+names[1]
		run(
			t, mysql, "CREATE TABLE "+next+" LIKE "+db+".t", "ALTER TABLE "+next+" ADD COLUMN v int NOT NULL DEFAULT 3", "INSERT INTO "+next+" (id) SELECT id FROM "+db+".t",
			"INSERT INTO "+db+".t VALUES (2)", "INSERT INTO "+next+" (id) VALUES (2)", "RENAME TABLE "+db+".t TO "+old+", "+next+" TO "+db+".t",
			"INSERT INTO "+db+".t VALUES (4, 5)", "UPDATE "+db+".t SET v = 6 WHERE id = 1", "DROP TABLE "+old,
		)
		wantRows(t, a.take(t, 3), "insert "+db+".t id=2", "insert "+db+".t id=4 v=5", "update_after "+db+".t id=1 v=6")
		a.stop()
	}
}
