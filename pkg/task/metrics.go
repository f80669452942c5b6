package task

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"weir.dev/weir/pkg/envelope"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/telemetry"
)

// Metrics are the instruments of all subtasks of a process. They are touched once per message or epoch, never per row;
// their attributes are job, vertex, direction and reason.
type Metrics struct {
	rows, messages, bytes  metric.Int64Counter
	refused                metric.Int64Counter
	dropped, abandoned     metric.Int64Counter
	align, snapshot, stage metric.Float64Histogram
	window                 metric.Float64Histogram
	retries                metric.Int64Counter
}

// NewMetrics makes the instruments.
func NewMetrics(meter metric.Meter) (*Metrics, error) {
	var m Metrics
	var errs []error
	counter := func(into *metric.Int64Counter, name, unit, about string) {
		c, err := meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(about))
		*into, errs = c, append(errs, err)
	}
	seconds := func(into *metric.Float64Histogram, name, about string) {
		h, err := meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(about),
			metric.WithExplicitBucketBoundaries(.0005, .001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 30, 60))
		*into, errs = h, append(errs, err)
	}
	counter(&m.rows, "weir.task.rows", "{row}", "Rows that passed subtasks, in and out.")
	counter(&m.messages, "weir.task.messages", "{message}", "Messages on data channels, in and out.")
	counter(&m.bytes, "weir.task.bytes", "By", "Payload of messages on data channels, in and out.")
	counter(&m.refused, "weir.gate.refused", "{message}",
		"Messages not let in: of an older or a newer attempt, duplicates, gaps, and what cannot be read.")
	counter(&m.dropped, "weir.barrier.dropped", "{barrier}", "Barriers that were not above the last one.")
	counter(&m.abandoned, "weir.epoch.align.abandoned", "{alignment}", "Alignments that a newer barrier ended.")
	seconds(&m.align, "weir.epoch.align.duration", "Time from the first barrier of an epoch at a writer to the last.")
	seconds(&m.snapshot, "weir.epoch.snapshot.duration", "Time of a source's subtask to pass a barrier with its state kept.")
	seconds(&m.stage, "weir.epoch.stage.duration", "Time of a writer to make an epoch's rows safe.")
	seconds(&m.window, "weir.window.wait.duration", "Time for which a sender waited because its receiver was behind.")
	counter(&m.retries, "weir.commit.retries", "{attempt}", "Claims and commits that failed for a while and are tried again.")
	return &m, errors.Join(errs...)
}

// meters are the instruments of one subtask, with its attributes bound.
type meters struct {
	m       *Metrics
	at      metric.MeasurementOption
	in, out metric.MeasurementOption
	reasons map[string]metric.MeasurementOption
}

// Reasons for which the gate lets a message not in.
const (
	refusedOlder     = "older"
	refusedNewer     = "newer"
	refusedDuplicate = "duplicate"
	refusedGap       = "gap"
	refusedMalformed = "malformed"
)

// of binds the instruments to the vertex of a job.
func (m *Metrics) of(job string, v plan.VertexID) *meters {
	with := func(more ...attribute.KeyValue) metric.MeasurementOption {
		return metric.WithAttributeSet(attribute.NewSet(append(more,
			attribute.String(telemetry.KeyJob, job), attribute.String(telemetry.KeyVertex, string(v)))...))
	}
	x := &meters{
		m: m, at: with(), in: with(attribute.String("direction", "in")), out: with(attribute.String("direction", "out")),
		reasons: make(map[string]metric.MeasurementOption),
	}
	for _, r := range [...]string{refusedOlder, refusedNewer, refusedDuplicate, refusedGap, refusedMalformed} {
		x.reasons[r] = with(attribute.String(telemetry.KeyReason, r))
	}
	return x
}

// begin makes the counters of rare things readable before they happen: a series that begins at 1 has no rate.
func (x *meters) begin(ctx context.Context, role plan.Role) {
	if role == plan.Committer {
		x.m.retries.Add(ctx, 0, x.at)
		return
	}
	for _, r := range x.reasons {
		x.m.refused.Add(ctx, 0, r)
	}
	if role == plan.Writer {
		x.m.abandoned.Add(ctx, 0, x.at)
	}
	if role != plan.Enumerator {
		x.m.dropped.Add(ctx, 0, x.at)
	}
}

func (x *meters) passed(ctx context.Context, e *envelope.Envelope, way metric.MeasurementOption) {
	x.m.messages.Add(ctx, 1, way)
	if e.Kind == envelope.Rows {
		x.m.rows.Add(ctx, int64(e.RowCount), way)
	}
	x.m.bytes.Add(ctx, int64(len(e.Payload)), way)
}

// received counts a message that the gate let in, sent one that was published.
func (x *meters) received(ctx context.Context, e *envelope.Envelope) { x.passed(ctx, e, x.in) }
func (x *meters) sent(ctx context.Context, e *envelope.Envelope)     { x.passed(ctx, e, x.out) }

// refuse counts a message that was not let in, for one of the reasons above.
func (x *meters) refuse(ctx context.Context, reason string) {
	x.m.refused.Add(ctx, 1, x.reasons[reason])
}

// broke counts the message that ends the attempt.
func (x *meters) broke(ctx context.Context, err error) {
	if fault.CodeOf(err) == fault.JobDataLost {
		x.refuse(ctx, refusedGap)
		return
	}
	x.refuse(ctx, refusedMalformed)
}

func (x *meters) dropBarrier(ctx context.Context) { x.m.dropped.Add(ctx, 1, x.at) }
func (x *meters) abandon(ctx context.Context)     { x.m.abandoned.Add(ctx, 1, x.at) }

// staged measures the cut of a writer, cut that of a source's subtask.
func (x *meters) staged(ctx context.Context, align, stage time.Duration) {
	x.m.align.Record(ctx, align.Seconds(), x.at)
	x.m.stage.Record(ctx, stage.Seconds(), x.at)
}

func (x *meters) cut(ctx context.Context, d time.Duration) {
	x.m.snapshot.Record(ctx, d.Seconds(), x.at)
}

// waited measures one wait for room in a window.
func (x *meters) waited(ctx context.Context, d time.Duration) {
	x.m.window.Record(ctx, d.Seconds(), x.at)
}

func (x *meters) retry(ctx context.Context) { x.m.retries.Add(ctx, 1, x.at) }
