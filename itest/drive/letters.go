package drive

import (
	"fmt"
	"testing"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	pkgsink "weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/sink/sinktest"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/sink"
)

// Database is a target with dead letters. A case has it for itself.
type Database interface {
	// Sink writes into it, into tables that are called like the source's, also those that are there.
	Sink() spec.Sink
	// Name is that of a table, for SQL.
	Name(table string) string
	Exec(tb testing.TB, statements ...string)
	// Show reads a query as lines of text, cells parted by |.
	Show(tb testing.TB, sql string) []string
}

// OpenDead opens an attempt of a sink with dead letters.
func OpenDead(tb testing.TB, s spec.Sink) (*Attempt, sinktest.Letters) {
	tb.Helper()
	s.DLQ = true
	cfg, put := Config(s, 1), sinktest.Letters{}
	cfg.Letters = put
	return Open(tb, cfg), put
}

// LetterOf is the letter of an epoch's row.
func LetterOf(tb testing.TB, put sinktest.Letters, e epoch.ID, id int64) pkgsink.Letter {
	tb.Helper()
	for _, d := range put {
		if d.Epoch == e && string(d.Key) == fmt.Sprintf(`{"id":%d}`, id) {
			return d
		}
	}
	tb.Fatalf("no letter of %d in epoch %s", id, e)
	return pkgsink.Letter{}
}

// WantReplay replays a letter and wants an error of a code, or none.
func WantReplay(tb testing.TB, s spec.Sink, d pkgsink.Letter, force bool, code fault.Code) {
	tb.Helper()
	if err := sink.Resend(tb.Context(), s, d, Resolve, force); fault.CodeOf(err) != code || (code == "") != (err == nil) {
		tb.Errorf("replay of %s of epoch %s: %v, want %q", d.Key, d.Epoch, err, code)
	}
}

// Swept is a case: the register forgets a letter once it is gone and its epoch has left the ledger's log. As long as there is
// the letter there is its line, and without the line nothing is applied a second time.
func Swept(t *testing.T, db Database) {
	t.Helper()
	db.Exec(t, "CREATE TABLE "+db.Name("people")+" (id bigint PRIMARY KEY, email text, name text, CONSTRAINT good CHECK (name <> 'bad'))")
	a, put := OpenDead(t, db.Sink())
	s := People(t, "s.people")
	a.Epoch(a.Batch(s, Ins(1, "a", "bad"), Ins(2, "b", "bad"), Ins(3, "c", "bad"), Ins(4, "d", "bad"), Ins(5, "e", "bad")))
	a.Epoch(a.Batch(s, Upd(4, "newer", "good")))
	db.Exec(t, "ALTER TABLE "+db.Name("people")+" DROP CONSTRAINT good")
	letter := func(id int64) pkgsink.Letter { return LetterOf(t, put, 1, id) }
	replay := func(d pkgsink.Letter, code fault.Code) {
		t.Helper()
		WantReplay(t, a.Config.Sink, d, false, code)
	}
	done, discarded := letter(1), letter(3)
	replay(done, "")
	replay(letter(2), "") // and the command is killed before it can remove it
	delete(put, done.LetterID)
	delete(put, discarded.LetterID)
	db.Exec(t, "DELETE FROM "+db.Name("people")+" WHERE id IN (1, 2)")
	lines := "SELECT idx FROM " + db.Name("weir_ledger_letters") + " ORDER BY 1"
	for n := 3; n < 100; n++ {
		a.Epoch(a.Batch(s, Upd(9, "i", fmt.Sprint(n))))
	}
	WantLines(t, db.Show(t, lines), "0", "1", "2", "3", "4") // their epoch is in the log as yet
	log := db.Name("weir_ledger_log")
	db.Exec(t, "INSERT INTO "+log+" WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 1000)"+
		" SELECT l.job, l.sink, 100000 + n.i, l.digest, l.prev_epoch, l.prev_digest, l.fence, l.rows, l.dead, l.at FROM "+log+" AS l, n WHERE l.epoch = 2")
	a.Epoch(a.Batch(s, Upd(9, "i", "last")))
	WantLines(t, db.Show(t, lines), "1", "3", "4")
	replay(done, fault.SinkDLQRefused)
	replay(discarded, fault.SinkDLQRefused)
	replay(letter(2), "")
	replay(letter(4), fault.SinkDLQOvertaken)
	replay(letter(5), "")
	a.Epoch(a.Batch(s, Upd(5, "e", "newest"))) // the committer knows the letters that are left
	WantLines(t, db.Show(t, "SELECT id, name FROM "+db.Name("people")+" ORDER BY id"), "4|good", "5|newest", "9|last")
}
