package coordinator

import (
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/job"
)

func record(next epoch.ID, inFlight, durable epoch.ID) *job.Head {
	h := &job.Head{Job: "shop", Fence: 3, NextEpoch: next}
	if inFlight != 0 {
		h.InFlight = &job.InFlight{Epoch: inFlight, Kind: epoch.Periodic, Triggered: time.Unix(100, 0)}
	}
	if durable != 0 {
		h.Durable = &job.Durable{Ref: epoch.Ref{Epoch: durable}}
	}
	return h
}

func TestEpochSpan(t *testing.T) {
	t.Parallel()
	out := tracetest.NewInMemoryExporter()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSyncer(out)).Tracer("test")
	var s epochSpan
	idle, began := record(7, 0, 6), record(8, 7, 6)

	s.start(t.Context(), tracer, idle, began)
	named := began.InFlight.Trace
	if named == "" {
		t.Fatal("the record does not name the span")
	}
	s.start(t.Context(), tracer, began, began)
	s.follow(idle, time.Unix(101, 0)) // a record from before the epoch decides nothing
	s.follow(began, time.Unix(101, 0))
	if n := len(out.GetSpans()); n != 0 || began.InFlight.Trace != named {
		t.Fatalf("%d spans ended, the record names %q", n, began.InFlight.Trace)
	}
	s.follow(record(8, 0, 7), time.Unix(102, 0))

	next := record(9, 8, 7)
	s.start(t.Context(), tracer, record(8, 0, 7), next)
	s.follow(record(9, 0, 7), time.Unix(104, 0))

	lost := record(10, 9, 7)
	s.start(t.Context(), tracer, record(9, 0, 7), lost)
	s.start(t.Context(), tracer, record(9, 0, 7), record(10, 9, 7))
	s.end("leadership ended", time.Unix(105, 0))

	var got []string
	for _, x := range out.GetSpans() {
		if x.Name != "epoch" || x.Parent.IsValid() || !x.StartTime.Equal(time.Unix(100, 0)) {
			t.Errorf("span %s of %v from %s", x.Name, x.Parent, x.StartTime)
		}
		if (x.Status.Code == codes.Error) != (x.Status.Description != "") {
			t.Errorf("status %v", x.Status)
		}
		got = append(got, x.Status.Description)
	}
	if want := []string{"", "skipped", "not stored", "leadership ended"}; len(got) != len(want) ||
		got[0] != want[0] || got[1] != want[1] || got[2] != want[2] || got[3] != want[3] {
		t.Errorf("spans ended as %q, want %q", got, want)
	}
}

// Without a tracer, or when the sampler says no, the record says nothing.
func TestEpochIsNotSampled(t *testing.T) {
	t.Parallel()
	for name, tracer := range map[string]trace.Tracer{
		"none":  noop.NewTracerProvider().Tracer(""),
		"never": sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample())).Tracer(""),
	} {
		var s epochSpan
		h := record(8, 7, 6)
		s.start(t.Context(), tracer, record(7, 0, 6), h)
		if h.InFlight.Trace != "" {
			t.Errorf("%s: %q", name, h.InFlight.Trace)
		}
	}
}
