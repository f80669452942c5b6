package cdcmysql

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-mysql-org/go-mysql/replication"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/pkg/spec"
)

// MariaDB leaves the beginning of a transaction in its log that it was writing when it was killed, and does not have it. Nothing of
// it is delivered, and what follows is.
func TestTransactionIsBrokenOff(t *testing.T) {
	t.Parallel()
	server := harness.StartMariaDB(t, harness.MySQLConfig{Settings: map[string]string{"binlog_checksum": "NONE"}})
	run(t, server, "CREATE DATABASE broken", "CREATE TABLE broken.t (id int PRIMARY KEY)")
	a := start(t, server, spec.SnapshotNever, "broken.*")
	run(t, server, "INSERT INTO broken.t VALUES (1)")
	wantRows(t, a.take(t, 1), "insert broken.t id=1")
	a.settle(t)
	a.stop()
	run(t, server, "INSERT INTO broken.t VALUES (2), (3)")
	dir, err := server.Text(t.Context(), "", "SELECT @@datadir")
	if err != nil {
		t.Fatal(err)
	}
	file, err := server.Text(t.Context(), "", "SHOW MASTER STATUS")
	if err != nil {
		t.Fatal(err)
	}
	server.Kill()
	breakOff(t, filepath.Join(dir, file))
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	run(t, server, "INSERT INTO broken.t VALUES (4)", "UPDATE broken.t SET id = 5 WHERE id = 1")
	b, err := resume(t, server, a, spec.SnapshotNever, "broken.*")
	if err != nil {
		t.Fatal(err)
	}
	wantRows(t, b.take(t, 5), "insert broken.t id=2", "insert broken.t id=3", "insert broken.t id=4", "delete broken.t id=1", "insert broken.t id=5")
}

// breakOff appends the last transaction of a file of the log to it once more, with the number that the next has, and without its end.
func breakOff(t *testing.T, path string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := 0, 0
	for at := 4; at < len(data); at += int(binary.LittleEndian.Uint32(data[at+9:])) {
		switch replication.EventType(data[at+4]) {
		case replication.MARIADB_GTID_EVENT:
			begin = at
		case replication.XID_EVENT:
			end = at
		default:
		}
	}
	if end <= begin || begin == 0 {
		t.Fatalf("no transaction at the end of %s", path)
	}
	part := append([]byte(nil), data[begin:end]...)
	binary.LittleEndian.PutUint64(part[19:], binary.LittleEndian.Uint64(part[19:])+1)
	for at, next := 0, 0; at < len(part); at = next {
		next = at + int(binary.LittleEndian.Uint32(part[at+9:]))
		binary.LittleEndian.PutUint32(part[at+13:], uint32(len(data)+next))
	}
	if err := os.WriteFile(path, append(data, part...), 0o600); err != nil {
		t.Fatal(err)
	}
}
