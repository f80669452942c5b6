package postgres

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/jackc/pgx/v5/pgconn"
	"pgregory.net/rapid"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/rows"
)

func TestPoisonous(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]bool{
		"23514": true, "23502": true, "23505": true, "23503": true, "23P01": true, // constraints
		"22001": true, "22003": true, "22021": true, "22P02": true, // values
		"P0001": true, "54000": true, "44000": true, // triggers, index entries, views
		"40001": false, "40P01": false, "53100": false, "57014": false, "08006": false, // the target, not the row
		"42501": false, "42P01": false, "42703": false, "25006": false, "54001": false,
	} {
		if got := poisonous(fmt.Errorf("apply: %w", &pgconn.PgError{Code: state})); got != want {
			t.Errorf("%s: %t", state, got)
		}
	}
	if !poisonous(fault.New(fault.SinkPartialMiss, "", "")) || poisonous(fault.New(fault.SinkMissingTable, "", "")) ||
		poisonous(nil) || poisonous(errors.New("broken pipe")) {
		t.Error("an error that is not PostgreSQL's is judged wrongly")
	}
}

// Whatever has a letter is left out, and every other row keeps its index.
func TestRowsWithALetterAreLeftOut(t *testing.T) {
	t.Parallel()
	schema, err := rows.NewSchema("s.t", 1, "", []rows.Column{{Name: "id", Type: rows.Of(rows.KindInt64), KeyPos: 1}})
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		d := &dead{
			next: make(map[rows.TableID]int), own: make(open), newest: make(map[rows.TableID]map[string]int),
			stored: map[rows.TableID]map[int]bool{"s.t": {}, "s.other": {0: true}},
		}
		n := rapid.IntRange(1, 30).Draw(t, "rows")
		for _, i := range rapid.SliceOf(rapid.IntRange(0, n-1)).Draw(t, "letters") {
			d.stored["s.t"][i] = true
		}
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
			batches, first := d.without(schema, batch)
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
			if !d.stored["s.t"][i] {
				want = append(want, int64(i))
			}
		}
		if !slices.Equal(kept, want) || int(d.left) != n-len(want) || len(d.lines) != n-len(want) {
			t.Fatalf("kept %v, want %v; %d left out, %d lines", kept, want, d.left, len(d.lines))
		}
	})
}
