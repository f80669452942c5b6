package cdcpostgres

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"weir.dev/weir/pkg/rows"
)

func TestChangesInCommitOrder(t *testing.T) {
	t.Parallel()
	j := newJob(t, server, "public.*")
	j.exec(t, "CREATE TABLE t (id int PRIMARY KEY, v text); CREATE TABLE weir_ledger (id int PRIMARY KEY)")
	a := j.start(t)
	j.exec(t, "INSERT INTO weir_ledger VALUES (1)")
	j.exec(t, "INSERT INTO t VALUES (1, 'a'), (2, NULL); UPDATE t SET v = 'b' WHERE id = 2; DELETE FROM t WHERE id = 1")
	j.exec(t, "INSERT INTO t VALUES (3, '')")
	got := a.take(t, 5)
	wantRows(t, got,
		"insert public.t id=1 v=a", "insert public.t id=2 v=NULL", "update_after public.t id=2 v=b",
		"delete public.t id=1 v=ABSENT", "insert public.t id=3 v=")
	for i, c := range got {
		if want := uint64(i + 1); c.meta.Seq != want {
			t.Errorf("row %d has _seq %d, want %d", i, c.meta.Seq, want)
		}
		if want := uint32(i % 4); c.meta.Ord != want {
			t.Errorf("row %d has _ord %d, want %d", i, c.meta.Ord, want)
		}
		if c.meta.Xid == 0 || c.meta.Ts <= 0 {
			t.Errorf("row %d has _xid %d, _ts %d", i, c.meta.Xid, c.meta.Ts)
		}
		if same := c.meta.Txn == got[0].meta.Txn; same != (i < 4) {
			t.Errorf("row %d has _txn %d, the first one %d", i, c.meta.Txn, got[0].meta.Txn)
		}
	}
}

// O42: an unchanged out-of-line value is neither null nor a value, unless the old row is in the log.
func TestUnchangedToast(t *testing.T) {
	t.Parallel()
	j := newJob(t, server, "public.*")
	big := strings.Repeat("x", 20_000)
	for table, identity := range map[string]string{"d": "DEFAULT", "f": "FULL"} {
		j.exec(t, fmt.Sprintf(`CREATE TABLE %s (id int PRIMARY KEY, big text, arr text[], n int);
			ALTER TABLE %[1]s ALTER big SET STORAGE EXTERNAL; ALTER TABLE %[1]s ALTER arr SET STORAGE EXTERNAL;
			ALTER TABLE %[1]s REPLICA IDENTITY %s`, table, identity))
	}
	a := j.start(t)
	for _, table := range []string{"d", "f"} {
		j.exec(t, fmt.Sprintf("INSERT INTO %s VALUES (1, '%s', ARRAY['%[2]s'], 1)", table, big))
		j.exec(t, fmt.Sprintf("UPDATE %s SET n = 2", table))
		j.exec(t, fmt.Sprintf("BEGIN; DELETE FROM %s; INSERT INTO %[1]s VALUES (1, 'small', NULL, 3); COMMIT", table))
	}
	got := a.take(t, 8)
	// A batch of large values is full at once and may leave before that of another table.
	slices.SortStableFunc(got, func(x, y change) int { return cmp.Compare(x.table, y.table) })
	check := func(c change, op rows.Op, cells ...string) {
		t.Helper()
		if c.meta.Op != op || c.cells["big"] != cells[0] || c.cells["arr"] != cells[1] || c.cells["n"] != cells[2] {
			t.Errorf("%s %s: big %.12q arr %.12q n %q", c.meta.Op, c.table, c.cells["big"], c.cells["arr"], c.cells["n"])
		}
	}
	check(got[0], rows.OpInsert, big, "{"+big+"}", "1")
	check(got[1], rows.OpUpdateAfter, "ABSENT", "ABSENT", "2")
	check(got[2], rows.OpDelete, "ABSENT", "ABSENT", "ABSENT")
	check(got[3], rows.OpInsert, "small", "NULL", "3")
	check(got[4], rows.OpInsert, big, "{"+big+"}", "1")
	check(got[5], rows.OpUpdateAfter, big, "{"+big+"}", "2")
	check(got[6], rows.OpDelete, big, "{"+big+"}", "2")
	check(got[7], rows.OpInsert, "small", "NULL", "3")
}

