package task_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/meshtest"
	"weir.dev/weir/pkg/position"
	"weir.dev/weir/pkg/report"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/pkg/source/generator"
	"weir.dev/weir/pkg/spec"
)

// prepared is a source whose one batch is ready: what is measured is the mesh.
type prepared struct {
	source.Connector
	batch rows.Batch
}

func (p prepared) OpenReader(context.Context, source.Config) (source.Reader, error) {
	return &preparedReader{batch: p.batch}, nil
}

type preparedReader struct{ batch rows.Batch }

func (r *preparedReader) Poll(ctx context.Context, out source.Output, _ <-chan struct{}) (source.Status, error) {
	return source.Status{Input: true}, out.Emit(ctx, r.batch, position.Position{})
}
func (r *preparedReader) Snapshot(epoch.ID) (source.Cut, error) { return source.Cut{}, nil }
func (r *preparedReader) Receive([]byte) error                  { return nil }
func (r *preparedReader) Confirm(epoch.ID, source.Cut)          {}
func (r *preparedReader) Drain(context.Context) error           { return nil }
func (r *preparedReader) Report() report.Reader                 { return report.Reader{} }
func (r *preparedReader) Close() error                          { return nil }

// hole is a sink that counts rows.
type hole struct{ rows *atomic.Int64 }

func (h hole) Level(spec.Sink) sink.Level { return sink.Transactional }
func (h hole) OpenWriter(context.Context, sink.Config) (sink.Writer, error) {
	return h, nil
}

func (h hole) OpenCommitter(context.Context, sink.Config) (sink.Committer, error) {
	return holeCommitter{}, nil
}

func (h hole) Write(_ context.Context, b rows.Batch) error {
	h.rows.Add(int64(b.NumRows()))
	return nil
}

func (h hole) Stage(context.Context, epoch.ID) ([]sink.Piece, error) {
	return []sink.Piece{{Data: json.RawMessage(`{}`)}}, nil
}
func (h hole) Pending() int64 { return 0 }
func (h hole) Close() error   { return nil }

type holeCommitter struct{}

func (holeCommitter) Claim(context.Context) (job.LedgerRow, error) { return job.LedgerRow{}, nil }
func (holeCommitter) Commit(context.Context, sink.Commit) (sink.Result, error) {
	return sink.Result{Applied: true}, nil
}
func (holeCommitter) Close() error { return nil }

// BenchmarkFlow is one bus hop with epochs: rows of ten columns from a reader that has them ready to a writer that drops
// them, everything in this process on a real server.
func BenchmarkFlow(b *testing.B) {
	var one rows.Batch
	cfg := spec.GeneratorSource{Tables: 1, Columns: 9, Seed: 1, TransactionRows: 1, Readers: 1}
	r, err := generator.Connector{}.OpenReader(b.Context(), source.Config{
		Source: spec.Source{Config: &cfg}, Batch: 256 << 10, MaxTransactionRows: 1 << 20,
	})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := r.Poll(b.Context(), take{&one}, nil); err != nil {
		b.Fatal(err)
	}
	for name, src := range map[string]source.Connector{
		"prepared":  prepared{generator.Connector{}, one},
		"generator": generator.Connector{},
	} {
		b.Run(name, func(b *testing.B) {
			srv := meshtest.StartServer(b, meshtest.ServerOptions{})
			conn, err := bus.Connect(b.Context(), bus.Options{Name: "bench", InProcess: srv})
			if err != nil {
				b.Fatal(err)
			}
			defer conn.Close()
			if err := conn.EnsureBase(b.Context(), bus.BaseConfig{LeaseTTL: 3 * time.Second, MemoryState: true}); err != nil {
				b.Fatal(err)
			}
			var n atomic.Int64
			l := newLeader(b, conn, `
apiVersion: weir/v1
job: shop
sources:
  gen: {type: generator, columns: 9}
sinks:
  out: {from: [gen], type: blackhole}
`, hole{&n})
			l.src = src
			l.start(b.Context())
			defer l.stop()
			l.change(func(h *job.Head) { h.Phase = job.Running })
			began := time.Now()
			for b.Loop() {
				<-time.After(100 * time.Millisecond)
				l.epoch(b.Context())
			}
			b.ReportMetric(float64(n.Load())/time.Since(began).Seconds(), "rows/s")
		})
	}
}

type take struct{ to *rows.Batch }

func (t take) Emit(_ context.Context, b rows.Batch, _ position.Position) error {
	*t.to = b
	return nil
}
func (t take) Tell(context.Context, []byte) error { return nil }
