package cdcmysql

import (
	"testing"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/spec"
)

// Columns that change amid the copy of their table end the attempt, also where the rows of a chunk do not show it, and the next one
// is refused; what is no change of columns does neither. An ALTER waits for no copy that stands still.
func TestAlterAmidTheCopy(t *testing.T) {
	t.Parallel()
	const many = 20_000
	for name, c := range map[string]struct {
		alter string
		stops bool
	}{
		"column":  {"ADD COLUMN w int", true},
		"label":   {"MODIFY e enum('b','a')", true},
		"key":     {"DROP PRIMARY KEY, ADD PRIMARY KEY (id, v)", true},
		"index":   {"ADD KEY (v)", false},
		"counter": {"AUTO_INCREMENT = 1000000", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := "alter_" + name
			run(t, mysql, "CREATE DATABASE "+db, "CREATE TABLE "+db+".t (id int AUTO_INCREMENT PRIMARY KEY, e enum('a','b'), v int NOT NULL)",
				"SET cte_max_recursion_depth = 1000000",
				"INSERT INTO "+db+".t (e, v) WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 20000) SELECT 'a', i FROM n")
			a := start(t, mysql, spec.SnapshotInitial, db+".*")
			a.until(t, "the first chunks", func() bool { return len(a.rows) > 300 })
			a.settle(t)
			release := a.hold(t)
			a.mu.Lock()
			copied := len(a.rows)
			a.mu.Unlock()
			run(t, mysql, "SET lock_wait_timeout = 20", "ALTER TABLE "+db+".t "+c.alter)
			release()
			if copied == many {
				t.Fatal("everything was copied before the table was altered")
			}
			if !c.stops {
				a.take(t, many)
				return
			}
			a.wantCode(t, fault.MYCopyAltered)
			if _, err := resume(t, mysql, a, spec.SnapshotInitial, db+".*"); fault.CodeOf(err) != fault.MYSchemaChanged {
				t.Errorf("%v, want %s", err, fault.MYSchemaChanged)
			}
		})
	}
}
