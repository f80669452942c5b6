package sink_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"weir.dev/weir/itest/drive"
	"weir.dev/weir/itest/harness"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/rows"
	pkgsink "weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/sink/sinktest"
	"weir.dev/weir/pkg/spec"
)

// say lists the letters as table, key, operation and code.
func say(l sinktest.Letters) []string {
	var out []string
	for _, d := range slices.SortedFunc(maps.Values(l), func(x, y pkgsink.Letter) int {
		return cmp.Or(cmp.Compare(x.Table, y.Table), cmp.Compare(x.Epoch, y.Epoch), cmp.Compare(string(x.Key), string(y.Key)))
	}) {
		out = append(out, fmt.Sprintf("%s %s %s %s", d.Table, d.Key, d.Op, d.Fault.Name()))
	}
	return out
}

// deadAttempt opens a sink with dead letters on a database of its own, after setup.
func deadAttempt(t *testing.T, pg *harness.Postgres, db, setup string) (*drive.Attempt, sinktest.Letters) {
	t.Helper()
	d := makeDatabase(t, pg, db)
	d.Exec(t, setup)
	return drive.OpenDead(t, d.Sink())
}

func TestRowsThatATargetCannotTake(t *testing.T) {
	t.Parallel()
	pg := harness.StartPostgres(t, harness.PostgresConfig{})
	t.Run("each for a reason of its own", func(t *testing.T) { reasons(t, pg) })
	t.Run("a row that waits for one of another table", func(t *testing.T) { orphans(t, pg, "orphans", "") })
	t.Run("a constraint that waits for COMMIT", func(t *testing.T) {
		orphans(t, pg, "deferred", " DEFERRABLE INITIALLY DEFERRED")
	})
	t.Run("unique values that move on in a ring", func(t *testing.T) { ring(t, pg) })
	t.Run("append of a row that lacks a column", func(t *testing.T) { appended(t, pg) })
	t.Run("replay", func(t *testing.T) { replayed(t, pg) })
	t.Run("a register that is swept", func(t *testing.T) { drive.Swept(t, makeDatabase(t, pg, "swept")) })
}

func reasons(t *testing.T, pg *harness.Postgres) {
	a, put := deadAttempt(t, pg, "reasons", `CREATE TABLE out.people (id bigint PRIMARY KEY, email varchar(5) UNIQUE,
		name text NOT NULL CHECK (name <> 'bad')); INSERT INTO out.people VALUES (11, 'old', 'old')`)
	s := drive.People(t, "s.people")
	var all []drive.Row
	for id := int64(100); id < 1100; id++ {
		all = append(all, drive.Ins(id, fmt.Sprint(id), "good"))
	}
	a.Epoch(a.Batch(s, append(all,
		drive.Ins(1, "a", "ok"), drive.Ins(2, "too long", "ok"), drive.Ins(3, "c"), drive.Ins(4, "d", "bad"), drive.Ins(5, "e", "nul \x00"),
		drive.Ins(6, "a", "takes the value of 1"), drive.Upd(8, "?", "partial"), drive.Del(50), drive.Ins(51, "?", "moved"), drive.Del(11), drive.Ins(12, "l", "ok"))...))
	drive.WantLines(t, say(put),
		`s.people {"id":2} insert SINK_ROW`, `s.people {"id":3} insert SINK_CONSTRAINT`, `s.people {"id":4} insert SINK_CONSTRAINT`,
		`s.people {"id":51} insert SINK_PARTIAL_MISS`, `s.people {"id":5} insert SINK_ROW`, `s.people {"id":6} insert SINK_CONSTRAINT`,
		`s.people {"id":8} update_after SINK_PARTIAL_MISS`)
	drive.WantLines(t, show(t, pg, "reasons", "SELECT id, email, name FROM out.people WHERE id < 100 ORDER BY id"), "1|a|ok", "12|l|ok")
	drive.WantLines(t, show(t, pg, "reasons", "SELECT count(*) FROM out.people"), "1002")
	drive.WantLines(t, show(t, pg, "reasons", "SELECT epoch, rows, dead FROM out.weir_ledger_log"), "1|1004|7")
	for _, d := range put {
		text := fmt.Sprint(d.Fault.Why, d.Fault.Remedy, d.Fault.Where)
		if strings.Contains(text, "too long") || strings.Contains(text, "nul ") || strings.Contains(text, "takes") {
			t.Errorf("the reason quotes the row: %s", text)
		}
		if string(d.Key) == `{"id":51}` && string(d.OldKey) != `{"id":50}` {
			t.Errorf("the letter of a move says it comes from %s", d.OldKey)
		}
	}
}

// A row may come before the one it refers to, in the same epoch: only one that never finds it is put aside.
func orphans(t *testing.T, pg *harness.Postgres, db, when string) {
	a, put := deadAttempt(t, pg, db, `CREATE TABLE out.parents (id bigint PRIMARY KEY, email text, name text);
		CREATE TABLE out.people (id bigint PRIMARY KEY, email text, name text);
		ALTER TABLE out.people ADD parent bigint GENERATED ALWAYS AS (id % 1000) STORED REFERENCES out.parents`+when+`;
		DO $$ DECLARE t record; BEGIN FOR t IN SELECT tgrelid::regclass AS rel, tgname FROM pg_trigger LOOP
			EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER %I', t.rel, t.tgname); END LOOP; END $$`)
	child, parent := drive.People(t, "s.people"), drive.People(t, "s.parents")
	a.Epoch(
		a.Batch(child, drive.Ins(1001, "a", "x"), drive.Ins(1002, "b", "x"), drive.Ins(1003, "c", "x"), drive.Ins(2003, "d", "x")),
		a.Batch(parent, drive.Ins(1, "p", "x"), drive.Ins(3, "p", "x")),
	)
	drive.WantLines(t, say(put), `s.people {"id":1002} insert SINK_CONSTRAINT`)
	drive.WantLines(t, show(t, pg, db, "SELECT id FROM out.people ORDER BY id"), "1001", "1003", "2003")
}

