package cdcpostgres

import (
	"slices"
	"strings"
	"testing"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/pkg/spec"
)

// of keeps the changes of one table.
func of(table string, all []change) []string {
	var got []string
	for _, c := range all {
		if c.table == table {
			got = append(got, c.String())
		}
	}
	return got
}

// takeUntil commits epochs until these changes have come, and returns all that have. Tables have batches of their own, so the
// order between tables is not that of the log.
func (a *attempt) takeUntil(t *testing.T, last ...string) []change {
	t.Helper()
	for n := 1; ; n++ {
		a.takeBehindAtLeast(t, n)
		a.mu.Lock()
		got := texts(a.rows)
		if !slices.ContainsFunc(last, func(s string) bool { return !slices.Contains(got, s) }) {
			all := a.rows
			a.rows = nil
			a.mu.Unlock()
			return all
		}
		n = len(got)
		a.mu.Unlock()
	}
}

// An order empties a table and copies it again while nothing of the log is lost or comes twice; it is done once.
func TestResnapshot(t *testing.T) {
	t.Parallel()
	j := newJob(t, server, "public.*")
	j.source.Snapshot = spec.Snapshot{Mode: spec.SnapshotInitial, ChunkRows: 2}
	j.exec(t, "CREATE TABLE a (id int PRIMARY KEY, v text); CREATE TABLE b (id int PRIMARY KEY, v text)")
	j.exec(t, "INSERT INTO a VALUES (1, 'x'), (2, 'x'), (3, 'x'); INSERT INTO b VALUES (1, 'x')")
	a := j.start(t)
	a.takeUntil(t, "read public.a id=3 v=x", "read public.b id=1 v=x")
	j.exec(t, "INSERT INTO a VALUES (4, 'y'); INSERT INTO b VALUES (2, 'y')")
	a.takeUntil(t, "insert public.a id=4 v=y", "insert public.b id=2 v=y")
	a.takeEpoch(t)
	a.stop()
	// These are in the log and, of a, in the copy too.
	j.exec(t, "DELETE FROM a WHERE id = 1; UPDATE a SET v = 'z' WHERE id = 2; INSERT INTO b VALUES (3, 'z')")

	j.again = &source.Again{Seq: 1, Tables: []string{"public.a", "public.nothing"}}
	a = j.start(t)
	a.takeEpoch(t)
	copied := of("public.a", a.takeUntil(t, "read public.a id=4 v=y"))
	want := []string{"read public.a id=2 v=z", "read public.a id=3 v=x", "read public.a id=4 v=y"}
	if len(copied) != 4 || !strings.HasPrefix(copied[0], "truncate") || !slices.Equal(copied[1:], want) {
		t.Errorf("the copy is %q", copied)
	}
	j.exec(t, "INSERT INTO a VALUES (5, 'new'); INSERT INTO b VALUES (4, 'new')")
	rest := a.takeUntil(t, "insert public.a id=5 v=new", "insert public.b id=4 v=new")
	if got, want := of("public.a", rest), []string{"insert public.a id=5 v=new"}; !slices.Equal(got, want) {
		t.Errorf("behind the copy a has %q, want %q", got, want)
	}
	if got, want := of("public.b", rest), []string{"insert public.b id=3 v=z", "insert public.b id=4 v=new"}; !slices.Equal(got, want) {
		t.Errorf("b has %q, want %q", got, want)
	}
	a.takeEpoch(t)
	a.stop()

	a = j.start(t) // the same order again
	j.exec(t, "INSERT INTO a VALUES (6, 'last')")
	if got := texts(a.takeUntil(t, "insert public.a id=6 v=last")); len(got) != 1 {
		t.Errorf("an order was done twice: %q", got)
	}
}

// It is the remedy for a change of a table that the log cannot follow: the columns of today are taken, in a new schema
// version, and what the log has of the table in its old form is not looked at.
func TestResnapshotMendsTableThatDiffers(t *testing.T) {
	t.Parallel()
	j := newJob(t, server, "public.a")
	j.source.Snapshot = spec.Snapshot{Mode: spec.SnapshotInitial, ChunkRows: 2}
	j.exec(t, "CREATE TABLE a (id int PRIMARY KEY, v text, w text); INSERT INTO a VALUES (1, '10', 'x'), (2, '20', 'x')")
	a := j.start(t)
	a.takeUntil(t, "read public.a id=2 v=20 w=x")
	j.exec(t, "INSERT INTO a VALUES (3, '30', 'x')")
	a.takeUntil(t, "insert public.a id=3 v=30 w=x")
	a.takeEpoch(t)
	was := a.tables["public.a"]
	j.exec(t, "INSERT INTO a VALUES (4, '40', 'x')")
	j.exec(t, "ALTER TABLE a ALTER v TYPE int USING -v::int; ALTER TABLE a DROP w; ALTER TABLE a ADD u text DEFAULT 'd'")
	j.exec(t, "INSERT INTO a VALUES (5, -50, 'u')")
	err := a.failure(t)
	if c := fault.Of(err).Code; c != fault.PGTableDiffers && c != fault.PGSchemaChanged {
		t.Fatalf("the change was followed: %v", err)
	}
	a.stop()

	j.again = &source.Again{Seq: 1}
	a = j.start(t)
	got := texts(a.takeUntil(t, "read public.a id=5 u=u v=-50"))
	if !strings.HasPrefix(got[0], "truncate") || len(got) != 6 || got[1] != "read public.a id=1 u=d v=-10" {
		t.Errorf("got %q", got)
	}
	j.exec(t, "UPDATE a SET v = 7 WHERE id = 1")
	if got := texts(a.takeUntil(t, "update_after public.a id=1 u=d v=7")); len(got) != 1 {
		t.Errorf("behind the copy: %q", got)
	}
	now := a.tables["public.a"]
	if now.Version() <= was.Version() {
		t.Errorf("schema version %d follows %d", now.Version(), was.Version())
	}
}
