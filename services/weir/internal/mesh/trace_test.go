package mesh

import (
	"context"
	"log/slog"
	"net/http"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"weir.dev/weir/pkg/app"
	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/config"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/meshtest"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/pkg/telemetry"
	"weir.dev/weir/services/weir/internal/control"
)

// One epoch is one trace through every process that takes part in it.
func TestAnEpochIsOneTrace(t *testing.T) {
	t.Parallel()
	out := tracetest.NewInMemoryExporter()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSyncer(out)).Tracer("test")
	run(t, tracer, shop, committed(5))
	spans := out.GetSpans()
	whole := 0
	for _, root := range spans {
		if root.Name != "epoch" {
			continue
		}
		family := func(name string, parent trace.SpanID) (found []tracetest.SpanStub) {
			for _, s := range spans {
				if s.SpanContext.TraceID() == root.SpanContext.TraceID() && s.Name == name && s.Parent.SpanID() == parent {
					found = append(found, s)
				}
			}
			return found
		}
		enumerator := family("snapshot", root.SpanContext.SpanID())
		commits := family("commit", root.SpanContext.SpanID())
		if len(enumerator) != 1 || len(commits) != 1 {
			continue // the run ended in the midst of it
		}
		readers := family("snapshot", enumerator[0].SpanContext.SpanID())
		if len(readers) != 1 {
			t.Fatalf("epoch %s has %d readers' snapshots", epochOf(root), len(readers))
		}
		stages := family("stage", readers[0].SpanContext.SpanID())
		if len(stages) != 2 {
			t.Fatalf("epoch %s has %d stages", epochOf(root), len(stages))
		}
		for _, s := range []tracetest.SpanStub{enumerator[0], readers[0], stages[0], stages[1], commits[0]} {
			if epochOf(s) != epochOf(root) {
				t.Errorf("%s is of epoch %s, its trace of %s", s.Name, epochOf(s), epochOf(root))
			}
		}
		if linked(spans, stages[0], "read") && linked(spans, stages[1], "read") && linked(spans, readers[0], "read") {
			whole++
		}
	}
	if whole < 2 {
		t.Errorf("%d whole epochs of rows in %d spans", whole, len(spans))
	}
}

// linked reports whether a span links one of this name in another trace.
func linked(all tracetest.SpanStubs, from tracetest.SpanStub, name string) bool {
	for _, l := range from.Links {
		for _, s := range all {
			if s.SpanContext.SpanID() == l.SpanContext.SpanID() && s.Name == name && s.SpanContext.TraceID() != from.SpanContext.TraceID() {
				return true
			}
		}
	}
	return false
}

func epochOf(s tracetest.SpanStub) string {
	for _, kv := range s.Attributes {
		if kv.Key == telemetry.KeyEpoch {
			return kv.Value.String()
		}
	}
	return ""
}

// run runs all services with this tracer until the job's head is as wanted.
func run(t *testing.T, tracer trace.Tracer, text string, done func(*job.Head) bool) {
	t.Helper()
	srv := meshtest.StartServer(t, meshtest.ServerOptions{})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn, err := bus.Connect(ctx, bus.Options{Name: "test", InProcess: srv})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	running, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tel := telemetry.Discard()
		tel.Tracer = tracer
		err := Run(running, app.Env{
			Service: "weir", Node: "n1", Telemetry: tel, Bus: bus.Options{InProcess: srv, Logger: slog.New(slog.DiscardHandler)},
			Lookup: config.OS(), Health: app.NewHealth(), Handle: func(string, http.Handler) {}, Ready: func() {},
		}, Names()...)
		if running.Err() == nil {
			t.Errorf("the mesh ended: %v", err)
		}
	}()
	defer func() {
		stop()
		<-ended
	}()
	p := &process{t: t, ctx: ctx, log: &page{}}
	if p.mesh, err = control.Open(ctx, conn); err != nil {
		t.Fatal(err)
	}
	if _, err := spec.Parse([]byte(text), "job.yaml"); err != nil {
		t.Fatal(err)
	}
	p.submit(text)
	p.await("shop", done)
}
