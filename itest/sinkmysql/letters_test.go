package sinkmysql_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"weir.dev/weir/itest/drive"
	"weir.dev/weir/itest/harness"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	pkgsink "weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/sink"
)

// A letter is replayed once, unless a later change of its key has come, also when the attempt that has seen it is not that of its
// epoch, and when the server says nothing about the commit.
func replayed(t *testing.T, my *harness.MySQL, db string) {
	check := func(do string) { run(t, my, "ALTER TABLE "+quote(db)+".people "+do) }
	run(t, my, "CREATE DATABASE "+quote(db), "CREATE TABLE "+quote(db)+".people (id bigint PRIMARY KEY, email text, name text, CONSTRAINT good CHECK (name <> 'bad'))")
	proxy := harness.StartCutter(t, my.Port)
	target := mysqlSink(proxy.URL(my.URL("")), db)
	target.Config.(*spec.MySQLSink).Existing = spec.ExistingKeep
	a, put := drive.OpenDead(t, target)
	s := people(t, 1, "email", "name")
	a.Epoch(a.Batch(s, drive.Ins(1, "a", "bad"), drive.Ins(2, "b", "bad"), drive.Ins(3, "c", "bad"), drive.Ins(4, "d", "bad"), drive.Ins(5, "e", "bad"), drive.Ins(8, "h", "bad")))
	a.Epoch(a.Batch(s, drive.Upd(2, "b", "newer"), drive.Del(3), drive.Upd(4, "newer", "bad")))
	if len(put) != 7 {
		t.Fatalf("%d letters", len(put))
	}
	want := func(e epoch.ID, id int64, force bool, code fault.Code) {
		t.Helper()
		drive.WantReplay(t, target, drive.LetterOf(t, put, e, id), force, code)
	}
	want(1, 1, false, fault.SinkConstraint)
	check("DROP CONSTRAINT good")
	proxy.CutAfter("\x03COMMIT", false)      // the statement
	want(1, 1, false, fault.SinkUnreachable) // the server has it, and the client hears nothing
	run(t, my, "DELETE FROM "+quote(db)+".people WHERE id = 1")
	want(1, 1, false, "")                     // it was replayed, and is not again
	want(1, 2, false, fault.SinkDLQOvertaken) // by an update
	want(1, 3, false, fault.SinkDLQOvertaken) // by a delete
	want(1, 4, false, fault.SinkDLQOvertaken) // by a later letter
	want(2, 4, false, "")
	want(1, 3, true, "")
	a.Epoch(a.Batch(s, drive.Upd(5, "e", "newest"))) // the attempt goes on, with what it knows of letters
	want(1, 5, false, fault.SinkDLQOvertaken)
	next := a.Config
	next.Fence = 2
	b := drive.Open(t, next) // and another one reads it
	b.Epoch(b.Batch(s, drive.Upd(8, "h", "newest")))
	want(1, 8, false, fault.SinkDLQOvertaken)
	drive.WantLines(t, show(t, my, "SELECT id, email, name FROM "+quote(db)+".people ORDER BY id"), "2|b|newer", "3|c|bad", "4|newer|bad", "5|e|newest", "8|h|newest")
	// A letter of an older form of the table is refused: a replay changes no table.
	check("ADD CONSTRAINT good CHECK (id < 6 OR name <> 'bad')")
	b.Epoch(b.Batch(s, drive.Ins(6, "f", "bad")))
	check("DROP CONSTRAINT good")
	b.Epoch(b.Batch(people(t, 2, "email", "name", "more"), drive.Ins(7, "g", "x", "y")))
	want(5, 6, false, fault.SinkSchemaChange)
	other := put[pkgsink.LetterID{Table: s.Table(), Epoch: 5}]
	other.Epoch = 99
	put[other.LetterID] = other
	want(99, 6, false, fault.SinkDLQRefused) // its commit is to come
	drive.WantLines(t, show(t, my, "SELECT count(*) FROM "+quote(db)+".people WHERE id = 6"), "0")
}

// However often and from how many sides at once a letter is asked for, it is applied once.
func replayedAtOnce(t *testing.T, my *harness.MySQL, db string) {
	target := mysqlSink(my.URL(""), db)
	target.Mode = spec.Changelog
	a, put := drive.OpenDead(t, target)
	s := people(t, 1, "email")
	a.Epoch(a.Batch(s, drive.Ins(1, "a")))
	run(t, my, "ALTER TABLE "+quote(db)+".people MODIFY email varchar(5)")
	a.Epoch(a.Batch(s, drive.Ins(2, "too long"), drive.Ins(3, "b")))
	run(t, my, "ALTER TABLE "+quote(db)+".people MODIFY email longtext")
	if len(put) != 1 {
		t.Fatalf("%d letters", len(put))
	}
	var applied atomic.Int64
	t.Run("sides", func(t *testing.T) {
		for _, d := range put {
			for i := range 4 {
				t.Run(fmt.Sprint(i), func(t *testing.T) {
					t.Parallel()
					if err := sink.Resend(t.Context(), target, d, drive.Resolve, false); err != nil {
						t.Error(err)
						return
					}
					applied.Add(1)
				})
			}
		}
	})
	drive.WantLines(t, show(t, my, "SELECT id, email, _epoch FROM "+quote(db)+".people ORDER BY id"), "1|a|1", "2|too long|2", "3|b|2")
	if n := applied.Load(); n != 4 {
		t.Errorf("%d of 4 were told that it is applied", n)
	}
	if text := strings.Join(show(t, my, "SELECT count(*) FROM "+quote(db)+".weir_ledger_letters WHERE replayed IS NOT NULL"), ""); text != "1" {
		t.Errorf("%s lines are replayed", text)
	}
}
