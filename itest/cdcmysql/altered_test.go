package cdcmysql

import (
	"errors"
	"fmt"
	"maps"
	"strconv"
	"testing"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/pkg/spec"
)

// fold is what tables have when changes are applied in order: the cells of their rows, by table and id.
type fold map[string]map[string]map[string]string

// apply refuses rows that come twice and changes of rows that are not there.
func (f fold) apply(t *testing.T, changes []change) {
	t.Helper()
	for _, c := range changes {
		table, id := f[c.table], c.cells["id"]
		if table == nil {
			table = make(map[string]map[string]string)
			f[c.table] = table
		}
		_, there := table[id]
		switch c.op {
		case rows.OpTruncate:
			clear(table)
			continue
		case rows.OpDelete, rows.OpUpdateBefore:
			if !there {
				t.Errorf("%s of a row that is not there", c)
			}
			delete(table, id)
			continue
		case rows.OpRead, rows.OpInsert:
			if there {
				t.Errorf("%s comes twice", c)
			}
		default:
		}
		table[id] = c.cells
	}
}

// want compares a table with the server's.
func (f fold) want(t *testing.T, server *harness.MySQL, table string) {
	t.Helper()
	conn, err := server.Connect(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	r, err := conn.Execute("SELECT * FROM " + table)
	if err != nil {
		t.Fatal(err)
	}
	if r.RowNumber() != len(f[table]) {
		t.Errorf("table %s: %d rows came, the server has %d", table, len(f[table]), r.RowNumber())
	}
	for i := range r.RowNumber() {
		want := make(map[string]string, r.ColumnNumber())
		for j, column := range r.Fields {
			text, err := r.GetString(i, j)
			if null, _ := r.IsNull(i, j); null {
				text = "NULL"
			}
			if err != nil {
				t.Fatal(err)
			}
			want[string(column.Name)] = text
		}
		if got := f[table][want["id"]]; !maps.Equal(got, want) {
			t.Fatalf("table %s: %v came, the server has %v", table, got, want)
		}
	}
}

// durable are the changes that an attempt's last epoch has; the attempt is over.
func (a *attempt) durable() []change { return a.rows[:a.covered] }

// wantCode waits for an attempt to fail with a code.
func (a *attempt) wantCode(t *testing.T, code fault.Code) {
	t.Helper()
	if e, ok := errors.AsType[*fault.Error](a.failure(t)); !ok || e.Code != code {
		t.Fatalf("%v, want %s", e, code)
	}
	a.stop()
}

// hold has a reader stand still until release is called.
func (a *attempt) hold(t *testing.T) (release func()) {
	t.Helper()
	stands, on := make(chan struct{}), make(chan struct{})
	a.reads.post(func() error {
		close(stands)
		select {
		case <-on:
		case <-t.Context().Done():
		}
		return nil
	})
	<-stands
	return func() { close(on) }
}

// big makes a table of 20,000 rows, which is read before those whose names come behind it.
func big(db string) []string {
	return []string{
		"CREATE DATABASE " + db, "CREATE TABLE " + db + ".a (id int AUTO_INCREMENT PRIMARY KEY, e enum('a','b'), v int NOT NULL)",
		"INSERT INTO " + db + ".a (e, v) SELECT 'a', 1 FROM " +
			"(SELECT 1 " + tens("UNION ALL SELECT 1", 19) + ") x, (" + ten + ") p, (" + ten + ") q, (" + ten + ") r",
	}
}

const ten = "SELECT 1 UNION ALL SELECT 1 UNION ALL SELECT 1 UNION ALL SELECT 1 UNION ALL SELECT 1 " +
	"UNION ALL SELECT 1 UNION ALL SELECT 1 UNION ALL SELECT 1 UNION ALL SELECT 1 UNION ALL SELECT 1"

func tens(s string, n int) (all string) {
	for range n {
		all += s + " "
	}
	return all
}

// Tables that wait for their copy are altered, in between changes of their rows: the attempt ends, and the next one copies them as
// they are. No row is missing, or twice, or has a value in another column.
func TestAlterBeforeTheCopy(t *testing.T) {
	t.Parallel()
	alters := map[string][]string{
		"added":    {"ADD w int NOT NULL DEFAULT 7"},
		"first":    {"ADD w varchar(9) DEFAULT 'x' FIRST", "MODIFY v varchar(40) AFTER id"},
		"dropped":  {"DROP v"},
		"renamed":  {"CHANGE v u varchar(30)"},
		"narrowed": {"MODIFY n tinyint NOT NULL"},
		"swapped":  {"CHANGE v n varchar(30), CHANGE n v int NOT NULL DEFAULT 3"},
		"copied":   {"ADD w bigint, ALGORITHM=COPY"},
		"rekeyed":  {"DROP PRIMARY KEY, ADD PRIMARY KEY (n, id)"},
		"retyped":  {"MODIFY id varchar(20) COLLATE utf8mb4_general_ci"},
		"keyless":  {"DROP PRIMARY KEY, ADD UNIQUE KEY (n, id)"},
		"again":    {"DROP v", "ADD v varchar(30) DEFAULT 'new'"},
	}
	for name, server := range map[string]*harness.MySQL{"mysql": mysql, "mariadb": harness.StartMariaDB(t, harness.MySQLConfig{})} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := "waiting"
			run(t, server, big(db)...)
			for table := range alters {
				key := "int"
				if table == "rekeyed" { // whose order only the server knows
					key = "varchar(20) COLLATE utf8mb4_general_ci"
				}
				run(t, server, fmt.Sprintf("CREATE TABLE %s.t_%s (id %s PRIMARY KEY, v varchar(30), n int NOT NULL) DEFAULT CHARSET utf8mb4", db, table, key),
					fmt.Sprintf("INSERT INTO %s.t_%s SELECT id, CONCAT('v', id), id %% 100 FROM %[1]s.a WHERE id <= 350", db, table))
			}
			a := start(t, server, spec.SnapshotInitial, db+".*")
			a.until(t, "the first chunks", func() bool { return len(a.rows) > 300 })
			a.settle(t)
			release := a.hold(t)
			if len(a.rows) > 15_000 {
				t.Fatal("the first table was copied before the others were altered")
			}
			for table, all := range alters {
				qualified := db + ".t_" + table
				write := func(n int) {
					run(t, server, fmt.Sprintf("INSERT INTO %s (id, n) VALUES (%d, 1), (%d, 2)", qualified, 1000+n, 2000+n),
						fmt.Sprintf("DELETE FROM %s WHERE id = %d", qualified, 10+n), fmt.Sprintf("UPDATE %s SET id = id + 3000 WHERE id = %d", qualified, 20+n))
				}
				write(0)
				for i, alter := range all {
					run(t, server, "ALTER TABLE "+qualified+" "+alter)
					write(i + 1)
				}
			}
			release()
			a.wantCode(t, fault.MYCopyAltered)
			got := make(fold)
			got.apply(t, a.durable())
			b, err := resume(t, server, a, spec.SnapshotInitial, db+".*")
			if err != nil {
				t.Fatal(err)
			}
			b.wantAll(t, server, got, db, alters)
		})
	}
}

