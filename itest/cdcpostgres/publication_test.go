package cdcpostgres

import (
	"context"
	"strings"
	"testing"
)

// O19: a slot holds changes of a time when its publication did not exist, because it is older, or because the publication
// was dropped and made again. The server can never send them: servers before 18 fail at the same place for ever, since 18
// they leave the changes out with a warning. It is told, each time, with what mends it.
func TestSlotOlderThanItsPublication(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		slot, begin, older string
		rows               int // of the table in the end
	}{
		"slot made first": {
			slot:  "older_first",
			older: "SELECT pg_create_logical_replication_slot('older_first', 'pgoutput'); INSERT INTO t VALUES (1); CREATE PUBLICATION p FOR TABLE t",
			rows:  2,
		},
		"publication made again": {
			slot:  "older_again",
			begin: "CREATE PUBLICATION p FOR TABLE t; SELECT pg_create_logical_replication_slot('older_again', 'pgoutput')",
			older: "DROP PUBLICATION p; INSERT INTO t VALUES (1); CREATE PUBLICATION p FOR TABLE t",
			rows:  3,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, server, "public.t")
			j.source.Slot, j.source.Publication = c.slot, "p"
			each := func(sql string) {
				t.Helper()
				for statement := range strings.SplitSeq(sql, ";") {
					j.exec(t, statement)
				}
			}
			free := func(sql string) {
				t.Helper()
				eventually(t, "the slot is free", func() bool { return j.pg.Exec(context.Background(), j.database, sql) == nil })
			}
			drop := "SELECT pg_drop_replication_slot('" + c.slot + "')"
			t.Cleanup(func() { free(drop) })
			j.exec(t, "CREATE TABLE t (id int PRIMARY KEY)")
			if c.begin != "" {
				each(c.begin)
				a := j.start(t)
				j.exec(t, "INSERT INTO t VALUES (0)")
				wantRows(t, a.take(t, 1), "insert public.t id=0")
				a.confirm(t, a.takeEpoch(t))
				a.stop()
			}
			each(c.older)
			j.exec(t, "INSERT INTO t VALUES (2)")
			var remedy string
			for range 2 {
				// A publication that an epoch knows is missed when the log is opened, another one by the log itself.
				a, err := j.open(t.Context())
				if err == nil {
					err = a.failure(t)
					a.stop()
					if len(a.rows) != 0 {
						t.Fatalf("%s came behind what cannot be read", a.rows[0])
					}
				}
				remedy = faultOf(t, err, "WEIR-PG-013").Remedy
			}
			for _, sql := range []string{drop, "SELECT pg_create_logical_replication_slot('" + c.slot + "', 'pgoutput')"} {
				if !strings.Contains(remedy, sql+";") {
					t.Fatalf("the remedy has no %s: %s", sql, remedy)
				}
				free(sql)
			}
			j.enum, j.reader = nil, nil // another job
			j.copying(10)
			a := j.start(t)
			a.take(t, c.rows)
			j.exec(t, "INSERT INTO t VALUES (3)")
			wantRows(t, a.through(t, "insert public.t id=3"), "insert public.t id=3")
			a.stop()
		})
	}
}
