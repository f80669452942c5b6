package cdcmysql

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

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
	run(t, server, "FLUSH BINARY LOGS", "PURGE BINARY LOGS BEFORE NOW() + INTERVAL 1 DAY")
	_, err = resume(t, server, a, spec.SnapshotNever, "d.*")
	if e, ok := errors.AsType[*fault.Error](err); !ok || e.Code != fault.MYPurged {
		t.Errorf("purged log: %v", err)
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

// A transaction that is logged and not yet visible, because the server waits for a replica, is in the copy exactly once: a chunk
// waits for it, however long it takes.
func TestVisibilityGap(t *testing.T) {
	t.Parallel()
	server := harness.StartMySQL(t, harness.MySQLConfig{Settings: map[string]string{"plugin_load_add": "semisync_source.so"}})
	run(
		t, server, "CREATE DATABASE gap", "CREATE TABLE gap.t (id int PRIMARY KEY)", "CREATE TABLE gap.keyless (id int)", "INSERT INTO gap.t VALUES (1)",
		"INSERT INTO gap.keyless VALUES (1)", "SET GLOBAL rpl_semi_sync_source_timeout = 600000", "SET GLOBAL rpl_semi_sync_source_enabled = ON",
	)
	committed := make(chan error, 1)
	go func() {
		conn, err := server.Connect(t.Context(), "gap")
		for _, sql := range []string{"BEGIN", "INSERT INTO t VALUES (2)", "INSERT INTO keyless VALUES (2)", "COMMIT"} {
			if err == nil {
				_, err = conn.Execute(sql)
			}
		}
		committed <- errors.Join(err, conn.Close())
	}()
	harness.Await(t, patience, "the commit to wait for a replica", func(ctx context.Context) error {
		n, err := server.Text(ctx, "", "SELECT COUNT(*) FROM information_schema.processlist WHERE state LIKE 'Waiting for semi-sync ACK%'")
		if err == nil && n != "1" {
			err = errors.New("it does not wait yet")
		}
		return err
	})
	a := start(t, server, spec.SnapshotInitial, "gap.*")
	select {
	case err := <-committed:
		t.Fatalf("the commit did not wait: %v", err)
	case <-time.After(300 * time.Millisecond): // long enough for a chunk that does not wait
	}
	run(t, server, "SET GLOBAL rpl_semi_sync_source_enabled = OFF", "INSERT INTO gap.t VALUES (3)")
	if err := <-committed; err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, c := range a.take(t, 5) {
		ids = append(ids, c.table+" "+c.cells["id"])
	}
	slices.Sort(ids)
	if want := []string{"gap.keyless 1", "gap.keyless 2", "gap.t 1", "gap.t 2", "gap.t 3"}; !slices.Equal(ids, want) {
		t.Errorf("rows %v, want %v", ids, want)
	}
}
