package rows_test

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"

	"weir.dev/weir/pkg/rows"
)

func benchBatches(b *testing.B, batches, n int, id func(i int) int64) []*rows.Batch {
	b.Helper()
	builder := rows.NewBuilder(orders(b))
	var out []*rows.Batch
	for k := range batches {
		for i := range n {
			builder.Column(0).(*array.Int64Builder).Append(id(k*n + i))
			builder.Column(1).(*array.StringBuilder).Append("a note of some length")
			builder.Null(2)
			builder.EndRow(rows.Meta{Op: rows.OpUpdateAfter, Seq: uint64(k*n + i)})
		}
		batch, err := builder.Flush()
		if err != nil {
			b.Fatal(err)
		}
		out = append(out, batch)
	}
	return out
}

func perRow(b *testing.B, n int) {
	b.Helper()
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/row")
}

func BenchmarkSplit4(b *testing.B) {
	in := benchBatches(b, 1, 8192, func(i int) int64 { return int64(i) })[0]
	s := rows.NewSplitter(4)
	b.ReportAllocs()
	for b.Loop() {
		s.Split(in)
	}
	perRow(b, in.NumRows())
}

// BenchmarkCollapse is an epoch of 100,000 rows: every key once, and 1,000 hot keys.
func BenchmarkCollapse(b *testing.B) {
	for name, id := range map[string]func(int) int64{
		"distinct": func(i int) int64 { return int64(i) * 7919 },
		"hot":      func(i int) int64 { return int64(i) % 1000 },
	} {
		b.Run(name, func(b *testing.B) {
			in := benchBatches(b, 25, 4000, id)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := rows.Collapse(in...); err != nil {
					b.Fatal(err)
				}
			}
			perRow(b, 100_000)
		})
	}
}

func BenchmarkRowJSON(b *testing.B) {
	in := benchBatches(b, 1, 1000, func(i int) int64 { return int64(i) })[0]
	var out []byte
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		out = in.AppendRowJSON(out[:0], i)
		i = (i + 1) % 1000
	}
}