// O45: a changed key is a delete and an insert, one after the other.
func TestKeyChange(t *testing.T) {
	t.Parallel()
	j := newJob(t, server, "public.*")
	j.exec(t, "CREATE TABLE d (id int PRIMARY KEY, v text); CREATE TABLE f (id int PRIMARY KEY, v text); ALTER TABLE f REPLICA IDENTITY FULL")
	a := j.start(t)
	for _, table := range []string{"d", "f"} {
		j.exec(t, fmt.Sprintf("INSERT INTO %s VALUES (1, 'a')", table))
		j.exec(t, fmt.Sprintf("UPDATE %s SET id = 11 WHERE id = 1", table))
		j.exec(t, fmt.Sprintf("UPDATE %s SET v = 'b' WHERE id = 11", table))
	}
	got := a.take(t, 8)
	wantRows(t, got,
		"insert public.d id=1 v=a", "delete public.d id=1 v=ABSENT", "insert public.d id=11 v=a", "update_after public.d id=11 v=b",
		"insert public.f id=1 v=a", "delete public.f id=1 v=a", "insert public.f id=11 v=a", "update_after public.f id=11 v=b")
	if got[1].meta.Seq+1 != got[2].meta.Seq || got[1].meta.Ord+1 != got[2].meta.Ord || got[1].meta.Txn != got[2].meta.Txn {
		t.Errorf("the halves of the key change are %+v and %+v", got[1].meta, got[2].meta)
	}
}

func TestReplicaIdentities(t *testing.T) {
	t.Parallel()
	j := newJob(t, server, "public.*")
	j.exec(t, `CREATE TABLE by_index (a int NOT NULL, b int PRIMARY KEY, c text NOT NULL); CREATE UNIQUE INDEX i ON by_index (c, a);
		ALTER TABLE by_index REPLICA IDENTITY USING INDEX i;
		CREATE TABLE keyless (a int, b text); ALTER TABLE keyless REPLICA IDENTITY FULL;
		CREATE TABLE composite (x int, a int, y text, b int, PRIMARY KEY (b, a))`)
	a := j.start(t)
	j.exec(t, "INSERT INTO by_index VALUES (1, 2, 'x'); UPDATE by_index SET b = 3; DELETE FROM by_index")
	j.exec(t, "INSERT INTO keyless VALUES (1, 'x'); UPDATE keyless SET a = 2; DELETE FROM keyless")
	j.exec(t, "INSERT INTO composite VALUES (0, 1, 'y', 2); DELETE FROM composite")
	wantRows(t, a.take(t, 9),
		"insert public.by_index a=1 b=2 c=x", "update_after public.by_index a=1 b=3 c=x", "delete public.by_index a=1 b=ABSENT c=x",
		"insert public.keyless a=1 b=x", "update_before public.keyless a=1 b=x", "update_after public.keyless a=2 b=x", "delete public.keyless a=2 b=x",
		"insert public.composite a=1 b=2 x=0 y=y", "delete public.composite a=1 b=2 x=ABSENT y=ABSENT")
	for table, want := range map[string][]string{"by_index": {"c", "a"}, "keyless": nil, "composite": {"b", "a"}} {
		s := a.tables["public."+table]
		var key []string
		for _, i := range s.Key() {
			key = append(key, s.Column(i).Name)
		}
		if !slices.Equal(key, want) {
			t.Errorf("key of %s is %v, want %v", table, key, want)
		}
	}
}

func TestBeforeImages(t *testing.T) {
	t.Parallel()
	j := newJob(t, server, "public.*")
	j.source.Before = true
	j.exec(t, "CREATE TABLE t (id int PRIMARY KEY, v text); ALTER TABLE t REPLICA IDENTITY FULL")
	a := j.start(t)
	j.exec(t, "INSERT INTO t VALUES (1, 'a'); UPDATE t SET v = 'b'; UPDATE t SET id = 2")
	wantRows(t, a.take(t, 5), "insert public.t id=1 v=a", "update_before public.t id=1 v=a", "update_after public.t id=1 v=b",
		"delete public.t id=1 v=b", "insert public.t id=2 v=b")
}

