package cdcpostgres

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"weir.dev/weir/pkg/cdc"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/report"
	"weir.dev/weir/pkg/source"
)

// The kinds of messages to readers: their first byte.
const (
	tellSource = 's' // what is read: an enumeratorState without the copy's
	tellCopy   = 'c' // a message of the copy
	tellOver   = 'o' // no chunk will follow
)

// enumerator is the copy's assigner with hands. Its loop runs no SQL; planner and keeper do.
type enumerator struct {
	state    enumeratorState // without Copy it never changes within an attempt
	assigner *cdc.Assigner
	readers  int
	only     bool
	standing bool     // the log is to wait for its pause
	asking   bool     // for an epoch, that the copy waits for
	first    epoch.ID // the first epoch that has this attempt's state
	told     bool     // what is read
	over     bool     // and that no chunk follows
	planner  *planner
	keeper   *keeper
	latest   atomic.Pointer[report.Enumerator]
	cancel   context.CancelFunc
	done     sync.WaitGroup
}

func startEnumerator(ctx context.Context, s *setup) source.Enumerator {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	e := &enumerator{
		state: s.state, assigner: s.assigner, readers: s.cfg.Readers, only: s.mode() == cdc.Only, standing: s.standing, cancel: cancel,
		keeper: newKeeper(s), planner: newPlanner(s.target, s.cfg.Logger, s.state.Tables),
	}
	e.state.Copy = nil
	e.publish()
	e.done.Go(func() { e.keeper.run(ctx) })
	e.done.Go(func() { e.planner.run(ctx) })
	s.cfg.Logger.InfoContext(ctx, "source set up", slog.String("slot", s.state.Slot), slog.String("publication", s.state.Publication),
		slog.Int("tables", len(s.state.Tables)), slog.Bool("restored", s.restored), slog.String("lifecycle", e.assigner.Lifecycle().String()))
	return e
}

// mustMarshal writes values of this package's own types, which always can be.
func mustMarshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("cdcpostgres: state cannot be written: " + err.Error())
	}
	return b
}

// Poll does what the copy wants done, then waits for answers; it ends with an error when the slot is lost.
func (e *enumerator) Poll(ctx context.Context, out source.Directory, wake <-chan struct{}) (source.Status, error) {
	if err := e.introduce(ctx, out); err != nil {
		return source.Status{}, err
	}
	for {
		if err := e.act(ctx, out); err != nil {
			return source.Status{}, err
		}
		if e.assigner.Waits() && !e.asking {
			e.asking = true
			return e.status(), nil
		}
		select {
		case <-wake:
			return e.status(), nil
		case <-e.planner.news:
			answers, err := e.planner.take()
			for _, a := range answers {
				if err == nil {
					err = a(e.assigner)
				}
			}
			if err != nil {
				return source.Status{}, err
			}
		case <-e.keeper.failed:
			return source.Status{}, e.keeper.err
		case <-e.keeper.drained:
			if err := e.act(ctx, out); err != nil {
				return source.Status{}, err
			}
			return e.status(), nil
		case <-ctx.Done():
			return source.Status{}, context.Cause(ctx)
		}
	}
}

// introduce tells every reader once what is read.
func (e *enumerator) introduce(ctx context.Context, out source.Directory) error {
	if e.told {
		return nil
	}
	read := e.state
	read.Standing = e.standing
	message := append([]byte{tellSource}, mustMarshal(read)...)
	for i := range e.readers {
		if err := out.Tell(ctx, i, message); err != nil {
			return fmt.Errorf("tell reader %d what is read: %w", i, err)
		}
	}
	e.told = true
	return nil
}

// act does the assigner's effects.
func (e *enumerator) act(ctx context.Context, out source.Directory) error {
	for _, effect := range e.assigner.Effects() {
		t, ok := effect.(cdc.Tell)
		if !ok {
			e.planner.ask(effect)
			continue
		}
		if err := out.Tell(ctx, t.Reader, append([]byte{tellCopy}, t.Payload...)); err != nil {
			return fmt.Errorf("tell reader %d of the copy: %w", t.Reader, err)
		}
	}
	if !e.over && e.ending() {
		for i := range e.readers {
			if err := out.Tell(ctx, i, []byte{tellOver}); err != nil {
				return fmt.Errorf("tell reader %d that the copy is over: %w", i, err)
			}
		}
		e.over = true
	}
	e.publish()
	return nil
}

// ending reports whether the source comes to its end and has no more chunks to give.
func (e *enumerator) ending() bool {
	return (e.keeper.drain.Load() || e.only) && e.assigner.Lifecycle() != cdc.Snapshot
}

func (e *enumerator) status() source.Status {
	s := source.Status{Input: e.asking, Drained: e.over}
	if e.only {
		s.Drained = e.assigner.Ended()
	}
	return s
}

// Snapshot returns the names of slot and publication, what the server was, and where the copy is.
func (e *enumerator) Snapshot(n epoch.ID) (source.Cut, error) {
	e.asking = false
	if e.first == 0 {
		e.first = n
	}
	s := e.state
	s.Copy = e.assigner.Snapshot(n).Inline()
	return source.Cut{State: mustMarshal(s), Objects: spooled(e.assigner.Spools(), e.keeper.where)}, nil
}

// Receive takes a reader's message about the copy.
func (e *enumerator) Receive(reader int, payload []byte) error {
	return e.assigner.Receive(reader, payload)
}

// Confirm lets the log follow chunks whose rows are committed. The log itself is confirmed by its reader.
func (e *enumerator) Confirm(n epoch.ID, _ source.Cut) { e.assigner.Committed(n) }

// Durable drops what no epoch names any more: the slots of attempts that never had a durable one, and what the state of this
// one has left behind.
func (e *enumerator) Durable(n epoch.ID) {
	if e.first != 0 && n >= e.first {
		token(e.keeper.durable)
	}
}

// Drain lets a copy under way end; the log has no end of its own.
func (e *enumerator) Drain(context.Context) error {
	e.keeper.stop()
	return nil
}

// publish makes the present state what Report returns.
func (e *enumerator) publish() {
	c := e.assigner.Counts()
	r := &report.Enumerator{
		Connector: connectorName, Assignment: "COMPLETED",
		Assigned: report.ExactOf(c.Assigned), Completed: report.ExactOf(c.Completed), Running: report.ExactOf(c.Running),
		PreparedUnsent: report.ExactOf(c.Prepared), TablesNotChunked: report.ExactOf(c.Unsplit),
	}
	switch {
	case e.assigner.Lifecycle() == cdc.Snapshot:
		r.Assignment = "ASSIGNING"
	case c.Completed == 0:
		r.Assignment = "NOT_APPLICABLE"
	}
	for _, t := range e.assigner.Progress() {
		r.Tables = append(r.Tables, report.Table{Name: t.Name, Lifecycle: report.Lifecycle(t.Lifecycle.String()), Rows: report.ExactOf(t.Rows)})
	}
	e.latest.Store(r)
}

// Report returns what is captured and what is not.
func (e *enumerator) Report() report.Enumerator {
	r := *e.latest.Load()
	r.Tables = slices.Clip(r.Tables)
	for _, t := range e.keeper.tables() {
		r.Tables = append(r.Tables, report.Table{Name: t.name.String(), Lifecycle: report.Unknown, Note: t.why})
	}
	return r
}

// Close ends the connections.
func (e *enumerator) Close() error {
	e.cancel()
	e.done.Wait()
	return nil
}
