package core

import "weir.dev/weir/pkg/rows"

// Lacking finds the first row of a batch that mode append cannot keep, see [Lacks]. It returns the name of a column that is
// missing; ok is false when there is no such row.
func Lacking(b *rows.Batch) (column string, ok bool) {
	if !b.HasAbsent() {
		return "", false
	}
	for i := range b.NumRows() {
		if column, ok := Lacks(b, i); ok {
			return column, true
		}
	}
	return "", false
}

// Lacks says that mode append cannot keep a row: it is a new image without all of its columns, one of which it names.
func Lacks(b *rows.Batch, row int) (column string, ok bool) {
	if absent := b.Absent(row); b.Op(row) == rows.OpUpdateAfter && len(absent) > 0 {
		return b.Schema().Column(int(absent[0])).Name, true
	}
	return "", false
}
