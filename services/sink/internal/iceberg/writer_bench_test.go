package iceberg

import (
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/spec"
)

// BenchmarkWriter stages inserts of ten columns, 100,000 an epoch, for each way to keep them.
func BenchmarkWriter(b *testing.B) {
	const batches, perBatch = 100, 1000
	for name, s := range map[string]spec.Sink{
		"current": specOf(tempDir(b), spec.Upsert, nil), "changelog": specOf(tempDir(b), spec.Changelog, nil),
		"both": specOf(tempDir(b), spec.Upsert, both), "buckets": specOf(tempDir(b), spec.Upsert, func(i *spec.IcebergSink) { i.Buckets = 16 }),
	} {
		b.Run(name, func(b *testing.B) {
			sc := newScene(b, s)
			wide := wideSchema(b)
			all := make([]rows.Batch, batches)
			for b.Loop() {
				b.StopTimer()
				for i := range all {
					all[i] = wideBatch(b, sc, wide, perBatch)
				}
				e := sc.last.Epoch + 1
				b.StartTimer()
				sc.w.(sink.Numbered).Number(e)
				for _, x := range all {
					if err := sc.w.Write(b.Context(), x); err != nil {
						b.Fatal(err)
					}
				}
				sc.commit(b, sc.staged(b, e))
			}
			var bytes int64
			for _, r := range sc.p.roles() {
				st, err := sc.tables.load(b.Context(), r, "bench.wide", nil)
				if err != nil {
					b.Fatal(err)
				}
				bytes += total(st.meta, "total-files-size")
			}
			b.ReportMetric(float64(bytes)/float64(sc.seq), "B/row")
			b.ReportMetric(float64(batches*perBatch)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

func wideSchema(tb testing.TB) *rows.Schema {
	tb.Helper()
	kinds := []rows.Type{
		rows.Of(rows.KindInt64), rows.Of(rows.KindInt32), rows.Of(rows.KindInt64), rows.Decimal(12, 2), rows.Of(rows.KindFloat64),
		rows.Of(rows.KindBool), rows.Of(rows.KindTimestampTZ), rows.Of(rows.KindText), rows.Of(rows.KindText), rows.Of(rows.KindDate),
	}
	var columns []rows.Column
	for i, t := range kinds {
		columns = append(columns, rows.Column{Name: fmt.Sprint("c", i), Type: t, ID: i + 1, Nullable: i > 0})
	}
	columns[0].KeyPos = 1
	s, err := rows.NewSchema("bench.wide", 1, "", columns)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func wideBatch(tb testing.TB, s *scene, schema *rows.Schema, n int) rows.Batch {
	tb.Helper()
	b := rows.NewBuilder(schema)
	for range n {
		s.seq++
		i := int64(s.seq)
		for c := range schema.NumColumns() {
			switch col := b.Column(c).(type) {
			case *array.Int64Builder:
				col.Append(i * int64(1+7919*c))
			case *array.Int32Builder:
				col.Append(int32(i % 10007))
			case *array.Float64Builder:
				col.Append(float64(i) / 7)
			case *array.BooleanBuilder:
				col.Append(i%3 == 0)
			case *array.TimestampBuilder:
				col.Append(arrow.Timestamp(1_767_225_600_000_000 + i*1_000_000))
			case *array.StringBuilder:
				col.Append(fmt.Sprint("a note of about forty letters, number ", i%10007))
			case *array.Date32Builder:
				col.Append(arrow.Date32(20454 + i%365))
			default:
				col.AppendNull()
			}
		}
		b.EndRow(rows.Meta{Op: rows.OpInsert, Seq: s.seq, Ts: i * 1_000_000, Txn: s.seq})
	}
	out, err := b.Flush()
	if err != nil {
		tb.Fatal(err)
	}
	return *out
}
