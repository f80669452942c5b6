package sinkmysql_test

import (
	"fmt"
	"testing"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/pkg/fault"
	pkgsink "weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/sink/sinktest"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/sink"
)

// The register forgets a letter once it is gone and its epoch has left the ledger's log. As long as there is the letter there is its
// line, and without the line nothing is applied a second time.
func swept(t *testing.T, my *harness.MySQL, db string) {
	run(t, my, "CREATE DATABASE "+quote(db), "CREATE TABLE "+quote(db)+".people (id bigint PRIMARY KEY, email text, name text, CONSTRAINT good CHECK (name <> 'bad'))")
	target := mysqlSink(my.URL(""), db)
	target.DLQ, target.Config.(*spec.MySQLSink).Existing = true, spec.ExistingKeep
	cfg, put := configOf(target, 1), sinktest.Letters{}
	cfg.Letters = put
	a := openAttempt(t, cfg)
	s := people(t, 1, "email", "name")
	a.epoch(a.batch(s, ins(1, "a", "bad"), ins(2, "b", "bad"), ins(3, "c", "bad"), ins(4, "d", "bad"), ins(5, "e", "bad")))
	a.epoch(a.batch(s, upd(4, "newer", "good")))
	run(t, my, "ALTER TABLE "+quote(db)+".people DROP CONSTRAINT good")
	letter := func(id int64) pkgsink.Letter {
		t.Helper()
		for _, d := range put {
			if string(d.Key) == fmt.Sprintf(`{"id":%d}`, id) {
				return d
			}
		}
		t.Fatalf("no letter of %d", id)
		return pkgsink.Letter{}
	}
	replay := func(d pkgsink.Letter, code fault.Code) {
		t.Helper()
		if err := sink.Resend(t.Context(), target, d, resolve, false); fault.CodeOf(err) != code || (code == "") != (err == nil) {
			t.Errorf("replay of %s: %v, want %q", d.Key, err, code)
		}
	}
	done, discarded := letter(1), letter(3)
	replay(done, "")
	replay(letter(2), "") // and the command is killed before it can remove it
	delete(put, done.LetterID)
	delete(put, discarded.LetterID)
	run(t, my, "DELETE FROM "+quote(db)+".people WHERE id IN (1, 2)")
	lines := "SELECT idx FROM " + quote(db) + ".weir_ledger_letters ORDER BY 1"
	for n := 3; n < 100; n++ {
		a.epoch(a.batch(s, upd(9, "i", fmt.Sprint(n))))
	}
	wantLines(t, show(t, my, lines), "0", "1", "2", "3", "4") // their epoch is in the log as yet
	run(t, my, "INSERT INTO "+quote(db)+".weir_ledger_log (job, sink, epoch, digest, prev_epoch, prev_digest, fence, `rows`, dead, at)"+
		" WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 1000)"+
		" SELECT job, sink, 100000 + i, digest, prev_epoch, prev_digest, fence, `rows`, dead, at FROM "+quote(db)+".weir_ledger_log, n WHERE epoch = 2")
	a.epoch(a.batch(s, upd(9, "i", "last")))
	wantLines(t, show(t, my, lines), "1", "3", "4")
	replay(done, fault.SinkDLQRefused)
	replay(discarded, fault.SinkDLQRefused)
	replay(letter(2), "")
	replay(letter(4), fault.SinkDLQOvertaken)
	replay(letter(5), "")
	a.epoch(a.batch(s, upd(5, "e", "newest"))) // the committer knows the letters that are left
	wantLines(t, show(t, my, "SELECT id, name FROM "+quote(db)+".people ORDER BY id"), "4|good", "5|newest", "9|last")
}
