package types

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// shown is how much of a value a golden has.
const shown = 100

func short(s string) string {
	if r := []rune(s); len(r) > shown {
		return fmt.Sprintf("%s... (%d)", string(r[:shown]), len(r))
	}
	return s
}

// renderJSON writes per column the values a JSON file has; a special value is in brackets.
func (w *world) renderJSON(t *testing.T, out *strings.Builder, f family) {
	t.Helper()
	lines := readLines(t, filepath.Join(w.dir, "lines"), f.table())
	slices.SortFunc(lines, func(a, b line) int { return a.id(t) - b.id(t) })
	for i, c := range f.columns {
		fmt.Fprintf(out, "%s %s:\n", f.name, c.sqlType)
		name := fmt.Sprintf("c%d", i+1)
		for _, l := range lines[:len(c.values)] {
			var row, special map[string]json.RawMessage
			if err := json.Unmarshal(l.Row, &row); err != nil {
				t.Fatal(err)
			}
			if l.Special != nil {
				if err := json.Unmarshal(l.Special, &special); err != nil {
					t.Fatal(err)
				}
			}
			text := string(row[name])
			if s, ok := special[name]; ok {
				text += " [" + string(s) + "]"
			}
			fmt.Fprintf(out, "\t%s\n", short(text))
		}
	}
}

// renderParquet writes per column its type in a Parquet file and the values.
func (w *world) renderParquet(t *testing.T, out *strings.Builder, f family) {
	t.Helper()
	values := make(map[string]map[int]string) // by column and id
	types := make(map[string]string)
	for _, table := range readParquet(t, filepath.Join(w.dir, "parquet"), f.table()) {
		ids := table.Column(0).Data()
		if ids.Len() == 0 {
			continue
		}
		var order []int
		for _, chunk := range ids.Chunks() {
			for i := range chunk.Len() {
				var id int
				if _, err := fmt.Sscan(chunk.ValueStr(i), &id); err != nil {
					t.Fatal(err)
				}
				order = append(order, id)
			}
		}
		for c := range int(table.NumCols()) {
			field := table.Schema().Field(c)
			types[field.Name] = field.Type.String()
			if values[field.Name] == nil {
				values[field.Name] = make(map[int]string)
			}
			at := 0
			for _, chunk := range table.Column(c).Data().Chunks() {
				for i := range chunk.Len() {
					values[field.Name][order[at]] = chunk.ValueStr(i)
					at++
				}
			}
		}
	}
	for i, c := range f.columns {
		name := fmt.Sprintf("c%d", i+1)
		fmt.Fprintf(out, "%s %s: %s\n", f.name, c.sqlType, types[name])
		for id := range c.values {
			fmt.Fprintf(out, "\t%s\n", short(strings.ReplaceAll(values[name][id+1], "\n", `\n`)))
		}
	}
}
