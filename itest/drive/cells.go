package drive

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/sink/sinktest"
)

// CellsOf reads a line of a target's table as the suite of sinks wants it: the user's columns, and of a changelog's own ones
// the operation and which columns were absent. A cell that is nil is null.
func CellsOf(tb testing.TB, columns []string, cells []*string) sinktest.Row {
	tb.Helper()
	r := sinktest.Row{Cells: make(map[string]string)}
	var absent []string
	for i, name := range columns {
		text := sinktest.Null
		if cells[i] != nil {
			text = *cells[i]
		}
		switch {
		case name == "_op":
			n, err := strconv.Atoi(text)
			if err != nil {
				tb.Fatal(err)
			}
			r.Op = rows.Op(n)
		case name == "_absent": // {a,"b"} or ["a", "b"]
			absent = strings.FieldsFunc(text, func(c rune) bool { return strings.ContainsRune(`{}[]",`, c) })
		case !strings.HasPrefix(name, "_"):
			r.Cells[name] = text
		}
	}
	for name := range r.Cells {
		if slices.Contains(absent, name) {
			r.Cells[name] = sinktest.Absent
		}
	}
	return r
}
