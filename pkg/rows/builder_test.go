package rows_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"

	"weir.dev/weir/pkg/rows"
)

// I4: a batch does not change when its builder goes on.
func TestFlushedBatchesAreImmutable(t *testing.T) {
	b := rows.NewBuilder(orders(t))
	var batches []*rows.Batch
	var want [][]string
	for round := range 5 {
		for i := range 20 {
			b.Column(0).(*array.Int64Builder).Append(int64(i))
			if i%7 == 3 {
				b.Absent(1)
			} else {
				b.Column(1).(*array.StringBuilder).Append(strings.Repeat("x", round*i))
			}
			if i%5 == 4 {
				b.Special(2, strings.Repeat("N", i))
			} else {
				b.Null(2)
			}
			b.EndRow(rows.Meta{Op: rows.OpUpdateAfter, Seq: uint64(round*100 + i), Ts: rows.NoTs})
		}
		out, err := b.Flush()
		if err != nil {
			t.Fatal(err)
		}
		batches, want = append(batches, out), append(want, lines(out))
		if ts := out.Arrow().Column(3 + 2); !ts.IsNull(0) || ts.NullN() != out.NumRows() {
			t.Errorf("an unknown commit time is not null: %v", ts)
		}
		if b.Rows() != 0 || b.Bytes() != 0 {
			t.Errorf("after flush: %d rows, %d bytes", b.Rows(), b.Bytes())
		}
	}
	for i, b := range batches {
		if !slices.Equal(lines(b), want[i]) {
			t.Errorf("batch %d changed", i)
		}
	}
}

func TestFlushRefuses(t *testing.T) {
	for name, fill := range map[string]func(*rows.Builder){
		"column not set": func(b *rows.Builder) {
			b.Null(0)
			b.Null(1)
			b.EndRow(rows.Meta{Op: rows.OpInsert})
		},
		"column set twice": func(b *rows.Builder) {
			for _, c := range []int{0, 1, 2, 2} {
				b.Null(c)
			}
			b.EndRow(rows.Meta{Op: rows.OpInsert})
		},
		"row not ended": func(b *rows.Builder) { b.Null(0) },
		"no op": func(b *rows.Builder) {
			for c := range 3 {
				b.Null(c)
			}
			b.EndRow(rows.Meta{})
		},
	} {
		b := rows.NewBuilder(orders(t))
		fill(b)
		if _, err := b.Flush(); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// Readers flush by Bytes: it has to be near what is sent.
func TestBytesEstimatesTheMessage(t *testing.T) {
	b := rows.NewBuilder(orders(t))
	empty, err := b.Flush()
	if err != nil {
		t.Fatal(err)
	}
	head, err := empty.Encode(nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		b.Column(0).(*array.Int64Builder).Append(int64(i))
		b.Column(1).(*array.StringBuilder).Append(strings.Repeat("x", i%300))
		b.Null(2)
		b.EndRow(rows.Meta{Op: rows.OpInsert})
	}
	estimate := b.Bytes()
	out, err := b.Flush()
	if err != nil {
		t.Fatal(err)
	}
	msg, err := out.Encode(nil)
	if err != nil {
		t.Fatal(err)
	}
	if real := len(msg) - len(head); estimate < real*9/10 || estimate > real*11/10 {
		t.Errorf("estimate %d, message %d bytes", estimate, real)
	}
}

func TestListsAppearOnlyWhenNeeded(t *testing.T) {
	s := orders(t)
	b := batch(t, s, row{rows.OpInsert, 1, 1, text("a")}, row{rows.OpUpdateAfter, 2, 1, cell{absent: true, special: "NaN"}})
	if !b.HasAbsent() || !b.HasSpecial() || !slices.Equal(b.Absent(1), []uint16{1}) || len(b.Absent(0)) != 0 {
		t.Errorf("absent %v %v", b.Absent(0), b.Absent(1))
	}
	if got, ok := b.SpecialText(2, 1); !ok || got != "NaN" || !slices.Equal(b.Special(1), []rows.Special{{Column: 2, Text: "NaN"}}) {
		t.Errorf("special %v", b.Special(1))
	}
	for name, part := range map[string]*rows.Batch{
		"gather": b.Gather([]int32{0, 0}), "slice": b.Slice(0, 1), "none": b.Slice(1, 1),
		"plain": batch(t, s, row{rows.OpInsert, 1, 1, text("a")}),
	} {
		if part.HasAbsent() || part.HasSpecial() {
			t.Errorf("%s has lists", name)
		}
	}
}
