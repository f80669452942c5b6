package cdcmysql

import (
	"errors"
	"strings"
	"testing"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/pkg/spec"
)

// A server that has purged what a job still needs, or that never had what it has read, is told so before anything goes on.
func TestHistory(t *testing.T) {
	t.Parallel()
	server := harness.StartMySQL(t, harness.MySQLConfig{})
	run(t, server, "CREATE DATABASE d", "CREATE TABLE d.t (id int PRIMARY KEY)")
	a := start(t, server, spec.SnapshotNever, "d.*")
	run(t, server, "INSERT INTO d.t VALUES (1)")
	a.take(t, 1)
	a.settle(t)
	a.stop()
	run(t, server, "INSERT INTO d.t VALUES (2)")
	b, err := resume(t, server, a, spec.SnapshotNever, "d.*")
	if err != nil {
		t.Fatal(err)
	}
	wantRows(t, b.take(t, 1), "insert d.t id=2")
	b.stop()
	other := harness.StartMySQL(t, harness.MySQLConfig{})
	run(t, other, "CREATE DATABASE d", "CREATE TABLE d.t (id int PRIMARY KEY)")
	_, err = resume(t, other, a, spec.SnapshotNever, "d.*")
	if e, ok := errors.AsType[*fault.Error](err); !ok || e.Code != fault.MYOtherHistory {
		t.Errorf("another server: %v", err)
	}
	purge(t, server)
	_, err = resume(t, server, a, spec.SnapshotNever, "d.*")
	if e, ok := errors.AsType[*fault.Error](err); !ok || e.Code != fault.MYPurged {
		t.Errorf("purged log: %v", err)
	}
}

// A server that comes back without the end of its log (sync_binlog, a snapshot of its disk) after rows of a copy were read behind that:
// the log will never pass them, which is said instead of waited for.
func TestCopyIsAheadOfServer(t *testing.T) {
	t.Parallel()
	server := harness.StartMySQL(t, harness.MySQLConfig{})
	run(t, server, "CREATE DATABASE d", "CREATE TABLE d.a (id int PRIMARY KEY)", "CREATE TABLE d.b (id int PRIMARY KEY)", "CREATE TABLE d.c (id int PRIMARY KEY)",
		"INSERT INTO d.a VALUES (1)", "INSERT INTO d.b VALUES (1)", "INSERT INTO d.c VALUES (1)")
	hold := func(table string) (release func()) {
		conn, err := server.Connect(t.Context(), "d")
		if err == nil {
			_, err = conn.Execute("LOCK TABLES " + table + " WRITE")
		}
		if err != nil {
			t.Fatal(err)
		}
		return func() { conn.Close() }
	}
	b, c := hold("b"), hold("c")
	before, err := server.Text(t.Context(), "", "SELECT @@GLOBAL.gtid_executed")
	if err != nil {
		t.Fatal(err)
	}
	a := start(t, server, spec.SnapshotInitial, "d.*")
	wantRows(t, a.take(t, 1), "read d.a id=1")
	run(t, server, "INSERT INTO d.a VALUES (2)")
	b()
	wantRows(t, a.take(t, 1), "read d.b id=1")
	a.settle(t)
	a.stop()
	c()
	run(t, server, "RESET BINARY LOGS AND GTIDS", "SET GLOBAL gtid_purged = '"+before+"'")
	again, err := resume(t, server, a, spec.SnapshotInitial, "d.*")
	if err != nil {
		t.Fatal(err)
	}
	wantRows(t, again.take(t, 1), "read d.c id=1")
	if e, ok := errors.AsType[*fault.Error](again.failure(t)); !ok || e.Code != fault.MYOtherHistory || !strings.Contains(e.Why, "rows of the copy") {
		t.Errorf("%v, want %s for the copy", e, fault.MYOtherHistory)
	}
}

// An order to copy a table anew empties it at the sinks and reads it again, with the columns that it has by then, while the log
// waits; changes go on behind it.
func TestCopiedAnew(t *testing.T) {
	t.Parallel()
	run(t, mysql, "CREATE DATABASE anew", "CREATE TABLE anew.t (id int PRIMARY KEY)", "CREATE TABLE anew.u (id int PRIMARY KEY)", "INSERT INTO anew.t VALUES (1), (2)", "INSERT INTO anew.u VALUES (7)")
	a := start(t, mysql, spec.SnapshotInitial, "anew.*")
	wantRows(t, a.take(t, 3), "read anew.t id=1", "read anew.t id=2", "read anew.u id=7")
	run(t, mysql, "INSERT INTO anew.t VALUES (3)") // and so the log is followed
	wantRows(t, a.take(t, 1), "insert anew.t id=3")
	a.settle(t)
	a.stop()
	run(t, mysql, "ALTER TABLE anew.t ADD COLUMN v int", "DELETE FROM anew.t WHERE id = 3", "UPDATE anew.t SET v = id")
	a.again = &source.Again{Seq: 1, Tables: []string{"anew.t"}}
	b, err := resume(t, mysql, a, spec.SnapshotInitial, "anew.*")
	if err != nil {
		t.Fatal(err)
	}
	wantRows(t, b.take(t, 3), "truncate anew.t id=NULL v=NULL", "read anew.t id=1 v=1", "read anew.t id=2 v=2")
	run(t, mysql, "UPDATE anew.t SET v = 3 WHERE id = 1", "DELETE FROM anew.u")
	wantRows(t, b.take(t, 2), "update_after anew.t id=1 v=3", "delete anew.u id=7")
	b.settle(t)
	b.stop()
	b.again = a.again // taken already
	c, err := resume(t, mysql, b, spec.SnapshotInitial, "anew.*")
	if err != nil {
		t.Fatal(err)
	}
	run(t, mysql, "INSERT INTO anew.u VALUES (8)")
	wantRows(t, c.take(t, 1), "insert anew.u id=8")
}
