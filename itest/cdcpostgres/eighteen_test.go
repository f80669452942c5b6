package cdcpostgres

import (
	"fmt"
	"strings"
	"testing"
)

// O43 as PostgreSQL 18 has it: columns that are generated when they are read are in no log, and stored ones are where the
// publication says so. Copy and log agree all the same. An older server has only what it has.
func TestGeneratedColumnsByPublication(t *testing.T) {
	t.Parallel()
	virtual, options := "", ""
	if version >= 18 {
		virtual, options = ", w int GENERATED ALWAYS AS (a * 3) VIRTUAL", " WITH (publish_generated_columns = stored)"
	}
	for _, identity := range []string{"DEFAULT", "FULL"} {
		t.Run(identity, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, server, "public.t").copying(100)
			j.source.Publication = "given"
			virtual := virtual
			if identity == "FULL" {
				virtual = "" // the server refuses the updates of such a table
			}
			j.exec(t, fmt.Sprintf(`CREATE TABLE t (id int PRIMARY KEY, a int, g int GENERATED ALWAYS AS (a * 2) STORED%s, z int);
				ALTER TABLE t REPLICA IDENTITY %s; INSERT INTO t (id, a, z) VALUES (1, 1, 7)`, virtual, identity))
			j.exec(t, "CREATE PUBLICATION given FOR TABLE t"+options)
			a := j.start(t)
			wantRows(t, a.take(t, 1), "read public.t a=1 id=1 z=7")
			j.exec(t, "UPDATE t SET a = 2")
			wantRows(t, a.through(t, "update_after public.t a=2 id=1 z=7"), "update_after public.t a=2 id=1 z=7")
			a.confirm(t, a.takeEpoch(t))
			a.take(t, 1)
			j.exec(t, "DELETE FROM t")
			rest := "z=ABSENT"
			if identity == "FULL" {
				rest = "z=7"
			}
			if got := a.take(t, 1)[0]; got.meta.Op.String() != "delete" || got.cells["id"] != "1" || "z="+got.cells["z"] != rest || len(got.cells) != 3 {
				t.Errorf("the row that went is %s", got)
			}
		})
	}
}

// What Weir publishes keeps the updates of its owner going, also where 18 asks more of a publication: a row that is its own
// identity has to be sent whole.
func TestGeneratedColumnUnderFull(t *testing.T) {
	t.Parallel()
	j := newJob(t, server, "public.t").copying(100)
	j.exec(t, `CREATE TABLE t (id int, g int GENERATED ALWAYS AS (id * 2) STORED); ALTER TABLE t REPLICA IDENTITY FULL; INSERT INTO t VALUES (1)`)
	a := j.start(t)
	wantRows(t, a.take(t, 1), "read public.t id=1")
	j.exec(t, "UPDATE t SET id = 2")
	wantRows(t, a.through(t, "update_after public.t id=2"), "update_before public.t id=1", "update_after public.t id=2")
}

// A virtual column in such a row can be sent by no publication, and is refused before there is one.
func TestVirtualColumnUnderFull(t *testing.T) {
	t.Parallel()
	if version < 18 {
		return // there are none
	}
	j := newJob(t, server, "public.t")
	j.exec(t, `CREATE TABLE t (id int PRIMARY KEY, w int GENERATED ALWAYS AS (id * 2) VIRTUAL); ALTER TABLE t REPLICA IDENTITY FULL; INSERT INTO t VALUES (1)`)
	_, err := j.open(t.Context())
	f := faultOf(t, err, "WEIR-PG-018")
	j.exec(t, "UPDATE t SET id = 2")
	mend := `ALTER TABLE "public"."t" REPLICA IDENTITY DEFAULT`
	if !strings.Contains(f.Remedy, mend+";") {
		t.Errorf("the remedy is %q", f.Remedy)
	}
	j.exec(t, mend)
	a := j.start(t)
	j.exec(t, "UPDATE t SET id = 3")
	wantRows(t, a.take(t, 2), "delete public.t id=2", "insert public.t id=3")
}

// A key that only a temporal index has, a default of version 18 and constraints that are rows of the catalog: tables that
// older servers cannot have are copied and followed like others.
func TestTablesOfEighteen(t *testing.T) {
	t.Parallel()
	if version < 18 {
		return // there are none
	}
	j := newJob(t, server, "public.*").copying(2)
	j.exec(t, `CREATE EXTENSION btree_gist;
		CREATE TABLE stay (room int, during int4range, v text, PRIMARY KEY (room, during WITHOUT OVERLAPS));
		INSERT INTO stay SELECT g % 2, int4range(g * 10, g * 10 + 5), 'v' || g FROM generate_series(1, 6) g;
		CREATE TABLE seventh (id uuid DEFAULT uuidv7() PRIMARY KEY, n int);
		INSERT INTO seventh (n) SELECT g FROM generate_series(1, 6) g;
		CREATE TABLE strict (id int PRIMARY KEY, n int); INSERT INTO strict VALUES (1, 1);
		ALTER TABLE strict ADD CONSTRAINT n_is_there NOT NULL n NOT VALID`)
	a := j.start(t)
	a.until(t, "the copy", func() bool { return len(a.rows) == 13 })
	a.confirm(t, a.takeEpoch(t))
	a.take(t, 13)
	j.exec(t, "UPDATE stay SET during = '[200,205)' WHERE room = 1 AND during = '[10,15)'; DELETE FROM stay WHERE during = '[20,25)'")
	j.exec(t, "ALTER TABLE strict VALIDATE CONSTRAINT n_is_there; ALTER TABLE strict ADD m int; UPDATE strict SET n = 2")
	j.exec(t, "INSERT INTO seventh (n) VALUES (7)")
	got := a.through(t, "n=7")
	wantRows(t, got[:len(got)-1],
		"delete public.stay during=[10,15) room=1 v=ABSENT", "insert public.stay during=[200,205) room=1 v=v1",
		"delete public.stay during=[20,25) room=0 v=ABSENT", "update_after public.strict id=1 m=NULL n=2")
}
