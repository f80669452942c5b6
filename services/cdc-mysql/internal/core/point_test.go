package core

import (
	"testing"

	"weir.dev/weir/pkg/position"
)

// A point that is joined with another has what lies before both.
func TestJoin(t *testing.T) {
	t.Parallel()
	gtids := func(s string) Point {
		set, err := position.ParseGTIDSet(s)
		if err != nil {
			t.Fatal(err)
		}
		return Point{Family: position.MySQLGTID, GTIDs: set}
	}
	maria := func(s string) Point {
		set, err := position.ParseMariaGTIDSet(s)
		if err != nil {
			t.Fatal(err)
		}
		return Point{Family: position.MariaDBGTID, Maria: set}
	}
	file := func(seq, pos uint64) Point {
		return Point{Family: position.MySQLBinlog, Binlog: position.BinlogPos{Base: "binlog", Seq: seq, Pos: pos}}
	}
	const a, b = "11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"
	for _, tt := range []struct{ one, other, both Point }{
		{gtids(a + ":1-4"), gtids(a + ":3-7," + b + ":1"), gtids(a + ":1-7," + b + ":1")},
		{maria("0-1-4,1-1-9"), maria("0-2-3,2-1-1"), maria("0-1-4,1-1-9,2-1-1")},
		{file(3, 900), file(4, 4), file(4, 4)},
	} {
		for _, order := range [][2]Point{{tt.one, tt.other}, {tt.other, tt.one}} {
			p := Point{Family: tt.one.Family}
			p.Join(&order[0])
			p.Join(&order[1])
			if !p.Has(&tt.both) || !tt.both.Has(&p) {
				t.Errorf("%s and %s: %s, want %s", order[0].Public(), order[1].Public(), p.Public(), tt.both.Public())
			}
		}
	}
}
