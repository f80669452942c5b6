package cdcpostgres

import (
	"context"
	"fmt"
	"os"
	"testing"

	"weir.dev/weir/itest/harness"
)

// server is shared by the tests that do not stop or reconfigure it; each has a database of its own.
var server *harness.Postgres

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	pg, err := harness.RunPostgres(context.Background(), harness.PostgresConfig{
		Settings: map[string]string{"max_replication_slots": "60", "max_wal_senders": "60", "max_connections": "300"},
	})
	if err != nil {
		return 0, err
	}
	server = pg
	code := m.Run()
	if code != 0 {
		fmt.Fprintln(os.Stderr, pg.LogTail(8<<10))
	}
	return code, pg.Close()
}
