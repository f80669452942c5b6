package cdcmysql

import (
	"context"
	"flag"
	"testing"

	"weir.dev/weir/itest/harness"
)

// mysql is shared by the tests that do not stop or reconfigure it; each has databases of its own.
var mysql *harness.MySQL

// together is how many tests run at a time, unless -parallel says otherwise: most of them wait for servers and for what is due
// after seconds, and machines have fewer cores than that.
const together = "6"

func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", together); err != nil {
		panic(err)
	}
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
