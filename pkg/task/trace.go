package task

import (
	"context"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"weir.dev/weir/pkg/envelope"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/telemetry"
)

// headerParent is the key of W3C trace context in an envelope's trace.
const headerParent = "traceparent"

// spans makes the spans of one subtask; it belongs to the loop. An epoch is one trace: the leader's span, found in the
// head record, is the parent of the enumerator's snapshot, that of the readers', those of the writers' stage; barriers
// carry it on. A commit is a child of the leader's span too. Rows belong to a trace of their own reader, because they are
// read before anybody knows of the epoch that will end them; the epoch's spans link it.
//
// A tracer that records nothing costs one call per epoch and puts nothing on the wire.
type spans struct {
	tracer trace.Tracer
	about  []attribute.KeyValue
	// reading is the reader's span since its last cut; rows is what their envelopes carry of it.
	reading trace.Span
	rows    map[string]string
	// producers are the newest spans of rows by input, until the cut.
	producers map[int]string
	// epochs are the traces of epochs in flight that a committer has seen, oldest first.
	epochs []tracedEpoch
}

type tracedEpoch struct {
	epoch epoch.ID
	trace string
}

// keptTraces bounds epochs: far more than may be uncommitted.
const keptTraces = 64

func newSpans(cfg *Config) *spans {
	return &spans{tracer: telemetry.Tracer(cfg.Tracer), about: []attribute.KeyValue{
		attribute.String(telemetry.KeyJob, cfg.Plan.Job), attribute.String(telemetry.KeyVertex, string(cfg.Subtask.Vertex)),
		attribute.String(telemetry.KeySubtask, strconv.Itoa(cfg.Subtask.Index)),
		attribute.Int64(telemetry.KeyFence, int64(cfg.Plan.Fence)),
	}}
}

// start opens a span of an epoch under the one in ctx.
func (s *spans) start(ctx context.Context, name string, n epoch.ID, opts ...trace.SpanStartOption) (context.Context, trace.Span) {
	ctx, span := s.tracer.Start(ctx, name, opts...)
	if span.IsRecording() {
		span.SetAttributes(s.about...)
		span.SetAttributes(attribute.Int64(telemetry.KeyEpoch, int64(n)))
	}
	return ctx, span
}

// finish ends a span. Of an error it tells the code: a text may quote what is not the tracer's business.
func finish(span trace.Span, err error) {
	if err != nil {
		span.SetStatus(codes.Error, string(fault.CodeOf(err)))
	}
	span.End()
}

// emitting opens the reader's span when the first rows after a cut are sent.
func (s *spans) emitting(ctx context.Context, n epoch.ID) {
	if s.reading != nil {
		return
	}
	ctx, s.reading = s.start(ctx, "read", n, trace.WithNewRoot())
	s.rows = carried(ctx)
}

// emitted closes the reader's span at a cut and links both.
func (s *spans) emitted(ctx context.Context) {
	if s.reading == nil {
		return
	}
	here := trace.SpanFromContext(ctx)
	if sc := s.reading.SpanContext(); sc.IsSampled() {
		here.AddLink(trace.Link{SpanContext: sc})
		s.reading.AddLink(trace.Link{SpanContext: here.SpanContext()})
	}
	s.reading.End()
	s.reading, s.rows = nil, nil
}

// abort closes what an attempt that ends leaves open.
func (s *spans) abort() {
	if s.reading != nil {
		s.reading.End()
		s.reading = nil
	}
}

// produced notes who made the rows of an input.
func (s *spans) produced(input int, e *envelope.Envelope) {
	if by := e.Trace[headerParent]; by != "" {
		if s.producers == nil {
			s.producers = make(map[int]string)
		}
		s.producers[input] = by
	}
}

// staging opens the span of a writer's cut, with links to the producers of its rows.
func (s *spans) staging(ctx context.Context, barrier *envelope.Envelope, at time.Time) (context.Context, trace.Span) {
	ctx, span := s.start(under(ctx, barrier), "stage", barrier.Epoch, trace.WithTimestamp(at))
	for _, by := range s.producers {
		if sc := trace.SpanContextFromContext(telemetry.Remote(context.Background(), by)); sc.IsValid() {
			span.AddLink(trace.Link{SpanContext: sc})
		}
	}
	clear(s.producers)
	return ctx, span
}

// flying notes the trace of an epoch in flight, for its commit.
func (s *spans) flying(h *job.Head) {
	f := h.InFlight
	if f == nil || f.Trace == "" || len(s.epochs) > 0 && s.epochs[len(s.epochs)-1].epoch >= f.Epoch {
		return
	}
	if len(s.epochs) == keptTraces {
		s.epochs = s.epochs[1:]
	}
	s.epochs = append(s.epochs, tracedEpoch{f.Epoch, f.Trace})
}

// of returns ctx under the trace of an epoch, as far as this subtask has seen it.
func (s *spans) of(ctx context.Context, n epoch.ID) context.Context {
	for _, e := range s.epochs {
		if e.epoch == n {
			return telemetry.Remote(ctx, e.trace)
		}
	}
	return ctx
}

// under returns ctx under the span that an envelope carries.
func under(ctx context.Context, e *envelope.Envelope) context.Context {
	return telemetry.Remote(ctx, e.Trace[headerParent])
}

// carried is what an envelope carries of the span in ctx: nothing when it is not sampled.
func carried(ctx context.Context) map[string]string {
	if p := telemetry.Traceparent(ctx); p != "" {
		return map[string]string{headerParent: p}
	}
	return nil
}
