package coordinator

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/telemetry"
)

// epochSpan is the span of the epoch in flight, from its trigger until the head says what became of it. The subtasks'
// spans are its children: they find it in the head record.
type epochSpan struct {
	span  trace.Span
	epoch epoch.ID
}

// start opens the span of an epoch that a record hands out for the first time, and names it in the record. f belongs to
// a step that nobody has acted on yet; a span whose record was never stored is given up.
func (e *epochSpan) start(ctx context.Context, tracer trace.Tracer, before, h *job.Head) {
	f := h.InFlight
	if f == nil || before != nil && before.InFlight != nil && before.InFlight.Epoch == f.Epoch {
		return
	}
	e.end("not stored", f.Triggered)
	ctx, span := tracer.Start(ctx, "epoch", trace.WithNewRoot(), trace.WithTimestamp(f.Triggered), trace.WithAttributes(
		attribute.String(telemetry.KeyJob, h.Job), attribute.Int64(telemetry.KeyEpoch, int64(f.Epoch)),
		attribute.Int64(telemetry.KeyFence, int64(h.Fence)), attribute.String("kind", string(f.Kind)),
	))
	e.span, e.epoch = span, f.Epoch
	f.Trace = telemetry.Traceparent(ctx)
}

// follow ends the span when a stored record has decided about the epoch.
func (e *epochSpan) follow(h *job.Head, at time.Time) {
	switch {
	case e.span == nil || h.InFlight != nil && h.InFlight.Epoch == e.epoch || h.NextEpoch <= e.epoch:
	case h.Durable != nil && h.Durable.Epoch == e.epoch:
		e.end("", at)
	default:
		e.end("skipped", at)
	}
}

// end closes the span; why is empty for an epoch that is durable.
func (e *epochSpan) end(why string, at time.Time) {
	if e.span == nil {
		return
	}
	if why != "" {
		e.span.SetStatus(codes.Error, why)
	}
	e.span.End(trace.WithTimestamp(at))
	e.span = nil
}
