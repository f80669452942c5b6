package task

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/envelope"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/position"
	"weir.dev/weir/pkg/report"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/pkg/telemetry"
)

// Config is everything a subtask needs. All fields are required unless they say otherwise.
type Config struct {
	Subtask plan.SubtaskID
	Plan    *plan.Deployment
	Spec    *spec.Job
	// Incarnation is that of the hosting process.
	Incarnation string
	// Restore is the durable epoch to start from; nil at the first start of a life.
	Restore *job.Durable
	// Resnapshot is the last order to the sources. Optional.
	Resnapshot *job.Resnapshot
	// Restored is the last order to go on from an older epoch. Optional.
	Restored *job.Restored
	// Adopted is the last order to go on from ledgers. Optional.
	Adopted *job.Adopted
	// Applied is the sequence of the last change of the spec within the life; zero for none.
	Applied uint64
	// Source opens enumerators and readers, Sink writers and committers; only the one of the subtask's role is used.
	Source source.Connector
	Sink   sink.Connector

	Bus     Bus
	States  States
	Records Records
	// Letters keeps dead letters; only committers of sinks with dlq use it.
	Letters Letters
	Board   *Board
	// Resolve turns a reference of the spec into its value.
	Resolve func(ref string) (string, error)
	// Hold takes names for sources, see [source.Hold]. Optional.
	Hold func(by source.Identity) source.Hold
	// Reread asks the node to read the job's head record again: a message of a newer fence has come.
	Reread func()
	Logger *slog.Logger
	// Metrics are the instruments of the process, Tracer makes spans; nil records nothing. Optional.
	Metrics *Metrics
	Tracer  trace.Tracer
}

// Counters are events worth counting, for metrics and tests. They may be read at any time.
type Counters struct {
	// OlderDropped are messages of older attempts, Repeats messages that came twice, BarriersDropped barriers that were
	// not above the last one, Abandoned alignments that a newer barrier ended.
	OlderDropped, NewerHeld, Repeats, BarriersDropped, Abandoned atomic.Uint64
	// Rows and Messages passed the subtask.
	Rows, Messages atomic.Uint64
	// Commits were applied by a committer, Retries are attempts that failed for a while, Dead are rows left out of commits.
	Commits, Retries, Dead atomic.Uint64
}

// Subtask is one parallel instance of a vertex in one attempt.
type Subtask struct {
	cfg      Config
	vertex   plan.Vertex
	identity source.Identity
	box      *mailbox
	counters Counters
	// report is what Report returns: set once the connector is open.
	report atomic.Pointer[func() report.Envelope]
	seq    atomic.Uint64
	// from is what the connector was restored from, nil in a first attempt; it is set before report is. first is the
	// position of the first rows behind it.
	from   *report.Restore
	first  atomic.Pointer[position.Position]
	meters *meters
	// waiting is what Waiting returns; nil while all is well.
	waiting atomic.Pointer[Wait]

	// What follows belongs to the loop.
	gate   *Gate
	out    *outbox
	store  *store
	tables tables
	orders Orders
	asked  job.Asked // for a look at the source's head
	spans  *spans
	acked  epoch.ID
	told   epoch.ID // the epoch of an open committed fact
}

// New prepares a subtask; nothing is opened before Run.
func New(cfg Config) (*Subtask, error) {
	v, ok := cfg.Plan.Vertex(cfg.Subtask.Vertex)
	if !ok {
		return nil, fmt.Errorf("subtask %s is not in the plan", cfg.Subtask)
	}
	cfg.Logger = cfg.Logger.With(telemetry.KeySubtask, cfg.Subtask.String(), telemetry.KeyFence, uint64(cfg.Plan.Fence))
	if cfg.Metrics == nil {
		m, err := NewMetrics(telemetry.Meter(nil))
		if err != nil {
			return nil, fmt.Errorf("make instruments: %w", err)
		}
		cfg.Metrics = m
	}
	return &Subtask{
		cfg: cfg, vertex: v, box: newMailbox(),
		identity: source.Identity{Job: cfg.Plan.Job, Life: cfg.Plan.Life, Fence: cfg.Plan.Fence, Subtask: cfg.Subtask},
		store:    newStore(cfg.States, cfg.Plan, cfg.Subtask),
		meters:   cfg.Metrics.of(cfg.Plan.Job, cfg.Subtask.Vertex), spans: newSpans(&cfg),
	}, nil
}

