package sink_test

import (
	"math/rand/v2"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"weir.dev/weir/itest/drive"
	"weir.dev/weir/itest/harness"
	"weir.dev/weir/pkg/config"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/weir/verify/process"
)

// orders is a table of ten columns.
func orders(tb testing.TB) *rows.Schema {
	tb.Helper()
	s, err := rows.NewSchema("public.orders", 1, "postgres", []rows.Column{
		{Name: "id", Type: rows.Of(rows.KindInt64), Source: "bigint", KeyPos: 1},
		{Name: "customer_id", Type: rows.Of(rows.KindInt32), Source: "integer"},
		{Name: "product_id", Type: rows.Of(rows.KindInt32), Source: "integer"},
		{Name: "quantity", Type: rows.Of(rows.KindInt16), Source: "smallint"},
		{Name: "price", Type: rows.Decimal(10, 2), Source: "numeric(10,2)"},
		{Name: "status", Type: rows.Of(rows.KindText), Source: "text"},
		{Name: "note", Type: rows.Of(rows.KindText), Source: "character varying(200)", Nullable: true},
		{Name: "paid", Type: rows.Of(rows.KindBool), Source: "boolean"},
		{Name: "created", Type: rows.Of(rows.KindTimestampTZ), Source: "timestamp with time zone"},
		{Name: "weight", Type: rows.Of(rows.KindFloat64), Source: "double precision"},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// makeOrders makes batches of 2,000 rows with the ids given.
func makeOrders(tb testing.TB, s *rows.Schema, op rows.Op, ids []int64, seq uint64) []*rows.Batch {
	tb.Helper()
	var out []*rows.Batch
	b := rows.NewBuilder(s)
	flush := func() {
		batch, err := b.Flush()
		if err != nil {
			tb.Fatal(err)
		}
		out = append(out, batch)
	}
	for i, id := range ids {
		seq++
		b.Column(0).(*array.Int64Builder).Append(id)
		b.Column(1).(*array.Int32Builder).Append(int32(id * 7919 % 50_000))
		b.Column(2).(*array.Int32Builder).Append(int32(id * 104729 % 5_000))
		b.Column(3).(*array.Int16Builder).Append(int16(seq % 20))
		b.Column(4).(*array.Decimal128Builder).Append(decimal128.FromI64(int64(seq * 31 % 1_000_000)))
		b.Column(5).(*array.StringBuilder).Append([]string{"new", "paid", "shipped", "done"}[seq%4])
		b.Column(6).(*array.StringBuilder).Append("note for order " + strconv.FormatUint(seq*2654435761, 36))
		b.Column(7).(*array.BooleanBuilder).Append(seq%3 == 0)
		b.Column(8).(*array.TimestampBuilder).Append(arrow.Timestamp(1_700_000_000_000_000 + int64(seq)*1_000))
		b.Column(9).(*array.Float64Builder).Append(float64(seq) * 1.25)
		b.EndRow(rows.Meta{Op: op, Seq: seq, Txn: seq, Ts: int64(seq)})
		if b.Rows() == 2000 || i == len(ids)-1 {
			flush()
		}
	}
	return out
}

// epochOf stages and commits one epoch and returns the time of each.
func epochOf(tb testing.TB, a *drive.Attempt, batches []*rows.Batch) (stage, commit time.Duration) {
	tb.Helper()
	start := time.Now()
	c := a.Stage(batches...)
	staged := time.Now()
	if err := a.Try(c); err != nil {
		tb.Fatal(err)
	}
	return staged.Sub(start), time.Since(staged)
}

// BenchmarkPostgres commits epochs of 100,000 rows into a table of ten columns: inserts with growing keys, then updates of
// random rows among a million.
func BenchmarkPostgres(b *testing.B) {
	const epochRows, tableRows = 100_000, 1_000_000
	pg := harness.StartPostgres(b, harness.PostgresConfig{Durable: true})
	s := orders(b)
	target := spec.Sink{Name: "warehouse", Type: "postgres", Mode: spec.Upsert, Config: &spec.PostgresSink{
		URL: config.NewSecret(pg.URL("postgres")), Schema: "bench", Table: "{table}",
	}}
	x := drive.Open(b, drive.Config(target, 1))
	next := int64(0)
	inserts := func() []*rows.Batch {
		ids := make([]int64, epochRows)
		for i := range ids {
			next++
			ids[i] = next
		}
		return makeOrders(b, s, rows.OpInsert, ids, uint64(next))
	}
	updates := func() []*rows.Batch {
		ids := make([]int64, epochRows)
		for i := range ids {
			ids[i] = 1 + rand.Int64N(next)
		}
		return makeOrders(b, s, rows.OpUpdateAfter, ids, uint64(next)+rand.Uint64N(1000))
	}
	measure := func(name string, make func() []*rows.Batch) {
		b.Run(name, func(b *testing.B) {
			var stage, commit time.Duration
			var own, server time.Duration
			n := 0
			for b.Loop() {
				b.StopTimer()
				batches := make()
				o, p := cpuOfSelf(b), cpuOfCommitter(b, pg)
				b.StartTimer()
				s, c := epochOf(b, x, batches)
				stage, commit, n = stage+s, commit+c, n+epochRows
				b.StopTimer()
				own, server = own+cpuOfSelf(b)-o, server+cpuOfCommitter(b, pg)-p
				b.StartTimer()
			}
			// On a machine with other work the processor's time tells more than the clock's.
			b.ReportMetric(float64(own.Nanoseconds())/float64(n), "own-cpu-ns/row")
			b.ReportMetric(float64(server.Nanoseconds())/float64(n), "server-cpu-ns/row")
			b.ReportMetric(float64(n)/stage.Seconds(), "staged/s")
			b.ReportMetric(float64(n)/commit.Seconds(), "committed/s")
			b.ReportMetric(0, "ns/op")
		})
	}
	measure("insert", inserts)
	for next < tableRows {
		epochOf(b, x, inserts())
	}
	measure("update", updates)
}

// cpuOfSelf is the processor time of this process.
func cpuOfSelf(tb testing.TB) time.Duration {
	tb.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// cpuOfCommitter is the processor time of the committer's server process, to a hundredth of a second.
func cpuOfCommitter(tb testing.TB, pg *harness.Postgres) time.Duration {
	tb.Helper()
	pid, err := harness.Value[int32](tb.Context(), pg, "postgres",
		"SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'weir:lifeoftests:%'")
	if err != nil {
		tb.Fatal(err)
	}
	used, err := process.TimeOf(int(pid), false)
	if err != nil {
		tb.Fatal(err)
	}
	return used
}

// BenchmarkFiles commits epochs of 100,000 changes as Parquet and as JSON lines.
func BenchmarkFiles(b *testing.B) {
	const epochRows = 100_000
	s := orders(b)
	for _, format := range []spec.FileFormat{spec.Parquet, spec.JSONLines} {
		b.Run(string(format), func(b *testing.B) {
			x := drive.Open(b, drive.Config(spec.Sink{Name: "lake", Type: "files", Mode: spec.Changelog, Config: &spec.FilesSink{
				Files: spec.FilesTarget{Path: config.NewText(b.TempDir()), Format: format},
			}}, 1))
			ids := make([]int64, epochRows)
			for i := range ids {
				ids[i] = int64(i)
			}
			batches := makeOrders(b, s, rows.OpInsert, ids, 1)
			var own time.Duration
			n := 0
			for b.Loop() {
				o := cpuOfSelf(b)
				epochOf(b, x, batches)
				own, n = own+cpuOfSelf(b)-o, n+epochRows
			}
			b.ReportMetric(float64(own.Nanoseconds())/float64(n), "own-cpu-ns/row")
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "rows/s")
			b.ReportMetric(0, "ns/op")
		})
	}
}
