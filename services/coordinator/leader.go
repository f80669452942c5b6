package coordinator

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/registry"
	"weir.dev/weir/pkg/telemetry"
	"weir.dev/weir/services/coordinator/internal/exec"
)

// letter is one thing the owner goroutine has to do; everything that touches jobs or nodes is a letter.
type letter func(ctx context.Context)

// leader is the owner of all jobs for one term. Only the goroutine of loop touches its fields; everybody else posts.
type leader struct {
	conn    *bus.Conn
	reg     *registry.Registry
	exec    *exec.Executor
	cfg     Config
	log     *slog.Logger
	metrics *metrics
	tracer  trace.Tracer
	term    uint64

	mail    chan letter
	notices chan job.Notice
	work    sync.WaitGroup
	jobs    map[string]*seat
	roster  roster
	// crowd says that the room on nodes has changed since the jobs were told.
	crowd bool
	// end is set when this leadership must end.
	end error
}

// seat is one job.
type seat struct {
	state job.State
	// last is the time of the last event, wake when the machine wants the next one.
	last, wake time.Time
	// plan is the one whose room is counted, placed the subtasks per node that it takes up.
	plan   *plan.Deployment
	placed map[string]int
	stream streamWatch
	span   epochSpan
	// refused are the zombies of older attempts that people were told of, by the subject of their fact.
	refused map[string]bool
}

// count notes the room that a plan takes up.
func (s *seat) count(d *plan.Deployment) {
	s.plan, s.placed = d, nil
	if d == nil {
		return
	}
	s.placed = make(map[string]int)
	for _, p := range d.Placements {
		s.placed[p.Node]++
	}
}

// leadUnder takes the next term, takes every head over, and leads until ctx ends.
func (c *coordinator) leadUnder(ctx context.Context) error {
	term, err := c.reg.RaiseTerm(ctx)
	if err != nil {
		return err
	}
	heads, err := c.reg.Heads(ctx)
	if err != nil {
		return err
	}
	for name, v := range heads {
		if v.Head.Term >= term {
			return fault.New(fault.JobBusRegressed, "job "+name,
				fmt.Sprintf("its head was written in term %d, the registry hands out term %d", v.Head.Term, term), "job", name)
		}
	}
	log := c.log.With(telemetry.KeyTerm, term)
	l := &leader{
		conn: c.conn, reg: c.reg, cfg: c.cfg, log: log, metrics: c.metrics, tracer: c.tracer, term: term,
		exec: exec.New(c.conn, c.reg, log, term),
		mail: make(chan letter, 1024), notices: make(chan job.Notice, 1024),
		jobs: make(map[string]*seat), roster: newRoster(c.reg.TTL()),
	}
	log.InfoContext(ctx, "leading", "jobs", len(heads))
	c.metrics.lead(ctx, 1)
	defer c.metrics.lead(context.WithoutCancel(ctx), -1)
	c.view.lead(true)
	defer c.view.lead(false)

	ctx, cancel := context.WithCancel(ctx)
	defer l.work.Wait()
	defer cancel()
	defer l.endSpans()
	unsettled := func() { l.post(ctx, l.reconnected) }
	c.unsettled.Store(&unsettled)
	defer c.unsettled.Store(nil)

	for name, v := range heads {
		l.step(ctx, name, func(m job.Moment) job.Event { return job.HeadRead{Moment: m, View: v} })
	}
	l.work.Go(func() { l.followIntents(ctx) })
	l.work.Go(func() { l.followNodes(ctx) })
	l.work.Go(func() { l.followFacts(ctx) })
	l.work.Go(func() { l.publish(ctx) })
	l.work.Go(func() { l.probeStreams(ctx) })
	l.work.Go(func() { l.pingNodes(ctx) })
	return l.loop(ctx)
}

// endSpans closes what this leadership leaves open; the epochs themselves go on under the next one.
func (l *leader) endSpans() {
	for _, s := range l.jobs {
		s.span.end("leadership ended", time.Now())
	}
}

// loop takes letters one by one and wakes jobs when they asked for it.
func (l *leader) loop(ctx context.Context) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		l.arm(timer)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case do := <-l.mail:
			do(ctx)
		case <-timer.C:
			l.tick(ctx)
		}
		if l.crowd {
			l.nodesChanged(ctx)
		}
		if l.end != nil {
			return l.end
		}
	}
}

// arm sets the timer to the earliest wish of a job.
func (l *leader) arm(t *time.Timer) {
	var at time.Time
	for _, s := range l.jobs {
		if !s.wake.IsZero() && (at.IsZero() || s.wake.Before(at)) {
			at = s.wake
		}
	}
	if at.IsZero() {
		t.Reset(time.Hour)
		return
	}
	t.Reset(max(time.Until(at), 0))
}

func (l *leader) tick(ctx context.Context) {
	now := time.Now()
	for name, s := range l.jobs {
		if !s.wake.IsZero() && !now.Before(s.wake) {
			l.step(ctx, name, func(m job.Moment) job.Event { return job.Tick{Moment: m} })
		}
	}
}