// ID names the subtask.
func (s *Subtask) ID() plan.SubtaskID { return s.cfg.Subtask }

// Counters are the subtask's counts.
func (s *Subtask) Counters() *Counters { return &s.counters }

// Obey hands over what the head record wants now. It does not wait.
func (s *Subtask) Obey(o Orders) { s.box.order(o) }

// Wait is what a subtask waits for outside: the code of the newest error, and since when nothing else has come.
type Wait struct {
	Code  fault.Code
	Since time.Time
}

// Waiting says that a committer's target takes nothing; ok is false while all is well. It never waits for the loop.
func (s *Subtask) Waiting() (w Wait, ok bool) {
	if p := s.waiting.Load(); p != nil {
		return *p, true
	}
	return w, false
}

// Report is the latest progress of a reader or an enumerator; ok is false for other roles and before it is open. It
// never waits for the loop.
func (s *Subtask) Report() (r report.Envelope, ok bool) {
	f := s.report.Load()
	if f == nil {
		return r, false
	}
	return (*f)(), true
}

// Run does the subtask's work until ctx ends or something fails. It opens everything, tells READY and closes everything.
// Its error is never nil; a cancelled ctx gives the ctx's cause.
func (s *Subtask) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	s.meters.begin(ctx, s.vertex.Role)
	if err := s.open(ctx, &wg); err != nil {
		return s.ended(ctx, err)
	}
	defer s.close()
	defer s.spans.abort()
	var err error
	switch s.vertex.Role {
	case plan.Enumerator:
		err = s.enumerate(ctx)
	case plan.Reader:
		err = s.read(ctx)
	case plan.Writer:
		err = s.write(ctx)
	case plan.Committer:
		err = s.commit(ctx)
	case plan.Transform:
		err = fault.New(fault.SpecUnsupported, s.cfg.Subtask.String(), "this build has no transforms")
	}
	return s.ended(ctx, err)
}

// ended prefers the reason why the subtask was stopped over what that did to its operations.
func (s *Subtask) ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if fault.CodeOf(err) == "" && dataPlane(err) {
		err = fault.Wrap(err, fault.JobDataLost, s.cfg.Subtask.String(), err.Error())
	}
	return fmt.Errorf("subtask %s: %w", s.cfg.Subtask, err)
}

// dataPlane reports whether an error means that rows under way may be lost: they are read again by the next attempt.
func dataPlane(err error) bool {
	for _, lost := range [...]error{
		bus.ErrStreamGone, bus.ErrStalled, bus.ErrUnknown, bus.ErrFull, bus.ErrDisconnected, bus.ErrConflict,
	} {
		if errors.Is(err, lost) {
			return true
		}
	}
	return false
}

// open opens the subtask's ways in and out.
func (s *Subtask) open(ctx context.Context, wg *sync.WaitGroup) error {
	d, self := s.cfg.Plan, s.cfg.Subtask
	data, feedback := d.Inputs(self)
	subject := func(c plan.Channel) string { return bus.DataSubject(d.Job, d.Fence, c.To, c.From) }
	s.gate = NewGate(d.Fence, data, feedback, subject)
	s.store.pass(s.restored())
	if len(d.Outputs(self.Vertex)) > 0 {
		pub, err := s.cfg.Bus.OpenPublisher(ctx, d.Window.InFlight)
		if err != nil {
			return err
		}
		g := newGauge(s.cfg.Bus, d)
		s.out = newOutbox(d, self, pub, s.cfg.Bus.MaxPayload(), g)
		s.out.meters = s.meters
		s.out.claim = s.store.Put
		s.out.passed = s.restored()
		wg.Go(func() { g.run(ctx) })
	}
	if len(data)+len(feedback) > 0 {
		r, err := s.cfg.Bus.OpenReceiver(ctx, d.Job, d.Fence, self)
		if err != nil {
			s.close()
			return err
		}
		wg.Go(func() {
			defer r.Close()
			s.box.pump(ctx, r)
		})
	}
	return nil
}

