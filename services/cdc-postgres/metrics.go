package cdcpostgres

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
)

// metrics are the instruments of this source. They are touched once per batch or chunk, never per row.
type metrics struct {
	rows     metric.Int64Counter
	batches  metric.Int64Counter
	received metric.Int64Counter
	retained metric.Int64Gauge
	at       metric.MeasurementOption
}

func newMetrics(meter metric.Meter) (*metrics, error) {
	var m metrics
	var errs [4]error
	m.rows, errs[0] = meter.Int64Counter("weir.source.postgres.rows", metric.WithUnit("{row}"),
		metric.WithDescription("Rows emitted."))
	m.batches, errs[1] = meter.Int64Counter("weir.source.postgres.batches", metric.WithUnit("{batch}"),
		metric.WithDescription("Batches emitted."))
	m.received, errs[2] = meter.Int64Counter("weir.source.postgres.received", metric.WithUnit("By"),
		metric.WithDescription("Bytes of log received, also of what was emitted before."))
	m.retained, errs[3] = meter.Int64Gauge("weir.source.postgres.retained", metric.WithUnit("By"),
		metric.WithDescription("Log that the server keeps for the slot."))
	m.at = metric.WithAttributes()
	return &m, errors.Join(errs[:]...)
}

// none are instruments that nobody reads.
func none() *metrics {
	m, err := newMetrics(noop.Meter{})
	if err != nil {
		panic("cdcpostgres: instruments of a meter that does nothing: " + err.Error())
	}
	return m
}

// of binds the instruments to one source of a job.
func (m *metrics) of(job, source string) *metrics {
	bound := *m
	bound.at = metric.WithAttributes(attribute.String("job", job), attribute.String("source", source))
	return &bound
}

func (m *metrics) emitted(ctx context.Context, rows int) {
	m.rows.Add(ctx, int64(rows), m.at)
	m.batches.Add(ctx, 1, m.at)
}

func (m *metrics) arrived(ctx context.Context, bytes int) { m.received.Add(ctx, int64(bytes), m.at) }

func (m *metrics) keeps(ctx context.Context, bytes int64) { m.retained.Record(ctx, bytes, m.at) }
