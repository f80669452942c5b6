package cdcmysql

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/spec"
)

func texts(cs []change) string {
	out := make([]string, len(cs))
	for i, c := range cs {
		out[i] = c.String()
	}
	return strings.Join(out, "\n")
}

func wantRows(t *testing.T, got []change, want ...string) {
	t.Helper()
	if g := texts(got); g != strings.Join(want, "\n") {
		t.Fatalf("rows are\n%s\nwant\n%s", g, strings.Join(want, "\n"))
	}
}

// kinds are the servers whose logs differ: transactions with names, with other names, and without.
func kinds(t *testing.T) map[string]*harness.MySQL {
	t.Helper()
	return map[string]*harness.MySQL{
		"gtid": mysql, "files": harness.StartMySQL(t, harness.MySQLConfig{NoGTID: true}), "mariadb": harness.StartMariaDB(t, harness.MySQLConfig{}),
	}
}

// Changes, changes of keys (O45), of the schema and of whole tables come in the order of the log, on every kind of server. What an
// engine without transactions logs ends otherwise, and stops nothing (O29).
func TestLog(t *testing.T) {
	t.Parallel()
	for name, server := range kinds(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, server, "CREATE DATABASE log_d", "CREATE TABLE log_d.t (id int PRIMARY KEY, v varchar(10))", "CREATE TABLE log_d.other (id int)",
				"CREATE TABLE log_d.mine (id int PRIMARY KEY) ENGINE = MyISAM")
			a := start(t, server, spec.SnapshotNever, "log_d.*", "!log_d.other")
			run(
				t, server, "INSERT INTO log_d.t VALUES (1, 'a'), (2, 'b')", "INSERT INTO log_d.other VALUES (1)", "INSERT INTO log_d.mine VALUES (1)", "BEGIN", "UPDATE log_d.t SET v = 'c' WHERE id = 1",
				"INSERT INTO log_d.other VALUES (2)", "SAVEPOINT s", "UPDATE log_d.t SET v = 'x'", "ROLLBACK TO s", "UPDATE log_d.t SET id = 3 WHERE id = 2", "COMMIT",
				"BEGIN", "DELETE FROM log_d.t", "ROLLBACK", "DELETE FROM log_d.t WHERE id = 3",
				"ALTER TABLE log_d.t ADD COLUMN w int unsigned NOT NULL DEFAULT 7 FIRST, MODIFY v text", "INSERT INTO log_d.t VALUES (8, 4, 'd')",
				"TRUNCATE TABLE log_d.other", "TRUNCATE log_d.t", "INSERT INTO log_d.t VALUES (9, 5, NULL)",
			)
			wantRows(
				t, a.take(t, 9),
				"insert log_d.t id=1 v=a", "insert log_d.t id=2 v=b", "update_after log_d.t id=1 v=c", "delete log_d.t id=2 v=b", "insert log_d.t id=3 v=b",
				"delete log_d.t id=3 v=b", "insert log_d.t id=4 v=d w=8", "truncate log_d.t id=NULL v=NULL w=NULL", "insert log_d.t id=5 v=NULL w=9",
			)
			versions := map[uint32]bool{}
			for _, s := range a.schemas {
				versions[s.Version()] = true
			}
			if len(versions) != 2 {
				t.Errorf("schema versions %v, want two", versions)
			}
		})
	}
}

