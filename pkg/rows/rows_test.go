package rows_test

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"

	"weir.dev/weir/pkg/rows"
)

// orders is the small table most tests use: an int64 key, a text that may be absent, a decimal that may be special.
func orders(t testing.TB) *rows.Schema {
	t.Helper()
	s, err := rows.NewSchema("public.orders", 1, "postgres", []rows.Column{
		{Name: "id", Type: rows.Of(rows.KindInt64), Source: "bigint", KeyPos: 1},
		{Name: "note", Type: rows.Of(rows.KindText), Source: "text", Nullable: true},
		{Name: "price", Type: rows.Decimal(10, 2), Source: "numeric(10,2)", Nullable: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// cell is a column value of a test row.
type cell struct {
	text    string
	null    bool
	absent  bool
	special string
}

type row struct {
	op   rows.Op
	seq  uint64
	id   int64
	note cell
}

func batch(t testing.TB, s *rows.Schema, in ...row) *rows.Batch {
	t.Helper()
	b := rows.NewBuilder(s)
	for _, r := range in {
		m := rows.Meta{Op: r.op, Seq: r.seq, Ts: int64(r.seq) * 1000, Txn: 9, Xid: 8, Ord: uint32(r.seq)}
		if r.op == rows.OpTruncate {
			b.Truncate(m)
			continue
		}
		b.Column(0).(*array.Int64Builder).Append(r.id)
		switch {
		case r.note.absent:
			b.Absent(1)
		case r.note.null:
			b.Null(1)
		default:
			b.Column(1).(*array.StringBuilder).Append(r.note.text)
		}
		if r.note.special != "" {
			b.Special(2, r.note.special)
		} else {
			b.Null(2)
		}
		b.EndRow(m)
	}
	out, err := b.Flush()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func lines(b *rows.Batch) []string {
	var out []string
	for i := range b.NumRows() {
		out = append(out, string(b.AppendRowJSON(nil, i)))
	}
	return out
}

func text(s string) cell { return cell{text: s} }
