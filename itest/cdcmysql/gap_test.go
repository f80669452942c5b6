package cdcmysql

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/pkg/spec"
)

// A transaction that is logged and not yet visible, because the server waits for a replica, is in the copy exactly once: a chunk
// waits for it, however long it takes.
func TestVisibilityGap(t *testing.T) {
	t.Parallel()
	for name, without := range map[string]bool{"gtid": false, "files": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			visibilityGap(t, harness.StartMySQL(t, harness.MySQLConfig{NoGTID: without, Settings: map[string]string{"plugin_load_add": "semisync_source.so"}}))
		})
	}
}

func visibilityGap(t *testing.T, server *harness.MySQL) {
	t.Helper()
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
