package sink_test

import (
	"fmt"
	"testing"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/pkg/fault"
	pkgsink "weir.dev/weir/pkg/sink"
	"weir.dev/weir/services/sink"
)

// The register forgets a letter once it is gone and its epoch has left the ledger's log. As long as there is the letter there is its
// line, and without the line nothing is applied a second time.
func swept(t *testing.T, pg *harness.Postgres) {
	a, put := deadAttempt(t, pg, "swept", `CREATE TABLE out.people (id bigint PRIMARY KEY, email text, name text CONSTRAINT good CHECK (name <> 'bad'))`)
	s := people(t, "s.people")
	a.epoch(a.batch(s, ins(1, "a", "bad"), ins(2, "b", "bad"), ins(3, "c", "bad"), ins(4, "d", "bad"), ins(5, "e", "bad")))
	a.epoch(a.batch(s, upd(4, "newer", "good")))
	show(t, pg, "swept", "ALTER TABLE out.people DROP CONSTRAINT good")
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
		if err := sink.Resend(t.Context(), a.config.Sink, d, resolve, false); fault.CodeOf(err) != code || (code == "") != (err == nil) {
			t.Errorf("replay of %s: %v, want %q", d.Key, err, code)
		}
	}
	done, discarded := letter(1), letter(3)
	replay(done, "")
	replay(letter(2), "") // and the command is killed before it can remove it
	delete(put, done.LetterID)
	delete(put, discarded.LetterID)
	show(t, pg, "swept", "DELETE FROM out.people WHERE id IN (1, 2)")
	const lines = "SELECT idx FROM out.weir_ledger_letters ORDER BY 1"
	for n := 3; n < 1050; n++ {
		a.epoch(a.batch(s, upd(9, "i", fmt.Sprint(n))))
	}
	wantLines(t, show(t, pg, "swept", lines), "0", "1", "2", "3", "4") // their epoch is in the log as yet
	a.epoch(a.batch(s, upd(9, "i", "last")))
	wantLines(t, show(t, pg, "swept", lines), "1", "3", "4")
	replay(done, fault.SinkDLQRefused)
	replay(discarded, fault.SinkDLQRefused)
	replay(letter(2), "")
	replay(letter(4), fault.SinkDLQOvertaken)
	replay(letter(5), "")
	a.epoch(a.batch(s, upd(5, "e", "newest"))) // the committer knows the letters that are left
	wantLines(t, show(t, pg, "swept", "SELECT id, name FROM out.people ORDER BY id"), "4|good", "5|newest", "9|last")
}
