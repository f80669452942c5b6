package halves

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"weir.dev/weir/pkg/cdc"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/report"
	"weir.dev/weir/pkg/source"
)

// The kinds of messages to readers: their first byte.
const (
	TellSource = 's' // what is read, in the source's own form
	TellCopy   = 'c' // a message of the copy
	TellOver   = 'o' // no chunk will follow
)

// longestMark bounds a watermark in a report, in bytes: that of a server with many origins of transactions may be longer.
const longestMark = 256

// EnumeratorConfig is what an enumerator is made of.
type EnumeratorConfig struct {
	// Connector is how reports call the source.
	Connector string
	Assigner  *cdc.Assigner
	Readers   int
	// Only ends the source with its copy.
	Only bool
	// Introduction is told to every reader before anything else, as TellSource.
	Introduction []byte
	// State makes the enumerator's state of that of the copy. Objects, if set, are what that of the copy refers to.
	State   func(copied []byte) []byte
	Objects func() []epoch.Object
	// Durable, if set, is called from the loop when an epoch is durable that has the state of this attempt. It must not wait.
	Durable func()
	Planner Planner
	// Keep, if set, is that of [source.Keeper].
	Keep func(ctx context.Context, taking epoch.ID, all []epoch.ID) error
	// Watch looks after the server until ctx ends; an error ends the enumerator. Outside, if set, are tables that match and are not
	// captured, with the reason.
	Watch   func(ctx context.Context) error
	Outside func() []report.Table
	// Waits, if set, are what the source waits for at its server.
	Waits func() []report.Wait
	// Watermark is what people are shown of the mark of a chunk.
	Watermark func(mark []byte) (string, error)
	Logger    *slog.Logger
}

// Enumerator is the copy's assigner with hands.
type Enumerator struct {
	cfg      EnumeratorConfig
	asking   bool     // for an epoch, that the copy waits for
	first    epoch.ID // the first epoch that has this attempt's state
	told     bool     // what is read
	over     bool     // and that no chunk follows
	desk     *desk
	draining atomic.Bool
	drained  chan struct{}   // holds a token when a drain was asked for
	failed   chan error      // holds why Watch has ended
	paces    map[string]Pace // of the tables that are copied, by name
	latest   atomic.Pointer[standing]
	cancel   context.CancelFunc
	done     sync.WaitGroup
}

var (
	_ source.Enumerator = (*Enumerator)(nil)
	_ source.Keeper     = (*Enumerator)(nil)
)

// StartEnumerator starts the enumerator's goroutines; Close ends them.
func StartEnumerator(ctx context.Context, cfg EnumeratorConfig) *Enumerator {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	e := &Enumerator{
		cfg: cfg, desk: newDesk(cfg.Planner, cfg.Logger), drained: make(chan struct{}, 1), failed: make(chan error, 1), cancel: cancel,
	}
	e.publish()
	e.done.Go(func() { e.desk.run(ctx) })
	e.done.Go(func() {
		if err := cfg.Watch(ctx); err != nil && ctx.Err() == nil {
			e.failed <- err
		}
	})
	return e
}

// Poll does what the copy wants done, then waits for answers.
func (e *Enumerator) Poll(ctx context.Context, out source.Directory, wake <-chan struct{}) (source.Status, error) {
	if err := e.introduce(ctx, out); err != nil {
		return source.Status{}, err
	}
	for {
		if err := e.act(ctx, out); err != nil {
			return source.Status{}, err
		}
		if e.cfg.Assigner.Waits() && !e.asking {
			e.asking = true
			return e.status(), nil
		}
		select {
		case <-wake:
			return e.status(), nil
		case <-e.desk.news:
			answers, err := e.desk.take()
			for _, a := range answers {
				if err == nil {
					err = a(e.cfg.Assigner)
				}
			}
			if err != nil {
				return source.Status{}, err
			}
		case err := <-e.failed:
			return source.Status{}, err
		case <-e.drained:
			if err := e.act(ctx, out); err != nil {
				return source.Status{}, err
			}
			return e.status(), nil
		case <-ctx.Done():
			return source.Status{}, context.Cause(ctx)
		}
	}
}

func (e *Enumerator) broadcast(ctx context.Context, out source.Directory, what string, message []byte) error {
	for i := range e.cfg.Readers {
		if err := out.Tell(ctx, i, message); err != nil {
			return fmt.Errorf("tell reader %d %s: %w", i, what, err)
		}
	}
	return nil
}

// introduce tells every reader once what is read.
func (e *Enumerator) introduce(ctx context.Context, out source.Directory) error {
	if e.told {
		return nil
	}
	e.told = true
	return e.broadcast(ctx, out, "what is read", append([]byte{TellSource}, e.cfg.Introduction...))
}

// act does the assigner's effects.
func (e *Enumerator) act(ctx context.Context, out source.Directory) error {
	for _, effect := range e.cfg.Assigner.Effects() {
		t, ok := effect.(cdc.Tell)
		if !ok {
			e.desk.ask(effect)
			continue
		}
		if err := out.Tell(ctx, t.Reader, append([]byte{TellCopy}, t.Payload...)); err != nil {
			return fmt.Errorf("tell reader %d of the copy: %w", t.Reader, err)
		}
	}
	// A source that comes to its end has no more chunks to give once every one is read.
	if !e.over && (e.draining.Load() || e.cfg.Only) && e.cfg.Assigner.Lifecycle() != cdc.Snapshot {
		e.over = true
		if err := e.broadcast(ctx, out, "that the copy is over", []byte{TellOver}); err != nil {
			return err
		}
	}
	e.publish()
	return nil
}

