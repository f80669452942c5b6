package rows_test

import (
	"testing"

	"pgregory.net/rapid"

	"weir.dev/weir/pkg/rows"
)

// drawRows makes a script over few keys, so that keys repeat.
func drawRows(t *rapid.T, ops ...rows.Op) []row {
	n := rapid.IntRange(0, 40).Draw(t, "rows")
	out := make([]row, n)
	for i := range out {
		out[i] = row{
			op: rapid.SampledFrom(ops).Draw(t, "op"), seq: uint64(i + 1),
			id: rapid.Int64Range(0, 9).Draw(t, "id"), note: text(rapid.StringN(0, 5, 20).Draw(t, "note")),
		}
		if rapid.IntRange(0, 9).Draw(t, "special") == 0 {
			out[i].note.special = "NaN"
		}
	}
	return out
}

// Every row is in exactly one part (truncates in all), parts keep order, and a key's group never moves with n.
func TestSplit(t *testing.T) {
	s := orders(t)
	rapid.Check(t, func(rt *rapid.T) {
		b := batch(t, s, drawRows(rt, rows.OpInsert, rows.OpUpdateAfter, rows.OpDelete, rows.OpTruncate)...)
		n := rapid.IntRange(1, rows.KeyGroups).Draw(rt, "n")
		parts := rows.NewSplitter(n).Split(b)
		if len(parts) != n {
			rt.Fatalf("%d parts for %d channels", len(parts), n)
		}
		whole := lines(b)
		hashes := rows.NewKeyer(s).Hashes(nil, b)
		count := 0
		for p, part := range parts {
			if part == nil {
				continue
			}
			from, to := rows.GroupRange(p, n)
			last := uint64(0)
			for i, line := range lines(part) {
				seq := part.Seq(i)
				if seq <= last {
					rt.Fatalf("part %d: _seq %d after %d", p, seq, last)
				}
				last = seq
				if line != whole[seq-1] {
					rt.Fatalf("part %d changed %s to %s", p, whole[seq-1], line)
				}
				if part.Op(i) == rows.OpTruncate {
					continue
				}
				count++
				if g := rows.GroupOf(hashes[seq-1]); g < from || g >= to {
					rt.Fatalf("part %d owns [%d,%d) and got group %d", p, from, to, g)
				}
			}
		}
		truncates := 0
		for i := range b.NumRows() {
			if b.Op(i) != rows.OpTruncate {
				continue
			}
			truncates++
			for p, part := range parts {
				if part == nil {
					rt.Fatalf("channel %d does not hear of the truncate", p)
				}
			}
		}
		if count+truncates != b.NumRows() {
			rt.Fatalf("%d of %d rows arrived", count+truncates, b.NumRows())
		}
	})
}

func TestSplitKeylessTableStaysWhole(t *testing.T) {
	s, err := rows.NewSchema("log", 1, "", []rows.Column{{Name: "line", Type: rows.Of(rows.KindText)}})
	if err != nil {
		t.Fatal(err)
	}
	b := rows.NewBuilder(s)
	for i := range 100 {
		b.Null(0)
		b.EndRow(rows.Meta{Op: rows.OpInsert, Seq: uint64(i)})
	}
	in, err := b.Flush()
	if err != nil {
		t.Fatal(err)
	}
	want := rows.Owner(rows.GroupOf(rows.HashKey([]byte("log"))), 7)
	for p, part := range rows.NewSplitter(7).Split(in) {
		if (part == in) != (p == want) {
			t.Errorf("channel %d got %v, the table belongs to %d", p, part, want)
		}
	}
}
