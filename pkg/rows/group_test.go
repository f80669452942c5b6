package rows_test

import (
	"testing"

	"weir.dev/weir/pkg/rows"
)

// I2: ranges are disjoint, cover all groups, are in order, differ by one at most, and Owner is their inverse.
func TestI2GroupRanges(t *testing.T) {
	for n := 1; n <= rows.KeyGroups; n++ {
		next := 0
		for i := range n {
			from, to := rows.GroupRange(i, n)
			if from != next || to <= from {
				t.Fatalf("subtask %d of %d owns [%d,%d), the one before ended at %d", i, n, from, to, next)
			}
			want := rows.KeyGroups / n
			if i < rows.KeyGroups%n {
				want++
			}
			if to-from != want {
				t.Fatalf("subtask %d of %d owns %d groups, want %d", i, n, to-from, want)
			}
			for g := from; g < to; g++ {
				if o := rows.Owner(g, n); o != i {
					t.Fatalf("group %d of %d subtasks: owner %d, in the range of %d", g, n, o, i)
				}
			}
			next = to
		}
		if next != rows.KeyGroups {
			t.Fatalf("%d subtasks own groups up to %d", n, next)
		}
	}
}

func TestGroupRangeBeyondGroups(t *testing.T) {
	for i := range 300 {
		from, to := rows.GroupRange(i, 300)
		if got, want := to-from, 1; i < rows.KeyGroups && got != want || i >= rows.KeyGroups && got != 0 {
			t.Fatalf("subtask %d of 300 owns [%d,%d)", i, from, to)
		}
	}
	if o := rows.Owner(127, 300); o != 127 {
		t.Fatalf("owner of the last group is %d", o)
	}
}
