package cdcpostgres

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/pkg/spec"
)

// apply has the next attempts capture other tables.
func (j *job) apply(t *testing.T, patterns ...string) {
	t.Helper()
	j.applied++
	j.source.Tables = nil
	j.tables(t, patterns...)
}

// copying is a job that copies, in small chunks.
func copying(t *testing.T, patterns ...string) *job {
	t.Helper()
	j := newJob(t, server, patterns...)
	j.source.Snapshot = spec.Snapshot{Mode: spec.SnapshotInitial, ChunkRows: 2}
	return j
}

// O20: a table is added while the log has a backlog of it, a transaction that writes to it is open, and the publication is of
// before. Each row comes once: read, or as the change behind it.
func TestTableIsAdded(t *testing.T) {
	t.Parallel()
	j := copying(t, "public.a")
	j.exec(t, "CREATE TABLE a (id int PRIMARY KEY, v text); CREATE TABLE b (id int PRIMARY KEY, v text); INSERT INTO a VALUES (1, 'x')")
	a := j.start(t)
	a.takeUntil(t, "read public.a id=1 v=x")
	j.exec(t, "INSERT INTO a VALUES (2, 'y')")
	a.takeUntil(t, "insert public.a id=2 v=y")
	a.takeEpoch(t)
	a.stop()
	j.exec(t, "INSERT INTO b SELECT i, 'backlog' FROM generate_series(1, 5) i; UPDATE b SET v = 'changed' WHERE id = 2; INSERT INTO a VALUES (3, 'y')")
	conn, err := j.pg.Connect(t.Context(), j.database)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	open, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := open.Exec(t.Context(), "INSERT INTO b VALUES (6, 'open'); DELETE FROM b WHERE id = 1"); err != nil {
		t.Fatal(err)
	}

	j.apply(t, "public.a", "public.b")
	a = j.start(t)
	a.takeEpoch(t)
	a.stop() // the epoch has the order; the next attempt is not given it a second time
	a = j.start(t)
	if _, err := open.Exec(t.Context(), "INSERT INTO b VALUES (7, 'open')"); err != nil {
		t.Fatal(err)
	}
	if err := open.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := a.takeUntil(t, "read public.b id=7 v=open")
	j.exec(t, "INSERT INTO b VALUES (8, 'new'); DELETE FROM b WHERE id = 3; INSERT INTO a VALUES (4, 'new')")
	got = append(got, a.takeUntil(t, "insert public.b id=8 v=new", "delete public.b id=3 v=ABSENT", "insert public.a id=4 v=new")...)
	b := of("public.b", got)
	slices.Sort(b)
	want := []string{
		"delete public.b id=3 v=ABSENT", "insert public.b id=8 v=new", "read public.b id=2 v=changed", "read public.b id=3 v=backlog",
		"read public.b id=4 v=backlog", "read public.b id=5 v=backlog", "read public.b id=6 v=open", "read public.b id=7 v=open",
	}
	if !slices.Equal(b, want) {
		t.Errorf("b has %q", b)
	}
	if got, want := of("public.a", got), []string{"insert public.a id=3 v=y", "insert public.a id=4 v=new"}; !slices.Equal(got, want) {
		t.Errorf("a has %q", got)
	}
}

