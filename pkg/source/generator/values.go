package generator

import (
	"fmt"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"weir.dev/weir/pkg/rows"
)

// born is the commit time of row 0; row i is committed i milliseconds later, in every attempt the same.
var born = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()

// columnKinds is the cycle of types of a table's columns besides its key.
var columnKinds = []struct {
	name string
	typ  rows.Type
	bind func(array.Builder) func(v uint64)
}{
	{"amount", rows.Of(rows.KindInt64), func(b array.Builder) func(uint64) {
		c := b.(*array.Int64Builder)
		return func(v uint64) { c.Append(int64(v % 1_000_000)) }
	}},
	{"label", rows.Of(rows.KindText), func(b array.Builder) func(uint64) {
		c, buf := b.(*array.StringBuilder), make([]byte, 12)
		return func(v uint64) {
			for i := range buf {
				buf[i] = 'a' + byte(v%26)
				v /= 26
			}
			c.BinaryBuilder.Append(buf)
		}
	}},
	{"ratio", rows.Of(rows.KindFloat64), func(b array.Builder) func(uint64) {
		c := b.(*array.Float64Builder)
		return func(v uint64) { c.Append(float64(v>>11) / (1 << 53)) }
	}},
	{"price", rows.Decimal(12, 2), func(b array.Builder) func(uint64) {
		c := b.(*array.Decimal128Builder)
		return func(v uint64) { c.Append(decimal128.FromU64(v % 10_000_000)) }
	}},
	{"active", rows.Of(rows.KindBool), func(b array.Builder) func(uint64) {
		c := b.(*array.BooleanBuilder)
		return func(v uint64) { c.Append(v&1 == 1) }
	}},
	{"seen", rows.Of(rows.KindTimestampTZ), func(b array.Builder) func(uint64) {
		c := b.(*array.TimestampBuilder)
		return func(v uint64) { c.Append(arrow.Timestamp(born + int64(v%(86400*1_000_000)))) }
	}},
	{"count", rows.Of(rows.KindInt32), func(b array.Builder) func(uint64) {
		c := b.(*array.Int32Builder)
		return func(v uint64) { c.Append(int32(v)) }
	}},
}

// schema is the schema of table i.
func schema(i, columns int) (*rows.Schema, error) {
	cols := []rows.Column{{Name: "id", Type: rows.Of(rows.KindInt64), KeyPos: 1}}
	for c := range columns {
		k := columnKinds[c%len(columnKinds)]
		cols = append(cols, rows.Column{Name: fmt.Sprintf("%s_%d", k.name, c+1), Type: k.typ, Nullable: true})
	}
	return rows.NewSchema(TableName(i), 1, "", cols)
}

// table makes the rows of one table.
type table struct {
	b    *rows.Builder
	id   *array.Int64Builder
	fill []func(uint64)
}

func newTable(i, columns int) (*table, error) {
	s, err := schema(i, columns)
	if err != nil {
		return nil, err
	}
	t := &table{b: rows.NewBuilder(s)}
	t.id = t.b.Column(0).(*array.Int64Builder)
	for c := range columns {
		t.fill = append(t.fill, columnKinds[c%len(columnKinds)].bind(t.b.Column(c+1)))
	}
	return t, nil
}

// add makes one row. seq is its number within the reader's attempt.
func (t *table) add(q Sequence, r Row, seq uint64) {
	t.id.Append(r.Key)
	if r.Op == rows.OpDelete {
		for c := range t.fill {
			t.b.Absent(c + 1)
		}
	} else {
		v := q.hash(uint64(r.Index), 3, 0)
		for _, f := range t.fill {
			v = mix(v)
			f(v)
		}
	}
	t.b.EndRow(rows.Meta{Op: r.Op, Seq: seq, Ts: born + r.Index*1000, Txn: r.Txn, Ord: r.Ord})
}
