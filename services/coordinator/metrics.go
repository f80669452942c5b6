package coordinator

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/telemetry"
)

// metrics are the coordinator's instruments; attributes are bounded by the number of jobs.
type metrics struct {
	epochs    metric.Float64Histogram
	skipped   metric.Int64Counter
	recovered metric.Int64Counter
	refused   metric.Int64Counter
	leading   metric.Int64UpDownCounter
}

func newMetrics(m metric.Meter) (*metrics, error) {
	var x metrics
	var err error
	if x.epochs, err = m.Float64Histogram("weir.coordinator.epoch.duration", metric.WithUnit("s"),
		metric.WithDescription("Time from the trigger of an epoch until it is durable."),
		metric.WithExplicitBucketBoundaries(.002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 30, 60)); err != nil {
		return nil, err
	}
	if x.skipped, err = m.Int64Counter("weir.coordinator.epochs.skipped",
		metric.WithDescription("Epochs that were given up.")); err != nil {
		return nil, err
	}
	if x.recovered, err = m.Int64Counter("weir.coordinator.recoveries",
		metric.WithDescription("Attempts that were started because one before failed.")); err != nil {
		return nil, err
	}
	if x.refused, err = m.Int64Counter("weir.coordinator.facts.refused",
		metric.WithDescription("Facts of older attempts, or that could not be read.")); err != nil {
		return nil, err
	}
	if x.leading, err = m.Int64UpDownCounter("weir.coordinator.leading",
		metric.WithDescription("1 while this process leads.")); err != nil {
		return nil, err
	}
	return &x, nil
}

func byJob(name string) metric.MeasurementOption {
	return metric.WithAttributes(attribute.String(telemetry.KeyJob, name))
}

// durable counts an epoch that has become durable.
func (x *metrics) durable(ctx context.Context, name string, d time.Duration) {
	x.epochs.Record(ctx, d.Seconds(), byJob(name))
}

// notice counts what is announced.
func (x *metrics) notice(ctx context.Context, n job.Notice) {
	switch n.Kind {
	case job.NoticeSkipped:
		x.skipped.Add(ctx, 1, byJob(n.Job))
	case job.NoticeRecovery:
		x.recovered.Add(ctx, 1, byJob(n.Job))
	case job.NoticeState, job.NoticeSavepoint, job.NoticeAlarm, job.NoticeTakeover, job.NoticeRefused:
	}
}

// refuse counts a fact that is not acted on.
func (x *metrics) refuse(ctx context.Context, name string) { x.refused.Add(ctx, 1, byJob(name)) }

// lead counts the beginning (1) or the end (-1) of a leadership.
func (x *metrics) lead(ctx context.Context, by int64) { x.leading.Add(ctx, by) }
