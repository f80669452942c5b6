package sink

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/sink"
)

type metrics struct {
	duration metric.Float64Histogram
	rows     metric.Int64Counter
	refused  metric.Int64Counter
	failed   metric.Int64Counter
	dead     metric.Int64Counter
}

func newMetrics(meter metric.Meter) (*metrics, error) {
	var m metrics
	var errs [5]error
	m.duration, errs[0] = meter.Float64Histogram("weir.sink.commit.duration", metric.WithUnit("s"),
		metric.WithDescription("Time to make one epoch visible, whether it was there already or not."))
	m.rows, errs[1] = meter.Int64Counter("weir.sink.commit.rows", metric.WithUnit("{row}"),
		metric.WithDescription("Rows made visible."))
	m.refused, errs[2] = meter.Int64Counter("weir.sink.commit.fenced", metric.WithUnit("{commit}"),
		metric.WithDescription("Claims and commits that the ledger refused because a newer attempt holds it."))
	m.failed, errs[3] = meter.Int64Counter("weir.sink.commit.failed", metric.WithUnit("{commit}"),
		metric.WithDescription("Commits that ended with an error, by its code."))
	m.dead, errs[4] = meter.Int64Counter("weir.sink.commit.dead", metric.WithUnit("{row}"),
		metric.WithDescription("Rows left out of epochs because they have a dead letter."))
	return &m, errors.Join(errs[:]...)
}

// committed measures one commit of a sink.
func (m *metrics) committed(ctx context.Context, name string, took time.Duration, r sink.Result, err error) {
	at := metric.WithAttributes(attribute.String("sink", name))
	if err != nil {
		m.failure(ctx, name, err)
		return
	}
	m.duration.Record(ctx, took.Seconds(), at)
	if r.Applied {
		m.rows.Add(ctx, int64(r.Rows), at)
		m.dead.Add(ctx, int64(r.Dead), at)
	}
}

func (m *metrics) failure(ctx context.Context, name string, err error) {
	code := fault.CodeOf(err)
	m.failed.Add(ctx, 1, metric.WithAttributes(attribute.String("sink", name), attribute.String("code", string(code))))
	if fault.ClassOf(err) == fault.Fenced {
		m.refused.Add(ctx, 1, metric.WithAttributes(attribute.String("sink", name)))
	}
}
