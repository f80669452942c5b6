package cdcpostgres

import (
	"context"
	"testing"

	"weir.dev/weir/itest/harness"
)

// server is shared by the tests that do not stop or reconfigure it; each has a database of its own.
var server *harness.Postgres

// version is the server's major version.
var version int

func TestMain(m *testing.M) {
	pg, err := harness.RunPostgres(context.Background(), harness.PostgresConfig{
		Settings: map[string]string{"max_replication_slots": "200", "max_wal_senders": "100", "max_connections": "400"},
	})
	if err != nil {
		panic(err)
	}
	server = pg
	if version, err = harness.Value[int](context.Background(), pg, "postgres", "SELECT current_setting('server_version_num')::int / 10000"); err != nil {
		panic(err)
	}
	m.Run()
	if err := pg.Close(); err != nil {
		panic(err)
	}
}
