package cdcmysql

import (
	"context"
	"testing"

	"weir.dev/weir/itest/harness"
)

// mysql is shared by the tests that do not stop or reconfigure it; each has databases of its own.
var mysql *harness.MySQL

func TestMain(m *testing.M) {
	server, err := harness.RunMySQL(context.Background(), harness.MySQLConfig{Settings: map[string]string{"max_connections": "500"}})
	if err != nil {
		panic(err)
	}
	mysql = server
	m.Run()
	if err := server.Close(); err != nil {
		panic(err)
	}
}
