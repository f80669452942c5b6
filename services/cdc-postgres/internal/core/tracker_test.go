package core

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"weir.dev/weir/pkg/position"
)

// transaction is one of a made-up log: commit record at final, end behind it, this many changes. Each change is one
// row, or two where its number is divisible by 5.
type transaction struct {
	final, end position.LSN
	changes    int
}

type rowID struct {
	final position.LSN
	ord   uint32
}

func drawLog(t *rapid.T) []transaction {
	var log []transaction
	at := position.LSN(100)
	for range rapid.IntRange(1, 8).Draw(t, "transactions") {
		at += position.LSN(rapid.IntRange(0, 50).Draw(t, "gap"))
		tx := transaction{final: at, end: at + 8, changes: rapid.IntRange(0, 12).Draw(t, "changes")}
		at = tx.end
		log = append(log, tx)
	}
	return log
}

func (tx transaction) rows() []rowID {
	var all []rowID
	for c := range tx.changes {
		for range rowsOf(c) {
			all = append(all, rowID{tx.final, uint32(len(all))})
		}
	}
	return all
}

func rowsOf(change int) int {
	if change%5 == 0 {
		return 2
	}
	return 1
}

// feed sends the log as a server does that was asked for everything from the tracker's position on and sends up to a
// few transactions more than that. It stops after budget messages and returns the rows that were new.
func feed(t *rapid.T, tr *Tracker, log []transaction, from position.LSN, budget int) (rows []rowID, whole bool) {
	check := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, tx := range log {
		if tx.final < from {
			continue
		}
		if budget--; budget < 0 {
			return rows, false
		}
		check(tr.Begin(tx.final, 0, 1))
		for c := range tx.changes {
			if budget--; budget < 0 {
				return rows, false
			}
			fresh, err := tr.Change()
			check(err)
			if !fresh {
				continue
			}
			for range rowsOf(c) {
				rows = append(rows, rowID{tx.final, tr.Row()})
			}
		}
		check(tr.Commit(tx.final, tx.end))
		if rapid.Bool().Draw(t, "keepalive") {
			check(tr.Keepalive(tx.end))
		}
	}
	return rows, true
}

// I14: however often reading stops, at any message, and however far back the server begins again, every row is emitted
// exactly once, in order, with the same ordinals.
func TestEveryRowOnceOverRestarts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		log := drawLog(t)
		var want []rowID
		for _, tx := range log {
			want = append(want, tx.rows()...)
		}
		from := Position{End: 100}
		confirmed := from.End // the server never goes further back than what was confirmed
		var got []rowID
		for whole := false; !whole; {
			tr := NewTracker(from)
			begin := position.LSN(rapid.Uint64Range(uint64(confirmed), uint64(from.End)).Draw(t, "from"))
			budget := rapid.IntRange(1, 60).Draw(t, "budget")
			var rows []rowID
			rows, whole = feed(t, tr, log, begin, budget)
			got = append(got, rows...)
			p := tr.Position()
			if p.End < from.End {
				t.Fatalf("the position went back from %v to %v", from, p)
			}
			if parsed, err := ParsePosition(p.Public()); err != nil || parsed != p {
				t.Fatalf("position %v reads back as %v, %v", p, parsed, err)
			}
			if rapid.Bool().Draw(t, "confirmed") {
				confirmed = p.End
			}
			from = p
		}
		if !slices.Equal(got, want) {
			t.Fatalf("rows are %v, want %v", got, want)
		}
	})
}

// Rewind, on the same tracker, is as good as a restart.
func TestRewind(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		log := drawLog(t)
		var want []rowID
		for _, tx := range log {
			want = append(want, tx.rows()...)
		}
		tr := NewTracker(Position{End: 100})
		got, _ := feed(t, tr, log, 100, rapid.IntRange(0, 60).Draw(t, "budget"))
		tr.Rewind()
		rest, _ := feed(t, tr, log, tr.Position().End, 1000)
		if got = append(got, rest...); !slices.Equal(got, want) {
			t.Fatalf("rows are %v, want %v", got, want)
		}
	})
}

func TestLogThatDoesNotContinue(t *testing.T) {
	t.Parallel()
	torn := Position{End: 100, Torn: Torn{Final: 200, Changes: 3, Ord: 3}}
	for name, f := range map[string]func(*Tracker) error{
		"another transaction than the cut one": func(tr *Tracker) error { return tr.Begin(250, 0, 1) },
		"a keepalive behind the cut one":       func(tr *Tracker) error { return tr.Keepalive(300) },
		"a cut transaction that has shrunk": func(tr *Tracker) error {
			_ = tr.Begin(200, 0, 1)
			_, _ = tr.Change()
			return tr.Commit(200, 208)
		},
		"a change outside a transaction": func(tr *Tracker) error { _, err := tr.Change(); return err },
		"a commit without a begin":       func(tr *Tracker) error { return tr.Commit(200, 208) },
		"a commit of another transaction": func(tr *Tracker) error {
			_ = tr.Begin(200, 0, 1)
			return tr.Commit(201, 208)
		},
		"a transaction inside another": func(tr *Tracker) error {
			_ = tr.Begin(200, 0, 1)
			return tr.Begin(210, 0, 2)
		},
	} {
		err := f(NewTracker(torn))
		if _, ok := errors.AsType[*GapError](err); !ok {
			t.Errorf("%s: %v, want a gap", name, err)
		}
	}
}

// A keepalive inside a transaction says nothing about it.
func TestKeepaliveInsideATransaction(t *testing.T) {
	t.Parallel()
	tr := NewTracker(Position{End: 100})
	_ = tr.Begin(200, 0, 1)
	_ = tr.Keepalive(500)
	if p := tr.Position(); p.End != 100 {
		t.Errorf("position is %v", p)
	}
	_ = tr.Commit(200, 208)
	_ = tr.Keepalive(500)
	if p := tr.Position(); p != (Position{End: 500}) {
		t.Errorf("position is %v", p)
	}
}

func TestCutOnlyInsideLargeTransactions(t *testing.T) {
	t.Parallel()
	tr := NewTracker(Position{End: 100})
	_ = tr.Begin(200, 0, 1)
	for i := 1; i <= 5; i++ {
		if got, want := tr.Cut(3), i > 3; got != want {
			t.Errorf("Cut after %d changes is %t", i-1, got)
		}
		_, _ = tr.Change()
	}
	if tr.Cut(0) {
		t.Error("Cut without a limit inside a transaction")
	}
	// Restored behind the limit: not before something is new.
	tr = NewTracker(tr.Position())
	_ = tr.Begin(200, 0, 1)
	for range 5 {
		_, _ = tr.Change()
	}
	if tr.Cut(3) {
		t.Error("Cut with nothing new since the cut before")
	}
	_, _ = tr.Change()
	if !tr.Cut(3) {
		t.Error("no Cut although something is new")
	}
}
