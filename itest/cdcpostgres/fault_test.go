package cdcpostgres

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/spec"
)

// wantFault checks the code of an error, see faultOf.
func wantFault(t *testing.T, err error, code string, secrets ...string) {
	t.Helper()
	_ = faultOf(t, err, code, secrets...)
}

// faultOf checks the code of an error, and that no form of it shows what must not be seen.
func faultOf(t *testing.T, err error, code string, secrets ...string) *fault.Error {
	t.Helper()
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		t.Fatalf("error %v has no code, want %s", err, code)
	}
	if string(f.Code) != code {
		t.Fatalf("error is %v, want %s", err, code)
	}
	if f.Remedy == "" || f.Where == "" || f.Why == "" {
		t.Errorf("error %s has no place, reason or remedy:\n%s", code, f.Text())
	}
	object, jsonErr := json.Marshal(f)
	if jsonErr != nil {
		t.Fatal(jsonErr)
	}
	for _, s := range secrets {
		if strings.Contains(err.Error(), s) || strings.Contains(f.Text(), s) || strings.Contains(string(object), s) {
			t.Errorf("error %s shows a secret", code)
		}
	}
	return f
}

func TestServerThatCannotBeRead(t *testing.T) {
	t.Parallel()
	role := func(t *testing.T, j *job, attributes string) harness.Role {
		t.Helper()
		r, err := j.pg.CreateRole(t.Context(), j.database, attributes)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for _, c := range []struct {
		name, code, remedy string
		prepare            func(t *testing.T, j *job) (secret string)
	}{
		{"password", "WEIR-PG-002", "password", func(_ *testing.T, j *job) string {
			j.url = j.pg.URLAs(harness.Role{Name: "postgres", Password: "hunter2hunter2"}, j.database)
			return "hunter2hunter2"
		}},
		{"role", "WEIR-PG-002", "user", func(_ *testing.T, j *job) string {
			j.url = j.pg.URLAs(harness.Role{Name: "nobody_here", Password: "hunter2hunter2"}, j.database)
			return "hunter2hunter2"
		}},
		{"database", "WEIR-PG-003", "name", func(_ *testing.T, j *job) string {
			j.url = j.pg.URL("no_such_database")
			return j.pg.Admin.Password
		}},
		{"url", "WEIR-PG-001", "sources.db.url", func(_ *testing.T, j *job) string {
			j.url = "postgres://u:hunter2hunter2@[::1/x"
			return "hunter2hunter2"
		}},
		{"port", "WEIR-PG-001", "sources.db.url", func(t *testing.T, j *job) string {
			t.Helper()
			port, err := harness.FreePort(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			j.url = strings.Replace(j.url, strconv.Itoa(j.pg.Port), strconv.Itoa(port), 1)
			return j.pg.Admin.Password
		}},
		{"replication right", "WEIR-PG-005", "ALTER ROLE", func(t *testing.T, j *job) string {
			t.Helper()
			r := role(t, j, "")
			j.url = j.pg.URLAs(r, j.database)
			return r.Password
		}},
		{"owner", "WEIR-PG-022", "CREATE PUBLICATION", func(t *testing.T, j *job) string {
			t.Helper()
			r := role(t, j, "REPLICATION")
			j.url = j.pg.URLAs(r, j.database)
			return r.Password
		}},
		{"identity", "WEIR-PG-018", "REPLICA IDENTITY", func(t *testing.T, j *job) string {
			t.Helper()
			j.exec(t, "CREATE TABLE keyless (a int)")
			return j.pg.Admin.Password
		}},
		{"before", "WEIR-PG-018", "REPLICA IDENTITY FULL", func(_ *testing.T, j *job) string {
			j.source.Before = true
			return j.pg.Admin.Password
		}},
		{"tables", "WEIR-PG-020", "pattern", func(t *testing.T, j *job) string {
			t.Helper()
			p, err := spec.ParseTablePattern("public.nothing")
			if err != nil {
				t.Fatal(err)
			}
			j.source.Tables = spec.Tables{p}
			return j.pg.Admin.Password
		}},
		{"slot", "WEIR-PG-010", "", func(_ *testing.T, j *job) string {
			j.source.Slot = "given"
			return j.pg.Admin.Password
		}},
		{"publication", "WEIR-PG-013", "CREATE PUBLICATION", func(_ *testing.T, j *job) string {
			j.source.Publication = "given"
			return j.pg.Admin.Password
		}},
		{"publication without the table", "WEIR-PG-014", "ADD TABLE", func(t *testing.T, j *job) string {
			t.Helper()
			j.exec(t, "CREATE PUBLICATION given")
			j.source.Publication = "given"
			return j.pg.Admin.Password
		}},
		{"plugin", "WEIR-PG-012", "pg_drop_replication_slot", func(t *testing.T, j *job) string {
			t.Helper()
			j.exec(t, "SELECT pg_create_logical_replication_slot('of_another_plugin', 'test_decoding')")
			t.Cleanup(func() {
				_ = j.pg.Exec(t.Context(), j.database, "SELECT pg_drop_replication_slot('of_another_plugin')")
			})
			j.source.Slot = "of_another_plugin"
			return j.pg.Admin.Password
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, server, "public.*")
			j.exec(t, "CREATE TABLE t (id int PRIMARY KEY)")
			secret := c.prepare(t, j)
			_, err := j.open(t.Context())
			if f := faultOf(t, err, c.code, secret); !strings.Contains(f.Remedy, c.remedy) {
				t.Errorf("remedy is %q, want %q in it", f.Remedy, c.remedy)
			}
		})
	}
}

func TestServerSettings(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		settings map[string]string
		code     string
	}{
		"wal_level": {map[string]string{"wal_level": "replica"}, "WEIR-PG-006"},
		"slots":     {map[string]string{"max_replication_slots": "0"}, "WEIR-PG-007"},
		"senders":   {map[string]string{"max_wal_senders": "0"}, "WEIR-PG-008"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, harness.StartPostgres(t, harness.PostgresConfig{Settings: c.settings}), "public.*")
			j.exec(t, "CREATE TABLE t (id int PRIMARY KEY)")
			_, err := j.open(t.Context())
			wantFault(t, err, c.code, j.pg.Admin.Password)
		})
	}
}

// A role with REPLICATION that owns its tables needs nothing more: no superuser.
func TestPlainOwnerIsEnough(t *testing.T) {
	t.Parallel()
	j := newJob(t, server, "public.*")
	r, err := j.pg.CreateRole(t.Context(), "plain_owner", "REPLICATION")
	if err != nil {
		t.Fatal(err)
	}
	j.exec(t, "GRANT CREATE ON DATABASE "+j.database+" TO plain_owner; GRANT CREATE ON SCHEMA public TO plain_owner; SET ROLE plain_owner; CREATE TABLE t (id int PRIMARY KEY)")
	j.url = j.pg.URLAs(r, j.database)
	a := j.start(t)
	j.exec(t, "INSERT INTO t VALUES (1)")
	wantRows(t, a.take(t, 1), "insert public.t id=1")
}
