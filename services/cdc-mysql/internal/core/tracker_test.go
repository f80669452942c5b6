package core

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weir.dev/weir/pkg/position"
)

const server = "3e11fa47-71ca-11e1-9e33-c80aa9429562"

func txn(t interface{ Fatal(...any) }, n uint64) Txn {
	g, err := position.ParseGTID(server + ":1")
	if err != nil {
		t.Fatal(err)
	}
	g.N = n
	return Txn{GTID: g}
}

// A log that is read again and again from where it was left gives every rows event once, and every row its ordinal.
func TestTrackerGivesEachEventOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		sizes := rapid.SliceOfN(rapid.IntRange(0, 6), 1, 6).Draw(r, "events of transactions")
		var got []string
		saved := Position{Before: Point{Family: position.MySQLGTID}}
		for crashes := 0; ; crashes++ {
			text, err := json.Marshal(saved)
			if err != nil {
				r.Fatal(err)
			}
			var from Position
			if err := json.Unmarshal(text, &from); err != nil {
				r.Fatal(err)
			}
			k := NewTracker(from)
			budget := rapid.IntRange(0, 12).Draw(r, "events before the crash")
			crashed := false
			for n, size := range sizes {
				x := txn(r, uint64(n+1))
				if k.Before().Contains(x) {
					continue
				}
				if err := k.Begin(x, 0); err != nil {
					r.Fatal(err)
				}
				for e := range size {
					fresh, err := k.Event()
					if err != nil {
						r.Fatal(err)
					}
					if !fresh {
						continue
					}
					if ord := k.Row(); int(ord) != e {
						r.Fatalf("event %d has row %d", e, ord)
					}
					got = append(got, x.String())
					if budget--; budget < 0 && crashes < 4 {
						crashed = true
						break
					}
				}
				if crashed {
					break
				}
				if err := k.Commit(position.BinlogPos{}); err != nil {
					r.Fatal(err)
				}
			}
			saved = k.Position()
			if !crashed {
				break
			}
		}
		var want []string
		for n, size := range sizes {
			for range size {
				want = append(want, txn(r, uint64(n+1)).String())
			}
		}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			r.Fatalf("got %v, want %v", got, want)
		}
	})
}

func TestTrackerRefusesGaps(t *testing.T) {
	t.Parallel()
	torn := Position{Before: Point{Family: position.MySQLGTID}, Torn: Torn{Txn: server + ":1", Events: 3, Ord: 3}}
	if err := NewTracker(torn).Begin(txn(t, 2), 0); err == nil {
		t.Error("another transaction took the place of the cut one")
	}
	k := NewTracker(torn)
	if err := k.Begin(txn(t, 1), 0); err != nil {
		t.Fatal(err)
	}
	if err := k.Commit(position.BinlogPos{}); err == nil {
		t.Error("the cut transaction was shorter than before")
	}
	if _, err := NewTracker(Position{}).Event(); err == nil {
		t.Error("a change outside a transaction was taken")
	}
	if err := NewTracker(Position{}).Commit(position.BinlogPos{}); err == nil {
		t.Error("a commit without a begin was taken")
	}
}

func TestPositionsSayHowMuchOfATransactionLiesBefore(t *testing.T) {
	t.Parallel()
	k := NewTracker(Position{Before: Point{Family: position.MySQLGTID}})
	if err := k.Begin(txn(t, 1), 0); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := k.Event(); err != nil {
			t.Fatal(err)
		}
		k.Row()
	}
	p := k.Position()
	if got, want := p.Public().String(), "MYSQL_GTID:events=2,gtids=,open="+server+":1,ord=2"; got != want || !p.IsTorn() {
		t.Errorf("%s, want %s", got, want)
	}
	if k.Cut(3) || !k.Cut(2) || k.Cut(0) {
		t.Error("a transaction is cut when it has at least as many rows as the limit, and never without one")
	}
	if err := k.Commit(position.BinlogPos{}); err != nil {
		t.Fatal(err)
	}
	if got := k.Public().String(); got != "MYSQL_GTID:gtids="+server+":1" || !k.Cut(0) {
		t.Error(got)
	}
}

// Marks contain what lies before them, in each family.
func TestMarks(t *testing.T) {
	t.Parallel()
	file := func(s string) position.BinlogPos {
		p, err := position.ParseBinlogPos(s)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	maria, err := position.ParseMariaGTIDSet("0-1-5")
	if err != nil {
		t.Fatal(err)
	}
	set, err := position.ParseGTIDSet(server + ":1-5")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		at      Point
		in, out Txn
		end     position.BinlogPos
	}{
		{Point{Family: position.MySQLGTID, GTIDs: set}, txn(t, 5), txn(t, 6), position.BinlogPos{}},
		{Point{Family: position.MariaDBGTID, Maria: maria}, Txn{Maria: position.MariaGTID{N: 5}}, Txn{Maria: position.MariaGTID{N: 6}}, position.BinlogPos{}},
		{Point{Family: position.MySQLBinlog, Binlog: file("b.000001:100")}, Txn{Start: file("b.000001:50")}, Txn{Start: file("b.000001:100")}, file("b.000001:200")},
	} {
		encoded, err := NewMark(c.at).Encode()
		if err != nil {
			t.Fatal(err)
		}
		m, err := ParseMark(encoded)
		if err != nil {
			t.Fatal(err)
		}
		later := c.at.Clone()
		later.Pass(c.out, c.end)
		if !m.Contains(c.in) || m.Contains(c.out) || !m.PassedBy(&c.at) || !m.PassedBy(&later) || NewMark(later).PassedBy(&c.at) || !later.Contains(c.out) {
			t.Errorf("%s: mark of %s", c.at.Family, c.at.Public())
		}
	}
	if _, err := ParseMark([]byte("{")); err == nil {
		t.Error("a broken mark was read")
	}
}
