package harness_test

import (
	"testing"

	"weir.dev/weir/itest/harness"
)

// Each server is what its name says, logs rows whole, and keeps its data over the loss of the machine.
func TestMySQLServers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		start func(testing.TB, harness.MySQLConfig) *harness.MySQL
		cfg   harness.MySQLConfig
		gtid  string
	}{
		"mysql":         {harness.StartMySQL, harness.MySQLConfig{}, "SELECT @@gtid_mode = 'ON'"},
		"without GTIDs": {harness.StartMySQL, harness.MySQLConfig{NoGTID: true}, "SELECT @@gtid_mode = 'OFF'"},
		"mariadb":       {harness.StartMariaDB, harness.MySQLConfig{}, "SELECT @@gtid_strict_mode = 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := c.start(t, c.cfg)
			for _, sql := range []string{
				c.gtid,
				"SELECT @@log_bin = 1 AND @@binlog_format = 'ROW' AND @@binlog_row_image = 'FULL' AND @@binlog_row_metadata = 'FULL'",
			} {
				if got, err := m.Text(t.Context(), "", sql); err != nil || got != "1" {
					t.Errorf("%s: %q, %v", sql, got, err)
				}
			}
			for _, sql := range []string{"CREATE DATABASE shop", "CREATE TABLE shop.t (id int PRIMARY KEY)", "INSERT INTO shop.t VALUES (7)"} {
				if err := m.Exec(t.Context(), "", sql); err != nil {
					t.Fatal(err)
				}
			}
			if err := m.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got, err := m.Text(t.Context(), "shop", "SELECT id FROM t"); err != nil || got != "7" {
				t.Errorf("after a restart: %q, %v", got, err)
			}
		})
	}
}
