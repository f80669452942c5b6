package view

import (
	"context"
	"errors"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/progress"
	"weir.dev/weir/pkg/report"
)

// gauges are read from the newest view when somebody asks. Labels are job, pipeline, vertex, task index, connector type and
// words of closed sets: no positions, splits, tables or texts (S3).
type gauges struct {
	// STIP-30's own.
	age, missing, stale, rests, lifecycle, recovery metric.Observable
	// And ours.
	behind, retained, keepLimit, lostIn, eventDelay, roundTrip, leg, pending, health     metric.Observable
	phase, epochAge, epochDelay, uncommitted, skipped, restarts, letters, waits, refused metric.Observable
}

// Instruments registers what the board shows as metrics.
func Instruments(m metric.Meter, b *Board) error {
	var g gauges
	var errs []error
	whole := func(to *metric.Observable, name, unit, help string) {
		i, err := m.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(help))
		*to, errs = i, append(errs, err)
	}
	seconds := func(to *metric.Observable, name, help string) {
		i, err := m.Float64ObservableGauge(name, metric.WithUnit("s"), metric.WithDescription(help))
		*to, errs = i, append(errs, err)
	}
	seconds(&g.age, "weir.cdc.progress.report.age", "Age of the newest accepted report of a reader.")
	whole(&g.missing, "weir.cdc.progress.missing.reader.reports", "", "Readers that should report and do not.")
	whole(&g.stale, "weir.cdc.progress.stale.reader.reports", "", "Readers whose report is old.")
	seconds(&g.rests, "weir.cdc.progress.no.progress.duration", "Time since a reader's position changed last.")
	whole(&g.lifecycle, "weir.cdc.progress.lifecycle", "", "1 for the lifecycle that the source is in.")
	whole(&g.recovery, "weir.cdc.progress.recovery.state", "", "1 for the state of recovery that the source is in.")
	whole(&g.health, "weir.cdc.progress.health", "", "1 for the health that the source is in.")
	whole(&g.behind, "weir.cdc.progress.behind", "", "How far the source's head was ahead when it was seen last, in the unit of its family.")
	whole(&g.retained, "weir.cdc.progress.retained", "By", "Log that the source keeps for the job.")
	whole(&g.keepLimit, "weir.cdc.progress.retained.limit", "By", "Size of log at which the source gives it up; absent where it has no such bound.")
	seconds(&g.lostIn, "weir.cdc.progress.log.lost.in", "Time until the log that the source keeps is lost if what was seen lately goes on; absent while that is not foreseen.")
	seconds(&g.eventDelay, "weir.cdc.progress.event.delay", "Time between a row's commit at the source and the report of its reader, by two clocks; no lag: it grows while the source is idle.")
	seconds(&g.roundTrip, "weir.cdc.progress.round.trip", "How long the newest heartbeat took from the source's log to every sink and back, without what nothing waited for.")
	seconds(&g.leg, "weir.cdc.progress.round.trip.leg", "The parts of it: to the reader, for the barrier, to the sinks and back.")
	seconds(&g.pending, "weir.cdc.progress.round.trip.pending", "For how long the heartbeat on its way has been so; absent while nothing waits for it.")
	whole(&g.phase, "weir.job.phase", "", "1 for the phase that the job is in.")
	seconds(&g.epochAge, "weir.job.epoch.durable.age", "Time since the newest epoch became durable.")
	seconds(&g.epochDelay, "weir.job.epoch.delay", "What of the newest committed epoch went by where: snapshot, bus, stage, commit.")
	whole(&g.uncommitted, "weir.job.epochs.uncommitted", "", "Epoch ids between the newest durable epoch and the newest one that every sink has committed.")
	whole(&g.skipped, "weir.job.epochs.skipped", "", "Epochs given up in a row.")
	whole(&g.restarts, "weir.job.restarts.recent", "", "Recoveries within the restart policy's window.")
	whole(&g.letters, "weir.job.dead.letters", "", "Dead letters that a sink keeps.")
	whole(&g.waits, "weir.job.waits", "", "Findings that keep the job from moving, by kind.")
	whole(&g.refused, "weir.progress.reports.refused", "", "Reports that the last look refused, by reason.")
	if err := errors.Join(errs...); err != nil {
		return err
	}
	_, err := m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		v, _, err := b.Now()
		if err != nil {
			return nil //nolint:nilerr // what is too old is not shown; readiness says so
		}
		g.observe(o, &v)
		return nil
	}, g.all()...)
	return err
}

func (g *gauges) all() []metric.Observable {
	return []metric.Observable{
		g.age, g.missing, g.stale, g.rests, g.lifecycle, g.recovery, g.health, g.behind, g.retained, g.keepLimit, g.lostIn, g.eventDelay, g.roundTrip, g.leg,
		g.pending, g.phase, g.epochAge, g.epochDelay, g.uncommitted, g.skipped, g.restarts, g.letters, g.waits, g.refused,
	}
}

// labelled observes with labels.
type labelled struct {
	metric.Observer

	labels []attribute.KeyValue
}

func (l labelled) with(kv ...attribute.KeyValue) labelled {
	return labelled{l.Observer, append(append([]attribute.KeyValue{}, l.labels...), kv...)}
}

func (l labelled) whole(i metric.Observable, n int64) {
	l.ObserveInt64(i.(metric.Int64Observable), n, metric.WithAttributes(l.labels...)) //nolint:forcetypeassert // made above
}

