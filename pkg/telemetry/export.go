package telemetry

import (
	"context"
	"log/slog"
	"sync"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// metricExporter and spanExporter keep export errors away from OpenTelemetry's global error handler (T1, T3).
type metricExporter struct {
	sdkmetric.Exporter
	quiet *quiet
}

// Export sends metrics; a failure is logged and swallowed.
func (e *metricExporter) Export(ctx context.Context, m *metricdata.ResourceMetrics) error {
	e.quiet.note(ctx, "metrics", e.Exporter.Export(ctx, m))
	return nil
}

type spanExporter struct {
	sdktrace.SpanExporter
	quiet *quiet
}

// ExportSpans sends spans; a failure is logged and swallowed.
func (e *spanExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	e.quiet.note(ctx, "traces", e.SpanExporter.ExportSpans(ctx, spans))
	return nil
}

// quiet logs a recurring failure at most once a minute.
type quiet struct {
	log *slog.Logger

	mu   sync.Mutex
	next time.Time
}

func newQuiet(l *slog.Logger) *quiet { return &quiet{log: l} }

func (q *quiet) note(ctx context.Context, signal string, err error) {
	if err == nil {
		return
	}
	q.mu.Lock()
	now := time.Now()
	due := now.After(q.next)
	if due {
		q.next = now.Add(time.Minute)
	}
	q.mu.Unlock()
	if due {
		q.log.WarnContext(ctx, "telemetry was not exported", "signal", signal, KeyError, ErrorValue(err))
	}
}
