package core

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/plan"
)

func ref(n epoch.ID, digest string) epoch.Ref { return epoch.Ref{Epoch: n, Digest: digest} }

func TestClaim(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		found Row
		want  Verdict
	}{
		"no row":               {Row{}, Apply},
		"own fence":            {Row{Life: "a", Fence: 3}, Apply},
		"older fence":          {Row{Life: "a", Fence: 2, Ref: ref(9, "x")}, Apply},
		"newer fence (I8)":     {Row{Life: "a", Fence: 4}, Fenced},
		"other life":           {Row{Life: "b", Fence: 1}, Foreign},
		"other life and newer": {Row{Life: "b", Fence: 9}, Foreign},
	} {
		if got := Claim(tt.found, "a", 3); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	this, prev := ref(7, "seven"), ref(5, "five")
	for name, tt := range map[string]struct {
		found Row
		want  Verdict
	}{
		"predecessor":             {Row{"a", prev, 3}, Apply},
		"already there":           {Row{"a", this, 3}, Done},
		"same id, other digest":   {Row{"a", ref(7, "other"), 3}, Diverged},
		"prev id, other digest":   {Row{"a", ref(5, "other"), 3}, Diverged},
		"behind the predecessor":  {Row{"a", ref(4, "four"), 3}, Diverged},
		"ahead":                   {Row{"a", ref(8, "eight"), 3}, Diverged},
		"nothing committed yet":   {Row{"a", epoch.Ref{}, 3}, Diverged},
		"row removed by somebody": {Row{}, Diverged},
		"newer fence (I8)":        {Row{"a", prev, 4}, Fenced},
		"older fence (I8)":        {Row{"a", prev, 2}, Fenced},
		"done, but fenced (I8)":   {Row{"a", this, 4}, Fenced},
		"other life":              {Row{"b", prev, 3}, Foreign},
	} {
		if got := Decide(tt.found, "a", 3, this, prev); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
	if got := Decide(Row{"a", epoch.Ref{}, 3}, "a", 3, this, epoch.Ref{}); got != Apply {
		t.Errorf("first epoch of a life: %s, want apply", got)
	}
}

// A commit that is repeated, overtaken or sent by a zombie moves a ledger only from prev to ref.
func TestDecideMovesOnlyForward(t *testing.T) {
	t.Parallel()
	chain := []epoch.Ref{{}, ref(1, "a"), ref(3, "b"), ref(4, "c"), ref(8, "d")}
	rapid.Check(t, func(t *rapid.T) {
		row, at := Row{Life: "l", Fence: 1}, 0
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if rapid.IntRange(0, 9).Draw(t, "takeover") == 0 {
				row.Fence++
			}
			own := fence.Token(rapid.Uint64Range(1, uint64(row.Fence)).Draw(t, "fence"))
			i := rapid.IntRange(1, len(chain)-1).Draw(t, "commit")
			if Decide(row, "l", own, chain[i], chain[i-1]) != Apply {
				continue
			}
			if own != row.Fence || i != at+1 {
				t.Fatalf("fence %d of %d applied link %d at %d", own, row.Fence, i, at)
			}
			row.Ref, at = chain[i], i
		}
	})
}

func TestOrder(t *testing.T) {
	t.Parallel()
	w0, w1 := plan.SubtaskID{Vertex: "w", Index: 0}, plan.SubtaskID{Vertex: "w", Index: 1}
	pieces := []Piece{
		{w0, "a", false, 1},
		{w0, "b", false, 1},
		{w0, "a", true, 1},
		{w0, "a", false, 1},
		{w0, "a", true, 1},
		{w0, "a", false, 2}, // behind what other writers have of the version before
		{w1, "a", false, 1},
		{w1, "a", true, 1},
		{w1, "b", false, 1},
		{w1, "a", false, 1},
	}
	work, err := Order(pieces)
	if err != nil {
		t.Fatal(err)
	}
	want := []TableWork{{"a", true, []int{9, 5}}, {"b", false, []int{1, 8}}}
	if !slices.EqualFunc(work, want, func(x, y TableWork) bool {
		return x.Table == y.Table && x.Truncate == y.Truncate && slices.Equal(x.Pieces, y.Pieces)
	}) {
		t.Errorf("Order = %v, want %v", work, want)
	}
	if _, err := Order([]Piece{{w0, "a", true, 1}, {w1, "a", false, 1}}); err == nil {
		t.Error("a truncate that one writer did not meet was accepted")
	}
}