// post hands a letter to the owner goroutine.
func (l *leader) post(ctx context.Context, do letter) {
	select {
	case l.mail <- do:
	case <-ctx.Done():
	}
}

// tell posts an event of a job.
func (l *leader) tell(ctx context.Context, name string, event exec.Answer) {
	l.post(ctx, func(ctx context.Context) { l.step(ctx, name, event) })
}

// seat finds a job, or makes room for one that this leader has not met and tells it who is there.
func (l *leader) seat(ctx context.Context, name string) *seat {
	s, known := l.jobs[name]
	if !known {
		s = &seat{state: job.NewState(name, l.term)}
		l.jobs[name] = s
		l.feed(ctx, name, s, func(m job.Moment) job.Event { return l.roster.event(m, l.takenBesides(name)) })
	}
	return s
}

// step feeds an event to a job's machine and has its effects performed.
func (l *leader) step(ctx context.Context, name string, event exec.Answer) {
	l.feed(ctx, name, l.seat(ctx, name), event)
}

func (l *leader) feed(ctx context.Context, name string, s *seat, event exec.Answer) {
	m := job.Moment{At: time.Now().UTC(), Roll: rand.Float64()}
	before := s.state.Head
	var effects []job.Effect
	s.state, effects = job.Step(s.state, event(m))
	s.last, s.wake = m.At, s.state.Wake(m.At)
	for _, e := range effects {
		if w, ok := e.(job.WriteHead); ok {
			s.span.start(ctx, l.tracer, before, &w.Head)
		}
		l.perform(ctx, name, s, e)
	}
	l.observe(ctx, name, s, before)
}

// perform has an effect done. Those that answer do so by another letter, from a goroutine of their own: at most one of
// each kind is under way for a job.
func (l *leader) perform(ctx context.Context, name string, s *seat, effect job.Effect) {
	switch e := effect.(type) {
	case job.Announce:
		l.announce(ctx, e.Notice)
		return
	case job.StepDown:
		l.end = fmt.Errorf("job %s: term %d: %w", name, e.Term, errDeposed)
		if e.Regressed {
			l.end = fault.New(fault.JobBusRegressed, "job "+name, "its head is older than one this leader has written", "job", name)
		}
		return
	case job.StorePlan:
		// Other jobs are placed on what is left before this plan is stored.
		s.count(e.Plan)
		l.crowd = true
	case job.WriteHead, job.ReadHead, job.ReadSpec, job.ResetStreams, job.FetchPlan, job.FetchChain, job.FetchManifest,
		job.StoreManifest,
		job.DropStreams, job.Collect, job.Erase:
	}
	l.work.Go(func() {
		if a := l.exec.Do(ctx, name, effect); a != nil {
			l.tell(ctx, name, a)
		}
	})
}

// observe keeps what follows from a head that has moved: metrics, and the room on nodes.
func (l *leader) observe(ctx context.Context, name string, s *seat, before *job.Head) {
	h := s.state.Head
	if h == nil {
		return
	}
	if h != before {
		s.span.follow(h, s.last)
	}
	d := s.state.Attempt.Plan
	if h.Phase.AtRest() {
		d = nil
	}
	if counted := s.plan; d != counted && (d != nil || h.Phase.AtRest() || counted.Fence != h.Fence) {
		// A plan that is still being stored stays counted.
		s.count(d)
		l.crowd = true
	}
	if before != nil && before.InFlight != nil && h.Durable != nil && h.Durable.Epoch == before.InFlight.Epoch {
		l.metrics.durable(ctx, name, s.last.Sub(before.InFlight.Triggered))
	}
}

// announce logs a notice and queues it for the event stream. Events decide nothing: when the queue is full the log alone
// has it.
func (l *leader) announce(ctx context.Context, n job.Notice) {
	l.metrics.notice(ctx, n)
	l.log.InfoContext(ctx, "job event", telemetry.KeyJob, n.Job, "kind", string(n.Kind), telemetry.KeyPhase, string(n.Phase),
		telemetry.KeyFence, uint64(n.Fence), telemetry.KeyEpoch, uint64(n.Epoch), telemetry.KeyReason, n.Reason.Code,
		"text", n.Reason.Text)
	select {
	case l.notices <- n:
	default:
		l.log.WarnContext(ctx, "event not published: the queue is full", telemetry.KeyJob, n.Job)
	}
}

// publish writes notices to the event stream, in order.
func (l *leader) publish(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case n := <-l.notices:
			b, err := json.Marshal(n)
			if err == nil {
				err = l.conn.PublishEvent(ctx, n.Job, string(n.Kind), b)
			}
			if err != nil && ctx.Err() == nil {
				l.log.WarnContext(ctx, "event not published", telemetry.KeyJob, n.Job, telemetry.KeyError, telemetry.ErrorValue(err))
			}
		}
	}
}

// reconnected restarts the grace period: leases made anew may be late, and memory streams may be gone.
func (l *leader) reconnected(ctx context.Context) {
	l.roster.unsettle(time.Now())
	l.nodesChanged(ctx)
	l.tellWhenSettled(ctx)
	l.lookAtStreams(ctx, true)
}
