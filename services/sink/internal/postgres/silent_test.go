package postgres

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/meshtest"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/pkg/spec"
)

// promptly is far above what an answer without the target takes and far below what a silent target is waited for.
const promptly = 5 * time.Second

// silentSink is the configuration of a sink whose target never answers.
func silentSink(t *testing.T) (cfg sink.Config, swallowed <-chan struct{}) {
	t.Helper()
	url, swallowed := meshtest.SilentPostgres(t)
	return sink.Config{
		Identity: source.Identity{Job: "shop", Life: "life", Fence: 7, Subtask: plan.SubtaskID{Vertex: plan.CommitterOf("out")}},
		Sink:     spec.Sink{Name: "out", Type: "postgres", Mode: spec.Upsert, Config: &spec.PostgresSink{}},
		Resolve:  func(string) (string, error) { return url, nil },
		Writers:  1, Logger: slog.New(slog.DiscardHandler),
	}, swallowed
}

// A statement that the target never answers ends with its context, at once: so a committer can always be stopped.
func TestHungStatementEndsWithItsContext(t *testing.T) {
	cfg, swallowed := silentSink(t)
	stop := errors.New("the attempt ends")
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() {
		c, err := Connector{}.OpenCommitter(ctx, cfg)
		if err == nil {
			err = errors.Join(errors.New("the committer was opened"), c.Close())
		}
		ended <- err
	}()
	<-swallowed
	began := time.Now()
	cancel(stop)
	if err := <-ended; !errors.Is(err, context.Canceled) && !errors.Is(err, stop) {
		t.Errorf("ended with %v", err)
	}
	if took := time.Since(began); took > promptly {
		t.Errorf("ended %s after its context", took)
	}
}

// A writer answers barriers whatever the target does: it does not even know where the target is.
func TestWriterDoesNotNeedTheTarget(t *testing.T) {
	cfg, _ := silentSink(t)
	cfg.Resolve = func(ref string) (string, error) {
		t.Errorf("the writer has asked for %s", ref)
		return "", errors.New("not for writers")
	}
	w, err := Connector{}.OpenWriter(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	schema, err := rows.NewSchema("public.t", 1, "", []rows.Column{{Name: "id", Type: rows.Of(rows.KindInt64), KeyPos: 1}})
	if err != nil {
		t.Fatal(err)
	}
	for e := range epoch.ID(3) {
		b := rows.NewBuilder(schema)
		b.Column(0).(*array.Int64Builder).Append(int64(e))
		b.EndRow(rows.Meta{Op: rows.OpInsert})
		rowsOfEpoch, err := b.Flush()
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write(t.Context(), *rowsOfEpoch); err != nil {
			t.Fatal(err)
		}
		if pieces, err := w.Stage(t.Context(), e+1); err != nil || len(pieces) != 1 || pieces[0].Rows != 1 {
			t.Errorf("epoch %s: %+v, %v", e+1, pieces, err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}