func (s *Subtask) close() {
	if s.out != nil {
		s.out.pub.Close()
	}
}

// release closes a half of a connector. Its work is over either way, so an error is only for people.
func (s *Subtask) release(half string, c io.Closer) {
	if err := c.Close(); err != nil {
		s.cfg.Logger.Warn("connector not closed cleanly", "half", half, "error", err)
	}
}

// restored is the epoch the attempt starts from, or zero.
func (s *Subtask) restored() epoch.ID {
	if s.cfg.Restore == nil {
		return 0
	}
	return s.cfg.Restore.Epoch
}

// ready tells the coordinator that everything is open.
func (s *Subtask) ready(ledger *job.LedgerRow) {
	s.cfg.Board.Open(envelope.Ready, 0, job.ReadyFact{
		Fence: s.cfg.Plan.Fence, Subtask: s.cfg.Subtask, Incarnation: s.cfg.Incarnation, Ledger: ledger,
	})
}

// look takes what has come in and closes the facts that the head record has answered.
func (s *Subtask) look() ([]Message, error) {
	letters, orders, err := s.box.take()
	if err != nil {
		return nil, err
	}
	if orders != nil {
		s.orders = *orders
		h := &s.orders.Head
		s.asked.See(h)
		if h.Phase.Active() {
			s.cfg.Board.Close(envelope.Ready)
		}
		if s.acked != 0 && answered(h, s.acked) {
			s.cfg.Board.Close(envelope.Ack)
			s.acked = 0
		}
		if s.told != 0 && h.Committed >= s.told {
			s.cfg.Board.Close(envelope.Committed)
			s.told = 0
		}
	}
	return letters, nil
}

// answered reports whether the head has decided about epoch n: it is durable, or it was given up. A head from before n
// was handed out says nothing about it.
func answered(h *job.Head, n epoch.ID) bool {
	if h.NextEpoch <= n {
		return false
	}
	return h.InFlight == nil || h.InFlight.Epoch != n
}

// wait blocks until something may have come in, a pause is over, or ctx ends. A zero pause is none.
func (s *Subtask) wait(ctx context.Context, pause time.Duration) error {
	var over <-chan time.Time
	if pause > 0 {
		t := time.NewTimer(pause)
		defer t.Stop()
		over = t.C
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.box.wake:
	case <-over:
	}
	return nil
}

// admit passes a message through the gate. ok is false when there is nothing more to do with it.
func (s *Subtask) admit(ctx context.Context, m Message) (p Passage, ok bool, err error) {
	p, err = s.gate.Admit(m.Subject, m.Header, m.Data)
	if err != nil {
		s.meters.broke(ctx, err)
		return p, false, err
	}
	switch p.Admission {
	case Accept:
		s.counters.Messages.Add(1)
		s.meters.received(ctx, &p.Envelope)
		return p, true, nil
	case Older:
		s.counters.OlderDropped.Add(1)
		s.meters.refuse(ctx, refusedOlder)
		m.Ack()
	case Repeat:
		s.counters.Repeats.Add(1)
		s.meters.refuse(ctx, refusedDuplicate)
		m.Ack()
	case Newer:
		s.counters.NewerHeld.Add(1)
		s.meters.refuse(ctx, refusedNewer)
		s.cfg.Reread()
	}
	return p, false, nil
}

// tell opens the ack of an epoch.
func (s *Subtask) tell(f job.AckFact) {
	f.Fence, f.Subtask = s.cfg.Plan.Fence, s.cfg.Subtask
	s.acked = f.Epoch
	s.cfg.Board.Close(envelope.Input)
	s.cfg.Board.Open(envelope.Ack, f.Epoch, f)
}

// fenced is the error of a subtask whose attempt was replaced.
func fenced(own, seen fence.Token) error {
	return fmt.Errorf("attempt %s, the head record says %s: %w", own, seen, fence.ErrFenced)
}
