package cdcpostgres

import (
	"slices"
	"strings"
	"testing"

	"weir.dev/weir/pkg/rows"
)

// change is one row as emitted, its cells as SQL text.
type change struct {
	table   string
	version uint32 // of the table's schema
	meta    rows.Meta
	cells   map[string]string
}

// String is "op table col=text ..."; null cells read NULL, absent ones ABSENT.
func (c change) String() string {
	var b strings.Builder
	b.WriteString(c.meta.Op.String() + " " + c.table)
	for _, name := range slices.Sorted(mapKeys(c.cells)) {
		b.WriteString(" " + name + "=" + c.cells[name])
	}
	return b.String()
}

func mapKeys[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func texts(cs []change) []string {
	out := make([]string, len(cs))
	for i, c := range cs {
		out[i] = c.String()
	}
	return out
}

func wantRows(t *testing.T, got []change, want ...string) {
	t.Helper()
	if g := texts(got); !slices.Equal(g, want) {
		t.Fatalf("rows are\n  %s\nwant\n  %s", strings.Join(g, "\n  "), strings.Join(want, "\n  "))
	}
}