// What the log does not say (O32), or says in a way that cannot be followed, stops the source with its code; so does a table that is
// not there any more (O31).
func TestLogStops(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		code fault.Code
		sql  []string
	}{
		"a row without all columns": {fault.MYImage, []string{"SET SESSION binlog_row_image = MINIMAL", "UPDATE %s.t SET v = 'x'"}},
		"a part of a document":      {fault.MYImage, []string{"SET SESSION binlog_row_value_options = PARTIAL_JSON", "UPDATE %s.t SET doc = JSON_SET(doc, '$.a', 2, '$.b', 3)"}},
		"a dropped table":           {fault.MYTableRemoved, []string{"DROP TABLE %s.t"}},
		"a renamed table":           {fault.MYTableRemoved, []string{"ALTER TABLE %s.t RENAME TO %[1]s.u"}},
		"a dropped database":        {fault.MYTableRemoved, []string{"DROP DATABASE %s"}},
		"another table":             {fault.MYTableRemoved, []string{"CREATE TABLE %s.u LIKE %[1]s.t", "RENAME TABLE %s.t TO %[1]s.old, %[1]s.u TO %[1]s.t"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := "stops_" + strings.ReplaceAll(name, " ", "_")
			run(t, mysql, "CREATE DATABASE "+db, "CREATE TABLE "+db+".t (id int PRIMARY KEY, v varchar(10), doc json)", "INSERT INTO "+db+`.t VALUES (1, 'a', '{"a": 1, "b": 1, "c": "long enough to be worth a difference"}')`)
			a := start(t, mysql, spec.SnapshotNever, db+".*")
			statements := make([]string, len(c.sql))
			for i, sql := range c.sql {
				statements[i] = sql
				if strings.Contains(sql, "%") {
					statements[i] = fmt.Sprintf(sql, db)
				}
			}
			run(t, mysql, statements...)
			e, ok := errors.AsType[*fault.Error](a.failure(t))
			if !ok || e.Code != c.code || e.Remedy == "" {
				t.Errorf("%v, want %s with a remedy", e, c.code)
			}
		})
	}
}

// A server whose log lacks something is refused before anything starts.
func TestServerIsRefused(t *testing.T) {
	t.Parallel()
	for name, settings := range map[string]map[string]string{
		"statements": {"binlog_format": "STATEMENT"}, "partial rows": {"binlog_row_image": "MINIMAL"}, "rows without names": {"binlog_row_metadata": "MINIMAL"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := harness.StartMariaDB(t, harness.MySQLConfig{Settings: settings})
			run(t, server, "CREATE DATABASE d", "CREATE TABLE d.t (id int PRIMARY KEY)")
			_, err := open(t, server, spec.SnapshotInitial, "d.*")
			if e, ok := errors.AsType[*fault.Error](err); !ok || e.Code != fault.MYSetting || !strings.Contains(e.Remedy, "SET ") {
				t.Errorf("%v", err)
			}
		})
	}
	if _, err := open(t, mysql, spec.SnapshotInitial, "nowhere.*"); !strings.Contains(fmt.Sprint(err), string(fault.MYNoTables)) {
		t.Errorf("no tables: %v", err)
	}
}

// Compressed transactions (O28), transactions under a tag and rows of more than one event.
func TestForms(t *testing.T) {
	t.Parallel()
	run(t, mysql, "CREATE DATABASE forms", "CREATE TABLE forms.t (id int PRIMARY KEY, v longtext)")
	a := start(t, mysql, spec.SnapshotNever, "forms.*")
	run(
		t, mysql, "SET SESSION binlog_transaction_compression = ON", "INSERT INTO forms.t VALUES (1, REPEAT('a', 1000)), (2, 'b')",
		"SET SESSION binlog_transaction_compression = OFF", "SET SESSION gtid_next = 'AUTOMATIC:weir'", "INSERT INTO forms.t VALUES (3, 'c')",
		"SET SESSION gtid_next = 'AUTOMATIC'", "INSERT INTO forms.t SELECT id + 10, REPEAT('x', 9000) FROM forms.t",
		"UPDATE forms.t SET v = id",
	)
	got := a.take(t, 12)
	want := []string{
		"insert forms.t id=1 v=" + strings.Repeat("a", 1000), "insert forms.t id=2 v=b", "insert forms.t id=3 v=c",
	}
	for _, id := range []int{11, 12, 13} {
		want = append(want, fmt.Sprintf("insert forms.t id=%d v=%s", id, strings.Repeat("x", 9000)))
	}
	for _, id := range []int{1, 2, 3, 11, 12, 13} {
		want = append(want, fmt.Sprintf("update_after forms.t id=%d v=%[1]d", id))
	}
	wantRows(t, got, want...)
}
