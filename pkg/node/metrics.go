package node

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/task"
	"weir.dev/weir/pkg/telemetry"
)

// metrics are the instruments of a node; attributes are bounded by jobs and their vertices.
type metrics struct {
	tasks           *task.Metrics
	started, ended  metric.Int64Counter
	running         metric.Int64UpDownCounter
	failed          metric.Int64Counter
	lost, regressed metric.Int64Counter
	gauges          metric.Registration
}

// newMetrics makes the instruments; the gauges read the condition until close.
func newMetrics(meter metric.Meter, c *condition) (*metrics, error) {
	var m metrics
	var errs []error
	note := func(err error) { errs = append(errs, err) }
	counter := func(name, unit, about string) metric.Int64Counter {
		x, err := meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(about))
		note(err)
		return x
	}
	m.started = counter("weir.node.attempts.started", "{attempt}", "Attempts of which this node has started subtasks.")
	m.ended = counter("weir.node.attempts.ended", "{attempt}", "Attempts of which this node has stopped its subtasks.")
	m.failed = counter("weir.node.subtasks.failed", "{subtask}", "Subtasks that failed while their attempt was the newest, by class.")
	m.lost = counter("weir.node.lease.lost", "{lease}", "Leases that were not renewed in time or taken by others.")
	m.regressed = counter("weir.node.heads.regressed", "{head}", "Heads that went back; everything of the job was stopped.")
	var err error
	m.running, err = meter.Int64UpDownCounter("weir.node.subtasks.running", metric.WithUnit("{subtask}"),
		metric.WithDescription("Subtasks whose goroutines run, those of stopped attempts included."))
	note(err)
	left, err := meter.Float64ObservableGauge("weir.node.lease.remaining", metric.WithUnit("s"),
		metric.WithDescription("Time for which the lease is surely held; 0 without one."))
	note(err)
	age, err := meter.Float64ObservableGauge("weir.node.heads.age", metric.WithUnit("s"),
		metric.WithDescription("Time since all heads were read."))
	note(err)
	m.tasks, err = task.NewMetrics(meter)
	note(err)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	m.gauges, err = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		now := time.Now()
		o.ObserveFloat64(left, c.leaseLeft(now).Seconds())
		if d, ok := c.headsAge(now); ok {
			o.ObserveFloat64(age, d.Seconds())
		}
		return nil
	}, left, age)
	return &m, err
}

// close ends the gauges.
func (m *metrics) close() { _ = m.gauges.Unregister() } // fails for another meter's registration only

func ofJob(name string, more ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributes(append(more, attribute.String(telemetry.KeyJob, name))...)
}

// attempt counts the beginning or the end of an attempt on this node.
func (m *metrics) attempt(ctx context.Context, name string, begins bool) {
	if begins {
		m.started.Add(ctx, 1, ofJob(name))
		return
	}
	m.ended.Add(ctx, 1, ofJob(name))
}

// subtasks counts goroutines of subtasks: 1 for one that begins, -1 for one that is over.
func (m *metrics) subtasks(ctx context.Context, name string, by int64) {
	m.running.Add(ctx, by, ofJob(name))
}

// fail counts a subtask that failed, by the class of its error.
func (m *metrics) fail(ctx context.Context, name string, v plan.VertexID, class string) {
	m.failed.Add(ctx, 1, ofJob(name, attribute.String(telemetry.KeyVertex, string(v)), attribute.String(telemetry.KeyReason, class)))
}

func (m *metrics) loseLease(ctx context.Context)            { m.lost.Add(ctx, 1) }
func (m *metrics) regress(ctx context.Context, name string) { m.regressed.Add(ctx, 1, ofJob(name)) }
