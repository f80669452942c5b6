package core

import "weir.dev/weir/pkg/rows"

// Lacking finds the first row of a batch that mode append cannot keep: a new image without all of its columns. It returns
// the name of a column that is missing; ok is false when there is no such row.
func Lacking(b *rows.Batch) (column string, ok bool) {
	if !b.HasAbsent() {
		return "", false
	}
	for i := range b.NumRows() {
		if absent := b.Absent(i); b.Op(i) == rows.OpUpdateAfter && len(absent) > 0 {
			return b.Schema().Column(int(absent[0])).Name, true
		}
	}
	return "", false
}
