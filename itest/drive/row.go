package drive

import (
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"

	"weir.dev/weir/pkg/rows"
)

// Col declares a column: name, type and the source's word for it; a name that ends in * is of the key.
func Col(name string, typ rows.Type, word string) rows.Column {
	c := rows.Column{Name: strings.TrimSuffix(name, "*"), Type: typ, Source: word, Nullable: true}
	if c.Name != name {
		c.KeyPos, c.Nullable = 1, false
	}
	return c
}

// Schema is a table of a source of some origin.
func Schema(tb testing.TB, origin, table string, version uint32, columns ...rows.Column) *rows.Schema {
	tb.Helper()
	s, err := rows.NewSchema(rows.TableID(table), version, origin, columns)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// People is a table of PostgreSQL with a key, id, and two texts, email and name.
func People(tb testing.TB, table string) *rows.Schema {
	tb.Helper()
	return Schema(tb, "postgres", table, 1, Col("id*", rows.Of(rows.KindInt64), "bigint"), Col("email", rows.Of(rows.KindText), "text"),
		Col("name", rows.Of(rows.KindText), "text"))
}

// Row is one change of a table of an int64 key and texts; "?" is absent, and "-" or none is null.
type Row struct {
	Op    rows.Op
	ID    int64
	Texts []string
}

// Ins is an insert.
func Ins(id int64, texts ...string) Row { return Row{rows.OpInsert, id, texts} }

// Upd is an update, with the new image.
func Upd(id int64, texts ...string) Row { return Row{rows.OpUpdateAfter, id, texts} }

// Del is a delete.
func Del(id int64) Row { return Row{rows.OpDelete, id, nil} }

// Batch makes a batch of changes.
func (a *Attempt) Batch(s *rows.Schema, all ...Row) *rows.Batch {
	a.t.Helper()
	b := rows.NewBuilder(s)
	for _, r := range all {
		if r.Op == rows.OpTruncate {
			b.Truncate(a.meta(r.Op))
			continue
		}
		b.Column(0).(*array.Int64Builder).Append(r.ID)
		for i := 1; i < s.NumColumns(); i++ {
			switch {
			case i > len(r.Texts) || r.Texts[i-1] == "-":
				b.Null(i)
			case r.Texts[i-1] == "?":
				b.Absent(i)
			default:
				b.Column(i).(*array.StringBuilder).Append(r.Texts[i-1])
			}
		}
		a.End(b, r.Op)
	}
	return a.Flush(b)
}

// End ends a row that a case has built itself.
func (a *Attempt) End(b *rows.Builder, op rows.Op) { b.EndRow(a.meta(op)) }

func (a *Attempt) meta(op rows.Op) rows.Meta {
	a.seq++
	return rows.Meta{Op: op, Seq: a.seq, Txn: a.seq}
}

// Flush makes a batch of what was built.
func (a *Attempt) Flush(b *rows.Builder) *rows.Batch {
	a.t.Helper()
	out, err := b.Flush()
	if err != nil {
		a.t.Fatal(err)
	}
	return out
}
