package stage

import (
	"maps"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"pgregory.net/rapid"

	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/spec"
)

// Whatever has a letter is left out, and every other row keeps its index.
func TestRowsWithALetterAreLeftOut(t *testing.T) {
	t.Parallel()
	schema, err := rows.NewSchema("s.t", 1, "", []rows.Column{{Name: "id", Type: rows.Of(rows.KindInt64), KeyPos: 1}})
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 30).Draw(t, "rows")
		stored := make(map[int]bool)
		ids := []sink.LetterID{{Table: "s.other"}}
		for _, i := range rapid.SliceOf(rapid.IntRange(0, n-1)).Draw(t, "letters") {
			stored[i] = true
			ids = append(ids, sink.LetterID{Table: "s.t", Index: i})
		}
		d := NewDead(ids, spec.Upsert, make(OpenKeys))
		var kept []int64
		for from := 0; from < n; {
			to := rapid.IntRange(from+1, n).Draw(t, "batch")
			b := rows.NewBuilder(schema)
			for i := from; i < to; i++ {
				b.Column(0).(*array.Int64Builder).Append(int64(i)) // the value is the index
				b.EndRow(rows.Meta{Op: rows.OpInsert, Seq: uint64(i)})
			}
			batch, err := b.Flush()
			if err != nil {
				t.Fatal(err)
			}
			batches, first := d.Without(schema, batch)
			for k, b := range batches {
				for i := range b.NumRows() {
					id := b.Column(0).(*array.Int64).Value(i)
					if int(id) != first[k]+i {
						t.Fatalf("row %d has index %d", id, first[k]+i)
					}
					kept = append(kept, id)
				}
			}
			from = to
		}
		var want []int64
		for i := range n {
			if !stored[i] {
				want = append(want, int64(i))
			}
		}
		if !slices.Equal(kept, want) || int(d.Left) != n-len(want) || len(d.Lines()) != n-len(want) {
			t.Fatalf("kept %v, want %v; %d left out, %d lines", kept, want, d.Left, len(d.Lines()))
		}
	})
}

// A letter is overtaken exactly by a later row of its key, whichever epoch that is in, and by a truncate of a later epoch.
func TestALaterRowOvertakesALetter(t *testing.T) {
	t.Parallel()
	schema, err := rows.NewSchema("s.t", 1, "", []rows.Column{{Name: "id", Type: rows.Of(rows.KindInt64), KeyPos: 1}})
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		open, want := make(OpenKeys), make(map[string]bool)
		for range rapid.IntRange(1, 3).Draw(t, "epochs") {
			d := NewDead(nil, spec.Upsert, open)
			var truncates []rows.TableID
			before := maps.Clone(want)
			if rapid.Bool().Draw(t, "truncate") {
				truncates = append(truncates, "s.t")
				clear(want)
			}
			marked := make(map[string]bool)
			for i, id := range rapid.SliceOfN(rapid.Int64Range(0, 3), 0, 6).Draw(t, "rows") {
				b := rows.NewBuilder(schema)
				b.Column(0).(*array.Int64Builder).Append(id)
				b.EndRow(rows.Meta{Op: rows.OpInsert, Seq: uint64(i)})
				batch, err := b.Flush()
				if err != nil {
					t.Fatal(err)
				}
				key := KeysOf(schema, batch, 0)
				marked[key[0]] = before[key[0]] || marked[key[0]]
				delete(want, key[0])
				if rapid.Bool().Draw(t, "bad") {
					d.Bury(schema, batch, 0, i)
					want[key[0]] = true
				} else if d.Watches("s.t") {
					d.Change("s.t", key, i, nil)
				}
			}
			for _, keys := range d.Overtaken() {
				for _, key := range keys {
					if !marked[key] {
						t.Fatalf("%q was overtaken by no row", key)
					}
				}
			}
			lines := make(map[string]bool)
			for _, at := range d.Lines() {
				if !at.Overtaken {
					lines[*at.Key] = true
				}
			}
			for key := range lines {
				if !want[key] {
					t.Fatalf("the letter of %q is not overtaken", key)
				}
			}
			d.Registered(truncates)
			if !maps.Equal(open["s.t"], want) && len(open["s.t"])+len(want) > 0 {
				t.Fatalf("open are %v, want %v", open["s.t"], want)
			}
		}
	})
}
