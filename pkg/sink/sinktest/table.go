package sinktest

import (
	"strconv"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"

	"weir.dev/weir/pkg/rows"
)

// keyColumn is the key of every table of the suite.
const keyColumn = "id"

// schemas are the tables of the suite: orders in two versions, items, and names, whose key is a text. Names need quoting on purpose.
type schemas struct {
	orders, ordersWider, items, names *rows.Schema
}

func newSchemas(tb testing.TB) schemas {
	tb.Helper()
	base := []rows.Column{
		{Name: keyColumn, Type: rows.Of(rows.KindInt64), KeyPos: 1},
		{Name: "Name of it", Type: rows.Of(rows.KindText), Nullable: true},
		{Name: "amount", Type: rows.Of(rows.KindInt32), Nullable: true},
	}
	wider := append([]rows.Column{}, base...)
	wider[2].Type = rows.Of(rows.KindInt64)
	wider = append(wider, rows.Column{Name: "note", Type: rows.Of(rows.KindText), Nullable: true})
	named := append([]rows.Column{}, base...)
	named[0].Type = rows.Of(rows.KindText)
	mk := func(table rows.TableID, version uint32, columns []rows.Column) *rows.Schema {
		s, err := rows.NewSchema(table, version, "", columns)
		if err != nil {
			tb.Fatal(err)
		}
		return s
	}
	return schemas{
		orders:      mk("shop.Orders", 1, base),
		ordersWider: mk("shop.Orders", 2, wider),
		items:       mk("shop.items", 1, base),
		names:       mk("shop.names", 1, named),
	}
}

// change is one row of a script. A text of "-" is null, "?" absent.
type change struct {
	op     rows.Op
	id     int64
	text   string
	amount int64
}

// feed numbers rows as one reader would.
type feed struct {
	seq uint64
}

// batch turns changes into a batch; each is a transaction of its own.
func (s *feed) batch(tb testing.TB, schema *rows.Schema, changes ...change) *rows.Batch {
	tb.Helper()
	b := rows.NewBuilder(schema)
	for _, c := range changes {
		s.seq++
		m := rows.Meta{Op: c.op, Seq: s.seq, Ts: int64(s.seq) * 1_000_000, Txn: s.seq, Xid: uint32(s.seq)}
		if c.op == rows.OpTruncate {
			b.Truncate(m)
			continue
		}
		switch key := b.Column(0).(type) {
		case *array.Int64Builder:
			key.Append(c.id)
		case *array.StringBuilder:
			key.Append(nameOf(c.id))
		}
		switch {
		case c.text == "-", c.op == rows.OpDelete:
			b.Null(1)
		case c.text == "?":
			b.Absent(1)
		default:
			b.Column(1).(*array.StringBuilder).Append(c.text)
		}
		for i := 2; i < schema.NumColumns(); i++ {
			switch col := b.Column(i).(type) {
			case *array.Int32Builder:
				col.Append(int32(c.amount))
			case *array.Int64Builder:
				col.Append(c.amount)
			case *array.StringBuilder:
				col.Append("note " + strconv.FormatInt(c.amount, 10))
			}
		}
		b.EndRow(m)
	}
	out, err := b.Flush()
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

// nameOf is the text of a key. They are close to each other: by case, by spaces, by how a letter is composed, behind the sixteen
// characters that statistics of files keep.
func nameOf(id int64) string {
	near := []string{"", "a", "A", "a ", " a", "\u00e4", "a\u0308", "a\t", "aaaaaaaaaaaaaaaaa", "aaaaaaaaaaaaaaaab", "\uffff\U0010ffff", "'\"\\"}
	text := near[int(id)%len(near)]
	if n := id / int64(len(near)); n > 0 {
		text += strconv.FormatInt(n, 10)
	}
	return text
}