func TestTruncate(t *testing.T) {
	t.Parallel()
	j := newJob(t, server, "public.*")
	j.exec(t, "CREATE TABLE p (id int PRIMARY KEY); CREATE TABLE c (id int PRIMARY KEY REFERENCES p)")
	a := j.start(t)
	j.exec(t, "INSERT INTO p VALUES (1); INSERT INTO c VALUES (1); TRUNCATE p CASCADE; INSERT INTO p VALUES (2)")
	got := a.take(t, 5)
	slices.SortFunc(got, func(a, b change) int { return int(a.meta.Ord) - int(b.meta.Ord) })
	slices.SortFunc(got[2:4], func(a, b change) int { return strings.Compare(a.table, b.table) })
	wantRows(t, got, "insert public.p id=1", "insert public.c id=1", "truncate public.c id=NULL", "truncate public.p id=NULL", "insert public.p id=2")
}

// O35: identifiers of any letters, quotes included.
func TestIdentifiers(t *testing.T) {
	t.Parallel()
	j := newJob(t, server, `"Größe ""x"".y"."日本 *"`)
	j.exec(t, `CREATE SCHEMA "Größe ""x"".y"; CREATE TABLE "Größe ""x"".y"."日本 *" ("ключ'\" int PRIMARY KEY, "select" text)`)
	a := j.start(t)
	j.exec(t, `INSERT INTO "Größe ""x"".y"."日本 *" VALUES (1, 'ü')`)
	wantRows(t, a.take(t, 1), `insert Größe "x".y.日本 * select=ü ключ'\=1`)
}

func TestAddedAndDroppedColumnsMakeNewVersions(t *testing.T) {
	t.Parallel()
	j := newJob(t, server, "public.*")
	j.exec(t, "CREATE TABLE t (id int PRIMARY KEY, v text)")
	a := j.start(t)
	j.exec(t, "INSERT INTO t VALUES (1, 'a')")
	wantRows(t, a.take(t, 1), "insert public.t id=1 v=a")
	first := a.tables["public.t"]
	a.takeEpoch(t)
	j.exec(t, "ALTER TABLE t ADD n int DEFAULT 7; INSERT INTO t VALUES (2, 'b')")
	wantRows(t, a.take(t, 1), "insert public.t id=2 n=7 v=b")
	second := a.tables["public.t"]
	a.takeEpoch(t)
	a.stop()
	// The version goes on over restarts, and is the same while nothing changes.
	j.exec(t, "INSERT INTO t VALUES (3, 'c')")
	a = j.start(t)
	wantRows(t, a.take(t, 1), "insert public.t id=3 n=7 v=c")
	same := a.tables["public.t"]
	j.exec(t, "ALTER TABLE t DROP v; INSERT INTO t VALUES (4)")
	wantRows(t, a.take(t, 1), "insert public.t id=4 n=7")
	third := a.tables["public.t"]
	if v := []uint32{first.Version(), second.Version(), same.Version(), third.Version()}; !slices.Equal(v, []uint32{1, 2, 2, 3}) {
		t.Errorf("schema versions are %v", v)
	}
	if !same.Same(second) {
		t.Error("the schema is another one after a restart")
	}
}

// Every change that cannot be followed stops the job; none is skipped.
func TestTableThatIsNotTheSameAnyMore(t *testing.T) {
	t.Parallel()
	for name, sql := range map[string]string{
		"renamed":   "ALTER TABLE t RENAME TO u; INSERT INTO u VALUES (1)",
		"recreated": "DROP TABLE t; CREATE TABLE t (id int PRIMARY KEY); ALTER PUBLICATION p ADD TABLE t; INSERT INTO t VALUES (1)",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, server, "public.*")
			j.exec(t, "CREATE TABLE t (id int PRIMARY KEY); CREATE PUBLICATION p FOR TABLE t")
			j.source.Publication = "p"
			a := j.start(t)
			j.exec(t, sql)
			wantFault(t, a.failure(t), "WEIR-PG-025")
		})
	}
}

func TestTablesMadeLaterAreReported(t *testing.T) {
	t.Parallel()
	j := newJob(t, server, "public.*")
	j.exec(t, "CREATE TABLE t (id int PRIMARY KEY); CREATE VIEW v AS SELECT 1")
	a := j.start(t)
	a.takeEpoch(t)
	a.stop()
	j.exec(t, "CREATE TABLE later (id int PRIMARY KEY)")
	a = j.start(t)
	notes := map[string]string{}
	for _, table := range a.enum.Report().Tables {
		notes[table.Name] = table.Note
	}
	if len(notes) != 3 || notes["public.t"] != "" || !strings.Contains(notes["public.later"], "after") || !strings.Contains(notes["public.v"], "view") {
		t.Errorf("tables are reported as %q", notes)
	}
}