// A table that is removed is left alone, and leaves the publication once no epoch needs it; one that comes back is emptied and
// copied, and the versions of its schema go on.
func TestTableIsRemovedAndComesBack(t *testing.T) {
	t.Parallel()
	j := copying(t, "public.*")
	j.exec(t, "CREATE TABLE a (id int PRIMARY KEY, v text); CREATE TABLE b (id int PRIMARY KEY, v text)")
	j.exec(t, "INSERT INTO a VALUES (1, 'x'); INSERT INTO b VALUES (1, 'x'), (2, 'x')")
	a := j.start(t)
	a.takeUntil(t, "read public.a id=1 v=x", "read public.b id=2 v=x")
	j.exec(t, "INSERT INTO b VALUES (3, 'y')")
	a.takeUntil(t, "insert public.b id=3 v=y")
	a.takeEpoch(t)
	was := a.tables["public.b"]
	a.stop()

	j.apply(t, "public.a")
	a = j.start(t)
	j.exec(t, "INSERT INTO b VALUES (4, 'gone'); DELETE FROM b WHERE id = 1; INSERT INTO a VALUES (2, 'y')")
	if got := texts(a.takeUntil(t, "insert public.a id=2 v=y")); len(got) != 1 {
		t.Errorf("without b: %q", got)
	}
	a.takeEpoch(t)
	a.stop()
	j.awaitPublished(t, j.start(t), "a")
	j.exec(t, "ALTER TABLE b ADD w int DEFAULT 1; INSERT INTO b VALUES (5, 'unsent', 2)")

	j.apply(t, "public.a", "public.b")
	a = j.start(t)
	got := of("public.b", a.takeUntil(t, "read public.b id=5 v=unsent w=2"))
	if len(got) != 5 || !strings.HasPrefix(got[0], "truncate") || got[1] != "read public.b id=2 v=x w=1" {
		t.Errorf("b came back as %q", got)
	}
	if now := a.tables["public.b"]; now.Version() != was.Version()+1 {
		t.Errorf("schema version %d follows %d", now.Version(), was.Version())
	}
	j.exec(t, "UPDATE b SET w = 3 WHERE id = 5")
	if got := texts(a.takeUntil(t, "update_after public.b id=5 v=unsent w=3")); len(got) != 1 {
		t.Errorf("behind the copy: %q", got)
	}
}

// awaitPublished runs an attempt until the publication has these tables.
func (j *job) awaitPublished(t *testing.T, a *attempt, want string) {
	t.Helper()
	conn, err := j.pg.Connect(t.Context(), j.database)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	for {
		rows, err := conn.Query(t.Context(), "SELECT coalesce(string_agg(tablename, ' ' ORDER BY tablename), '') FROM pg_publication_tables")
		if err != nil {
			t.Fatal(err)
		}
		got, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		if got == want {
			a.stop()
			return
		}
		a.takeEpoch(t)
	}
}