// Rows that pass unique values on to each other apply; one that takes the value of a row which keeps it does not.
func ring(t *testing.T, pg *harness.Postgres) {
	a, put := deadAttempt(t, pg, "ring", `CREATE TABLE out.people (id bigint PRIMARY KEY, email text UNIQUE, name text)`)
	s := drive.People(t, "s.people")
	a.Epoch(a.Batch(s, drive.Ins(1, "a", "x"), drive.Ins(2, "b", "x"), drive.Ins(3, "c", "x"), drive.Ins(4, "d", "x")))
	a.Epoch(a.Batch(s, drive.Upd(1, "b", "y"), drive.Upd(2, "a", "y"), drive.Upd(3, "d", "y")))
	drive.WantLines(t, say(put), `s.people {"id":3} update_after SINK_CONSTRAINT`)
	drive.WantLines(t, show(t, pg, "ring", "SELECT id, email, name FROM out.people ORDER BY id"), "1|b|y", "2|a|y", "3|c|x", "4|d|x")
}

func appended(t *testing.T, pg *harness.Postgres) {
	if err := pg.CreateDatabase(t.Context(), "appended"); err != nil {
		t.Fatal(err)
	}
	s := postgresSink(pg.URL("appended"))
	s.Mode = spec.Append
	a, put := drive.OpenDead(t, s)
	table := drive.People(t, "s.people")
	a.Epoch(a.Batch(table, drive.Ins(1, "a", "x"), drive.Upd(2, "?", "y"), drive.Upd(3, "c", "z")))
	drive.WantLines(t, say(put), `s.people {"id":2} update_after SINK_PARTIAL_IMAGE`)
	drive.WantLines(t, show(t, pg, "appended", "SELECT id, email, name FROM out.people ORDER BY id"), "1|a|x", "3|c|z")
	for _, d := range put {
		drive.WantReplay(t, a.Config.Sink, d, false, fault.SinkPartialImage)
	}
}

// A letter applies once, when the target takes it, and never over a later change of its key.
func replayed(t *testing.T, pg *harness.Postgres) {
	a, put := deadAttempt(t, pg, "replayed", `CREATE TABLE out.people (id bigint PRIMARY KEY, email text, name text CONSTRAINT c CHECK (name <> 'bad'))`)
	s := drive.People(t, "s.people")
	a.Epoch(a.Batch(s, drive.Ins(1, "a", "bad"), drive.Ins(2, "b", "bad"), drive.Ins(3, "c", "bad"), drive.Ins(4, "d", "bad"), drive.Ins(5, "e", "bad")))
	a.Epoch(a.Batch(s, drive.Upd(2, "b", "newer"), drive.Del(3), drive.Upd(4, "newer", "bad")))
	if len(put) != 6 {
		t.Fatalf("letters %v", say(put))
	}
	want := func(e epoch.ID, id int64, force bool, code fault.Code) {
		t.Helper()
		drive.WantReplay(t, a.Config.Sink, drive.LetterOf(t, put, e, id), force, code)
	}
	want(1, 1, false, fault.SinkConstraint)
	show(t, pg, "replayed", "ALTER TABLE out.people DROP CONSTRAINT c")
	want(1, 1, false, "")
	show(t, pg, "replayed", "DELETE FROM out.people WHERE id = 1")
	want(1, 1, false, "")                     // it was replayed, and is not again
	want(1, 2, false, fault.SinkDLQOvertaken) // by an update
	want(1, 3, false, fault.SinkDLQOvertaken) // by a delete
	want(1, 4, false, fault.SinkDLQOvertaken) // by a later letter
	want(2, 4, false, "")
	want(1, 3, true, "")
	// The attempt goes on, with what it knows of letters.
	a.Epoch(a.Batch(s, drive.Upd(5, "e", "newest")))
	want(1, 5, false, fault.SinkDLQOvertaken)
	drive.WantLines(t, show(t, pg, "replayed", "SELECT id, email, name FROM out.people ORDER BY id"),
		"2|b|newer", "3|c|bad", "4|newer|bad", "5|e|newest")
	// A letter of an older form of the table is refused: a replay changes no table.
	wide := drive.Schema(t, "postgres", "s.people", 2, append(slices.Clone(s.Columns()), drive.Col("more", rows.Of(rows.KindText), "text"))...)
	a.Epoch(a.Batch(s, drive.Ins(6, "f", strings.Repeat("x", 3))))
	show(t, pg, "replayed", "ALTER TABLE out.people ADD CONSTRAINT c CHECK (name <> 'bad') NOT VALID")
	a.Epoch(a.Batch(s, drive.Upd(6, "f", "bad")))
	show(t, pg, "replayed", "ALTER TABLE out.people DROP CONSTRAINT c")
	a.Epoch(a.Batch(wide, drive.Ins(7, "g", "x", "y")))
	want(5, 6, false, fault.SinkSchemaChange)
}