// wantAll waits until a row of each table comes by the log, and compares all tables. Until the copy is over rows come by it.
func (a *attempt) wantAll(t *testing.T, server *harness.MySQL, got fold, db string, tables map[string][]string) {
	t.Helper()
	copied := map[string]bool{db + ".a": true}
	for table := range tables {
		copied[db+".t_"+table] = true
	}
	for id := 90_000; len(copied) > 0; id++ {
		awaited, seen := maps.Clone(copied), 0
		for table := range awaited {
			run(t, server, fmt.Sprintf("INSERT INTO %s SET id = %d, %s = 1", table, id, map[bool]string{true: "v", false: "n"}[table == db+".a"]))
		}
		a.until(t, "the last rows", func() bool {
			for ; seen < len(a.rows); seen++ {
				if c := a.rows[seen]; c.cells["id"] == strconv.Itoa(id) {
					delete(awaited, c.table)
					if c.op == rows.OpInsert {
						delete(copied, c.table)
					}
				}
			}
			return len(awaited) == 0
		})
	}
	a.stop()
	got.apply(t, a.rows)
	for table := range got {
		got.want(t, server, table)
	}
}

// A table that is altered when a part of it was copied stops the job at the next attempt. An order to copy it anew does not read
// the rest of that copy, which may have another key by now: the table is emptied and copied as it is.
func TestAlterAmidTheCopyThenAnew(t *testing.T) {
	t.Parallel()
	alters := map[string]string{
		"added": "ADD w int NOT NULL DEFAULT 7", "rekeyed": "MODIFY id int NOT NULL, DROP PRIMARY KEY, ADD PRIMARY KEY (v, id)", "retyped": "MODIFY id bigint, DROP e",
	}
	for name, server := range map[string]*harness.MySQL{"mysql": mysql, "mariadb": harness.StartMariaDB(t, harness.MySQLConfig{})} {
		for change, alter := range alters {
			t.Run(name+"/"+change, func(t *testing.T) {
				t.Parallel()
				db := "anew_" + change
				run(t, server, big(db)...)
				a := start(t, server, spec.SnapshotInitial, db+".*")
				a.until(t, "the first chunks", func() bool { return len(a.rows) > 300 })
				a.settle(t)
				release := a.hold(t)
				run(t, server, "UPDATE "+db+".a SET v = 5 WHERE id IN (7, 19999)", "DELETE FROM "+db+".a WHERE id IN (8, 19998)",
					"ALTER TABLE "+db+".a "+alter, "UPDATE "+db+".a SET v = 6 WHERE id IN (9, 19997)")
				release()
				a.wantCode(t, fault.MYCopyAltered)
				got := make(fold)
				got.apply(t, a.durable())
				if _, err := resume(t, server, a, spec.SnapshotInitial, db+".*"); fault.CodeOf(err) != fault.MYSchemaChanged {
					t.Fatalf("%v, want %s", err, fault.MYSchemaChanged)
				}
				a.again = &source.Again{Seq: 1, Tables: []string{db + ".a"}}
				b, err := resume(t, server, a, spec.SnapshotInitial, db+".*")
				if err != nil {
					t.Fatal(err)
				}
				b.wantAll(t, server, got, db, nil)
				if n := len(b.rows); n > 20_200 {
					t.Errorf("%d rows: what was left of the first copy was read", n)
				}
			})
		}
	}
}