// An order that was taken back before an epoch had it changed nothing: no change of the table that was to go is missing.
func TestRemovalTakenBack(t *testing.T) {
	t.Parallel()
	j := copying(t, "public.*")
	j.exec(t, "CREATE TABLE a (id int PRIMARY KEY, v text); CREATE TABLE b (id int PRIMARY KEY, v text)")
	j.exec(t, "INSERT INTO a VALUES (1, 'x'); INSERT INTO b VALUES (1, 'x')")
	a := j.start(t)
	a.takeUntil(t, "read public.a id=1 v=x", "read public.b id=1 v=x")
	j.exec(t, "INSERT INTO b VALUES (2, 'y')")
	a.takeUntil(t, "insert public.b id=2 v=y")
	a.takeEpoch(t)
	a.stop()
	j.apply(t, "public.a")
	a = j.start(t)
	j.exec(t, "INSERT INTO b VALUES (3, 'between')")
	a.stop()
	j.apply(t, "public.*")
	a = j.start(t)
	j.exec(t, "INSERT INTO b VALUES (4, 'y')")
	if got, want := texts(a.takeUntil(t, "insert public.b id=4 v=y")), []string{"insert public.b id=3 v=between", "insert public.b id=4 v=y"}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

// Tables that were renamed, or dropped and made again, stop the job; the spec it has, applied, takes them as they are.
func TestTablesOfToday(t *testing.T) {
	t.Parallel()
	j := copying(t, "public.*")
	j.exec(t, "CREATE TABLE a (id int PRIMARY KEY, v text); CREATE TABLE b (id int PRIMARY KEY, v text)")
	j.exec(t, "INSERT INTO a VALUES (1, 'x'); INSERT INTO b VALUES (1, 'x')")
	a := j.start(t)
	a.takeUntil(t, "read public.a id=1 v=x", "read public.b id=1 v=x")
	j.exec(t, "INSERT INTO b VALUES (2, 'y')")
	a.takeUntil(t, "insert public.b id=2 v=y")
	a.takeEpoch(t)
	a.stop()
	j.exec(t, "INSERT INTO a VALUES (2, 'old'); DROP TABLE a; CREATE TABLE a (id int PRIMARY KEY, v text); INSERT INTO a VALUES (1, 'again')")
	j.exec(t, "INSERT INTO b VALUES (3, 'old'); ALTER TABLE b RENAME TO c; INSERT INTO c VALUES (4, 'renamed')")
	j.apply(t, "public.*")
	a = j.start(t)
	got := a.takeUntil(t, "read public.a id=1 v=again", "read public.c id=4 v=renamed")
	if got := of("public.a", got); len(got) != 2 || !strings.HasPrefix(got[0], "truncate") {
		t.Errorf("a has %q", got)
	}
	if got := of("public.b", got); len(got) != 0 {
		t.Errorf("b has %q", got)
	}
	j.exec(t, "INSERT INTO a VALUES (2, 'new'); INSERT INTO c VALUES (5, 'new')")
	rest := texts(a.takeUntil(t, "insert public.a id=2 v=new", "insert public.c id=5 v=new"))
	if len(rest) != 2 {
		t.Errorf("behind the copy: %q", rest)
	}
}

// The log that a job needs is gone: a typed stop, and the order that is its remedy begins anew with a slot of its own.
func TestLogBeginsAnew(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		code   fault.Code
		damage string
	}{
		"dropped":     {fault.PGSlotMissing, "SELECT pg_drop_replication_slot('%[1]s')"},
		"made again":  {fault.PGBehind, "SELECT pg_drop_replication_slot('%[1]s'); DELETE FROM a WHERE id = 3; SELECT pg_create_logical_replication_slot('%[1]s', 'pgoutput')"},
		"foreign":     {fault.PGSlotForeign, "SELECT pg_drop_replication_slot('%[1]s'); SELECT pg_create_logical_replication_slot('%[1]s', 'test_decoding')"},
		"unpublished": {fault.PGPublicationMissing, "DROP PUBLICATION %[2]s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := copying(t, "public.*")
			j.exec(t, "CREATE TABLE a (id int PRIMARY KEY, v text); INSERT INTO a VALUES (1, 'x'), (2, 'x'), (3, 'x')")
			a := j.start(t)
			a.takeUntil(t, "read public.a id=3 v=x")
			j.exec(t, "INSERT INTO a VALUES (4, 'y')")
			a.takeUntil(t, "insert public.a id=4 v=y")
			a.takeEpoch(t)
			a.stop()
			slot := j.ask(t, "SELECT slot_name FROM pg_replication_slots WHERE database = current_database()")
			for sql := range strings.SplitSeq(fmt.Sprintf(c.damage, slot, j.ask(t, "SELECT pubname FROM pg_publication")), ";") {
				j.exec(t, sql)
			}
			j.exec(t, "DELETE FROM a WHERE id = 1; INSERT INTO a VALUES (5, 'z')")
			_, err := j.open(t.Context())
			if fault.CodeOf(err) != c.code || !strings.Contains(fault.Of(err).Remedy, "`weir job resnapshot shop`") {
				t.Fatalf("%v; remedy %s", err, fault.Of(err).Remedy)
			}
			j.again = &source.Again{Seq: 1, Tables: []string{"public.a"}}
			if _, err := j.open(t.Context()); fault.CodeOf(err) != c.code {
				t.Fatalf("one table for the whole log: %v", err)
			}
			j.again = &source.Again{Seq: 2}
			j.start(t).stop() // nothing of it was durable
			a = j.start(t)
			got := texts(a.takeUntil(t, "read public.a id=5 v=z"))
			if !strings.HasPrefix(got[0], "truncate") || got[1] != "read public.a id=2 v=x" || slices.Contains(got, "read public.a id=1 v=x") {
				t.Errorf("the copy is %q", got)
			}
			j.exec(t, "INSERT INTO a VALUES (6, 'new')")
			if got := texts(a.takeUntil(t, "insert public.a id=6 v=new")); len(got) != 1 {
				t.Errorf("behind the copy: %q", got)
			}
			a.takeEpoch(t)
			a.stop()
			a = j.start(t)
			j.exec(t, "INSERT INTO a VALUES (7, 'last')")
			if got := texts(a.takeUntil(t, "insert public.a id=7 v=last")); len(got) != 1 {
				t.Errorf("an order was done twice: %q", got)
			}
			for n := 0; j.ask(t, "SELECT count(*)::text FROM pg_replication_slots WHERE database = current_database()") != "1"; n++ {
				if n > 100 {
					t.Fatal("older slots stay")
				}
				a.takeEpoch(t)
			}
		})
	}
}

// ask is the one value of a query.
func (j *job) ask(t *testing.T, sql string) string {
	t.Helper()
	conn, err := j.pg.Connect(t.Context(), j.database)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var v string
	if err := conn.QueryRow(t.Context(), sql).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}
