package bench

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"go.opentelemetry.io/otel/metric/noop"

	"weir.dev/weir/pkg/config"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/pkg/spec"
	connectors "weir.dev/weir/services/sink"
)

const (
	// tinyNew and tinyOld are the rows of a tiny epoch: inserts, and updates of rows that are there.
	tinyNew, tinyOld = 5, 5
	// tinyPart is how many commits at the beginning and at the end are compared.
	tinyPart = 100
	// tinyScans is how often each table is read.
	tinyScans = 5
)

// lake is a sink into Iceberg tables in this process, to which epochs are given one by one.
type lake struct {
	s                   *stand
	database, namespace string

	w      sink.Writer
	c      sink.Committer
	schema *rows.Schema
	last   epoch.Ref
	seq    uint64
}

// pieces are kept on a bus that never fails; nothing here is large enough to get there.
type pieces map[string][]byte

// Put implements sink.Store.
func (p pieces) Put(_ context.Context, data []byte) (epoch.Object, error) {
	o := epoch.Object{Subject: strconv.Itoa(len(p)), Size: int64(len(data))}
	p[o.Subject] = data
	return o, nil
}

// Get implements sink.Store.
func (p pieces) Get(_ context.Context, o epoch.Object) ([]byte, error) { return p[o.Subject], nil }

// openLake opens writer and committer of a sink with both tables.
func (s *stand) openLake(database, namespace string) *lake {
	s.Helper()
	all, err := connectors.Connectors(noop.NewMeterProvider().Meter(""))
	if err != nil {
		s.Fatal(err)
	}
	schema, err := rows.NewSchema("bench.tiny", 1, "", []rows.Column{
		{Name: "id", Type: rows.Of(rows.KindInt64), KeyPos: 1, ID: 1},
		{Name: "n", Type: rows.Of(rows.KindInt64), Nullable: true, ID: 2},
		{Name: "note", Type: rows.Of(rows.KindText), Nullable: true, ID: 3},
	})
	if err != nil {
		s.Fatal(err)
	}
	cfg := sink.Config{
		Identity: source.Identity{Job: namespace, Life: "bench", Fence: 1, Subtask: plan.SubtaskID{Vertex: "out"}},
		Sink: spec.Sink{Name: "out", Type: "iceberg", Mode: spec.Upsert, SchemaChange: spec.Lenient, Config: &spec.IcebergSink{
			Warehouse: config.NewText(s.TempDir()), Catalog: config.NewSecret(s.target.URL(database)),
			Namespace: namespace, Table: "{table}", Changelog: "{table}_changes",
		}},
		Resolve: func(ref string) (string, error) { return ref, nil }, Writers: 1, Store: make(pieces), Logger: slog.New(slog.DiscardHandler),
	}
	l := &lake{s: s, database: database, namespace: namespace, schema: schema}
	if l.w, err = all["iceberg"].OpenWriter(s.Context(), cfg); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = l.w.Close() })
	if l.c, err = all["iceberg"].OpenCommitter(s.Context(), cfg); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = l.c.Close() })
	if _, err := l.c.Claim(s.Context()); err != nil {
		s.Fatal(err)
	}
	return l
}

// write gives the sink the rows of tiny epochs: each has new keys, and goes over older ones from the first on.
func (l *lake) write(first, last int) {
	l.s.Helper()
	b := rows.NewBuilder(l.schema)
	add := func(op rows.Op, id, n int) {
		l.seq++
		b.Column(0).(*array.Int64Builder).Append(int64(id))
		b.Column(1).(*array.Int64Builder).Append(int64(n))
		b.Column(2).(*array.StringBuilder).Append("the note of a row, number " + strconv.Itoa(n))
		b.EndRow(rows.Meta{Op: op, Seq: l.seq, Ts: int64(l.seq), Txn: uint64(n)})
	}
	for n := first; n <= last; n++ {
		for i := range tinyNew {
			add(rows.OpInsert, n*tinyNew+i, n)
		}
		for i := range tinyOld {
			if n > 1 {
				add(rows.OpUpdateAfter, (n*tinyOld+i)*7919%(n*tinyNew-tinyNew)+tinyNew, n)
			}
		}
	}
	batch, err := b.Flush()
	if err == nil {
		err = l.w.Write(l.s.Context(), *batch)
	}
	if err != nil {
		l.s.Fatal(err)
	}
}

// commit stages what was written and commits it as the next epoch. It returns how long the committer took.
func (l *lake) commit() time.Duration {
	l.s.Helper()
	e := l.last.Epoch + 1
	l.w.(sink.Numbered).Number(e)
	staged, err := l.w.Stage(l.s.Context(), e)
	if err != nil {
		l.s.Fatal(err)
	}
	c := sink.Commit{Ref: epoch.Ref{Epoch: e, Digest: "d" + e.String()}, Prev: l.last}
	for _, p := range staged {
		c.Staged = append(c.Staged, epoch.Staged{Epoch: e, Subtask: plan.SubtaskID{Vertex: "out"}, Data: p.Data, Objects: p.Objects, Rows: p.Rows})
	}
	began := time.Now()
	r, err := l.c.Commit(l.s.Context(), c)
	if err != nil || !r.Applied {
		l.s.Fatalf("commit epoch %s: %+v, %v", e, r, err)
	}
	l.last = c.Ref
	return time.Since(began)
}

// read scans a table and returns how long that took, and the sum of what its rows say, each by its own weight.
func (l *lake) read(name string) (took time.Duration, n int, digest string) {
	l.s.Helper()
	var sum, keyed int64
	began := time.Now()
	l.s.scan(l.database, l.namespace, name, []string{"id", "n", "note"}, func(r arrow.RecordBatch) {
		id := r.Column(r.Schema().FieldIndices("id")[0]).(*array.Int64)
		value := r.Column(r.Schema().FieldIndices("n")[0]).(*array.Int64)
		for i := range int(r.NumRows()) {
			n++
			sum += value.Value(i)
			keyed += id.Value(i) * value.Value(i)
		}
	})
	return time.Since(began), n, fmt.Sprintf("%d rows, %d, %d", n, sum, keyed)
}

// icebergTiny commits tiny epochs with maintenance on, and the same rows in one epoch, which is what a compacted table is. The rows of
// both have to be the same; what a commit at the end takes, and a scan, tells what the epochs have left behind.
func (s *stand) icebergTiny(r *IcebergReport) {
	s.Helper()
	database := s.database()
	many, one := s.openLake(database, "many"), s.openLake(database, "one")
	for n := 1; n <= r.TinyEpochs; n++ {
		many.w.(sink.Numbered).Number(many.last.Epoch + 1)
		many.write(n, n)
		r.commits = append(r.commits, many.commit())
	}
	one.w.(sink.Numbered).Number(1)
	one.write(1, r.TinyEpochs)
	one.commit()
	r.scans = make(map[string][2][]time.Duration)
	for _, name := range []string{"tiny", "tiny_changes"} {
		var took [2][]time.Duration
		for range tinyScans {
			first, n, got := many.read(name)
			second, _, want := one.read(name)
			if got != want || n < r.TinyEpochs*tinyNew {
				s.Fatalf("table %s of %d epochs has %s, that of one %s", name, r.TinyEpochs, got, want)
			}
			took[0], took[1] = append(took[0], first), append(took[1], second)
		}
		r.scans[name] = took
	}
}