func (l labelled) seconds(i metric.Observable, d time.Duration) {
	l.ObserveFloat64(i.(metric.Float64Observable), max(0, d.Seconds()), metric.WithAttributes(l.labels...)) //nolint:forcetypeassert // made above
}

func oneHot[T ~string](l labelled, i metric.Observable, name string, is T, all ...T) {
	for _, one := range all {
		n := int64(0)
		if one == is {
			n = 1
		}
		l.with(attribute.String(name, string(one))).whole(i, n)
	}
}

func (g *gauges) observe(o metric.Observer, v *View) {
	for verdict, n := range v.Refused {
		labelled{o, nil}.with(attribute.String("reason", string(verdict))).whole(g.refused, int64(n))
	}
	for i := range v.Jobs {
		j := &v.Jobs[i]
		l := labelled{o, []attribute.KeyValue{attribute.String("job", j.Job)}}
		g.job(l, j, v.At)
		if j.CDC == nil {
			continue
		}
		for k := range j.Sources {
			for _, c := range j.CDC.Sources {
				if c.VertexID == j.Sources[k].Name {
					at := l.with(attribute.Int("pipeline", c.PipelineID), attribute.String("vertex", c.VertexID), attribute.String("connector_type", c.ConnectorType))
					g.source(at, &j.Sources[k])
				}
			}
		}
	}
}

func (g *gauges) job(l labelled, j *Job, now time.Time) {
	oneHot(l, g.phase, "phase", j.Phase, job.Created, job.Starting, job.Running, job.Draining, job.Suspending, job.Finished, job.Suspended,
		job.Cancelled, job.Failed)
	if !j.Epoch.DurableAt.IsZero() && !j.Phase.AtRest() {
		l.seconds(g.epochAge, now.Sub(j.Epoch.DurableAt))
	}
	if d := j.Epoch.Delay; d != nil && !j.Phase.AtRest() {
		for part, v := range map[string]report.Value[time.Duration]{"snapshot": d.Snapshot, "bus": d.Bus, "stage": d.Stage, "commit": d.Commit} {
			if n, ok := v.Get(); ok {
				l.with(attribute.String("part", part)).seconds(g.epochDelay, n)
			}
		}
	}
	l.whole(g.uncommitted, int64(j.Epoch.Durable-min(j.Epoch.Durable, j.Epoch.Committed)))
	l.whole(g.skipped, int64(j.Epoch.Skipped))
	l.whole(g.restarts, int64(j.Epoch.Restarts))
	for _, k := range j.Sinks {
		l.with(attribute.String("sink", k.Name)).whole(g.letters, int64(k.Dead))
	}
	kinds := make(map[progress.FindingKind]int64)
	for _, f := range j.Findings {
		if !f.Note {
			kinds[f.Kind]++
		}
	}
	for kind, n := range kinds {
		l.with(attribute.String("kind", string(kind))).whole(g.waits, n)
	}
}

func (g *gauges) source(l labelled, s *progress.Source) {
	l.whole(g.missing, int64(s.Summary.Missing))
	l.whole(g.stale, int64(s.Summary.Stale))
	oneHot(l, g.lifecycle, "lifecycle", s.Lifecycle, report.Snapshot, report.CatchUp, report.Incremental, report.Unknown)
	oneHot(l, g.recovery, "recovery_state", s.Recovery.State, report.Restoring, report.Restored, report.Steady, report.RecoveryUnknown)
	oneHot(l, g.health, "health", s.Health.State, report.Healthy, report.StaleReport, report.NoProgress, report.Stalled, report.HealthUnknown)
	for i := range s.Readers {
		r := &s.Readers[i]
		at := l.with(attribute.String("task", strconv.Itoa(progress.TaskIndex(r.Subtask))))
		at.seconds(g.age, r.Age)
		if since, ok := r.LastChange.Get(); ok {
			at.seconds(g.rests, r.Observed.Sub(since)+max(0, r.Age))
		}
		if n, ok := r.Behind.Value.Get(); ok {
			at.with(attribute.String("unit", string(r.Behind.Unit))).whole(g.behind, int64(n))
		}
		if n, ok := r.RetainedBytes.Get(); ok {
			at.whole(g.retained, n)
		}
		if k := r.Retention; k != nil && k.Bytes > 0 {
			at.whole(g.keepLimit, k.Bytes)
		}
		if in, ok := r.Forecast.In.Get(); ok {
			at.seconds(g.lostIn, in)
		}
		if since, ok := r.LastEvent.Get(); ok {
			at.seconds(g.eventDelay, r.Observed.Sub(since))
		}
		g.beats(at, r)
	}
}

func (g *gauges) beats(at labelled, r *progress.Reader) {
	if n, ok := r.RoundTrip.Get(); ok {
		at.seconds(g.roundTrip, n)
	}
	if n, ok := r.Pending.Get(); ok {
		at.seconds(g.pending, n)
	}
	b, ok := r.Beat.Get()
	if !ok {
		return
	}
	at.with(attribute.String("leg", "reading")).seconds(g.leg, b.Read)
	at.with(attribute.String("leg", "landing")).seconds(g.leg, b.Landed)
	if !b.Quiet {
		at.with(attribute.String("leg", "waiting")).seconds(g.leg, b.Waited)
	}
}