func (e *Enumerator) status() source.Status {
	s := source.Status{Input: e.asking, Drained: e.over}
	if e.cfg.Only {
		s.Drained = e.cfg.Assigner.Ended()
	}
	return s
}

// Snapshot returns the source's state with that of the copy in it.
func (e *Enumerator) Snapshot(n epoch.ID) (source.Cut, error) {
	e.asking = false
	if e.first == 0 {
		e.first = n
	}
	cut := source.Cut{State: e.cfg.State(e.cfg.Assigner.Snapshot(n).Inline())}
	if e.cfg.Objects != nil {
		cut.Objects = e.cfg.Objects()
	}
	return cut, nil
}

// Receive takes a reader's message about the copy.
func (e *Enumerator) Receive(reader int, payload []byte) error {
	return e.cfg.Assigner.Receive(reader, payload)
}

// Confirm lets the log follow chunks whose rows are committed. The log itself is confirmed by its reader.
func (e *Enumerator) Confirm(n epoch.ID, _ source.Cut) { e.cfg.Assigner.Committed(n) }

// Durable tells the source that no epoch names any more what earlier attempts have made.
func (e *Enumerator) Durable(n epoch.ID) {
	if e.cfg.Durable != nil && e.first != 0 && n >= e.first {
		e.cfg.Durable()
	}
}

// Keep has the source keep what savepoints need, if it forgets anything.
func (e *Enumerator) Keep(ctx context.Context, taking epoch.ID, all []epoch.ID) error {
	if e.cfg.Keep == nil {
		return nil
	}
	return e.cfg.Keep(ctx, taking, all)
}

// Drain lets a copy under way end; the log has no end of its own.
func (e *Enumerator) Drain(context.Context) error {
	e.draining.Store(true)
	Token(e.drained)
	return nil
}

// standing is what an enumerator reports; how fast it goes on from there depends on when it is asked.
type standing struct {
	report *report.Enumerator
	paces  map[string]Pace
}

// publish makes the present state what Report returns.
func (e *Enumerator) publish() {
	c := e.cfg.Assigner.Counts()
	r := &report.Enumerator{
		Connector: e.cfg.Connector, Assignment: report.AllAssigned,
		Assigned: report.ExactOf(c.Completed + c.Running), HandedOut: report.ExactOf(c.Assigned), Completed: report.ExactOf(c.Completed), Running: report.ExactOf(c.Running),
		PreparedUnsent: report.ExactOf(c.Prepared), TablesNotChunked: report.ExactOf(c.Unsplit),
	}
	switch {
	case e.cfg.Assigner.Lifecycle() == cdc.Snapshot:
		r.Assignment = report.Assigning
	case c.Completed == 0:
		r.Assignment = report.NotApplicable
	}
	active, more := e.cfg.Assigner.Active(report.MaxActive)
	for _, a := range active {
		r.Active = append(r.Active, report.Split{ID: a.ID, Table: a.Table, Low: report.UnsupportedOf[string]()})
	}
	r.ActiveTruncated = more
	for _, f := range e.cfg.Assigner.Newest(report.MaxRead) {
		s := report.Split{ID: f.ID, Table: f.Table, Low: report.UnsupportedOf[string]()}
		if text, err := e.cfg.Watermark(f.Mark); err == nil && len(text) <= longestMark {
			s.High = report.ExactOf(text)
		}
		r.Read = append(r.Read, s)
	}
	now, paces := time.Now(), make(map[string]Pace)
	for _, t := range e.cfg.Assigner.Progress() {
		if t.Lifecycle == cdc.Snapshot {
			paces[t.Name] = e.paces[t.Name].See(now, t.Rows)
		}
		one := report.Table{Name: t.Name, Lifecycle: report.Lifecycle(t.Lifecycle.String()), Rows: report.ExactOf(t.Rows)}
		if s := (report.Splits{Completed: t.Chunks, Running: t.Running, Prepared: t.Prepared, Cut: t.Split}); s != (report.Splits{Cut: true}) {
			one.Splits = &s
		}
		r.Tables = append(r.Tables, one)
	}
	e.paces = paces
	e.latest.Store(&standing{r, paces})
}

// Report returns what is captured and what is not.
func (e *Enumerator) Report() report.Enumerator {
	latest := e.latest.Load()
	r, now := *latest.report, time.Now()
	r.Tables = slices.Clone(r.Tables)
	for i := range r.Tables {
		if p, ok := latest.paces[r.Tables[i].Name]; ok {
			r.Tables[i].Rate = p.Rate(now)
		}
	}
	if e.cfg.Waits != nil {
		r.Waits = e.cfg.Waits()
	}
	if e.cfg.Outside != nil {
		r.Tables = append(r.Tables, e.cfg.Outside()...)
	}
	return r
}

// Close ends the goroutines.
func (e *Enumerator) Close() error {
	e.cancel()
	e.done.Wait()
	return nil
}

// Token puts a token into a channel that holds one, unless it has it: whoever looks later finds at least one.
func Token(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
