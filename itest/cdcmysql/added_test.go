package cdcmysql

import (
	"strings"
	"testing"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/spec"
)

// added are columns, each with what rows that were there get.
var added = []string{
	"a1 int NOT NULL DEFAULT 7", "a2 bigint unsigned NOT NULL", "a3 decimal(10,2) NOT NULL DEFAULT 1.5", "a4 double DEFAULT -2.5", "a5 varchar(20) DEFAULT 'it''s'",
	"a6 varchar(20) NOT NULL", "a7 text", "a8 enum('x','y') NOT NULL DEFAULT 'y'", "a9 date DEFAULT '2020-02-03'", "a10 datetime NOT NULL DEFAULT '2020-02-03 04:05:06'",
	"a11 int", "a12 timestamp NULL", "a13 char(3) DEFAULT ''",
}

// What ADD COLUMN gave to the rows that were there comes with the schema, as the server has it in these rows, once, and also behind a
// restart.
func TestAddedColumnsAreFilled(t *testing.T) {
	t.Parallel()
	for name, server := range map[string]*harness.MySQL{"mysql": mysql, "mariadb": harness.StartMariaDB(t, harness.MySQLConfig{})} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, server, "CREATE DATABASE added", "CREATE TABLE added.t (id int PRIMARY KEY)", "INSERT INTO added.t VALUES (1), (2), (3), (4), (5), (6)")
			a := start(t, server, spec.SnapshotInitial, "added.*")
			a.take(t, 6)
			run(t, server, "DELETE FROM added.t WHERE id = 2") // and so the log is followed
			a.take(t, 1)
			run(t, server, "ALTER TABLE added.t ADD "+strings.Join(added, ", ADD "), "DELETE FROM added.t WHERE id = 3")
			a.take(t, 1)
			filled := a.newest(t)
			for _, c := range filled.Columns()[1:] {
				var want *string
				if text, err := server.Text(t.Context(), "", "SELECT ifnull("+c.Name+", 'null') FROM added.t WHERE id = 1"); err != nil {
					t.Fatal(err)
				} else if text != "null" {
					want = &text
				}
				switch {
				case c.Filled != (want != nil):
					t.Errorf("%s: filled %t, want %t", c.Name, c.Filled, want != nil)
				case c.Filled && c.Fill != *want:
					t.Errorf("%s: filled with %q, the server has %q", c.Name, c.Fill, *want)
				}
			}
			a.settle(t)
			a.stop()
			run(t, server, "DELETE FROM added.t WHERE id = 4")
			b, err := resume(t, server, a, spec.SnapshotInitial, "added.*")
			if err != nil {
				t.Fatal(err)
			}
			b.take(t, 1)
			if again := b.newest(t); again.Version() != filled.Version() || again.Fingerprint() != filled.Fingerprint() {
				t.Errorf("behind a restart version %d %s, before it %d %s", again.Version(), again.Fingerprint(), filled.Version(), filled.Fingerprint())
			}
			run(t, server, "ALTER TABLE added.t DROP a1", "DELETE FROM added.t WHERE id = 5", "ALTER TABLE added.t ADD a1 int NOT NULL DEFAULT 8", "DELETE FROM added.t WHERE id = 6")
			b.take(t, 2)
			s := b.newest(t)
			for _, c := range s.Columns() {
				if c.Name == "a1" && (!c.Filled || c.Fill != "8") {
					t.Errorf("a1 is filled with %q (%t), want 8", c.Fill, c.Filled)
				}
			}
			if s.Version() != filled.Version()+2 {
				t.Errorf("version %d, want %d", s.Version(), filled.Version()+2)
			}
			b.stop()
		})
	}
}

// What no constant tells stops the source before a row of the new columns is sent.
func TestAddedColumnsThatStop(t *testing.T) {
	t.Parallel()
	for name, alter := range map[string]string{
		"now":       "ADD w datetime NOT NULL DEFAULT CURRENT_TIMESTAMP",
		"computed":  "ADD w int NOT NULL DEFAULT (1 + 1)",
		"generated": "ADD w int AS (id * 2) STORED",
		"zone":      "ADD w timestamp NOT NULL DEFAULT '2020-01-02 03:04:05'",
		"renamed":   "CHANGE v w int NOT NULL",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := "stop_" + name
			run(t, mysql, "CREATE DATABASE "+db, "CREATE TABLE "+db+".t (id int PRIMARY KEY, v int NOT NULL DEFAULT 1)", "INSERT INTO "+db+".t VALUES (1, 1)")
			a := start(t, mysql, spec.SnapshotInitial, db+".*")
			a.take(t, 1)
			run(t, mysql, "INSERT INTO "+db+".t VALUES (2, 2)")
			a.take(t, 1)
			run(t, mysql, "ALTER TABLE "+db+".t "+alter, "DELETE FROM "+db+".t WHERE id = 1")
			a.wantCode(t, fault.MYSchemaChanged)
		})
	}
}

// newest is the schema of the rows that came last.
func (o *attempt) newest(t *testing.T) *rows.Schema {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.schemas) == 0 {
		t.Fatal("no rows have come")
	}
	return o.schemas[len(o.schemas)-1]
}
