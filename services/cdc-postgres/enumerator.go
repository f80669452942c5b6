package cdcpostgres

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/report"
	"weir.dev/weir/pkg/source"
)

// enumerator hands the log to one reader and keeps an eye on the slot. Its loop runs no SQL; the keeper does.
type enumerator struct {
	state  []byte // never changes within an attempt
	assign []byte
	told   bool
	keeper *keeper
	cancel context.CancelFunc
	done   sync.WaitGroup
}

func startEnumerator(ctx context.Context, s *setup) source.Enumerator {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	k := newKeeper(s)
	e := &enumerator{keeper: k, cancel: cancel}
	e.state = mustMarshal(s.state)
	e.assign = mustMarshal(assignment{enumeratorState: s.state, Log: s.log})
	e.done.Go(func() { k.run(ctx) })
	s.cfg.Logger.InfoContext(ctx, "source set up", slog.String("slot", s.state.Slot), slog.String("publication", s.state.Publication),
		slog.Int("tables", len(s.state.Tables)), slog.Bool("restored", s.restored))
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

// Poll hands out the log once, then waits; it ends with an error when the slot is lost.
func (e *enumerator) Poll(ctx context.Context, out source.Directory, wake <-chan struct{}) (source.Status, error) {
	if !e.told {
		if err := out.Tell(ctx, logReader, e.assign); err != nil {
			return source.Status{}, fmt.Errorf("assign the log: %w", err)
		}
		e.told = true
		return source.Status{}, nil
	}
	select {
	case <-wake:
	case <-e.keeper.failed:
		return source.Status{}, e.keeper.err
	case <-e.keeper.drained:
	case <-ctx.Done():
		return source.Status{}, context.Cause(ctx)
	}
	return source.Status{Drained: e.keeper.drain.Load()}, nil
}

// Snapshot returns the names of slot and publication, and what the server was.
func (e *enumerator) Snapshot(epoch.ID) (source.Cut, error) { return source.Cut{State: e.state}, nil }

// Receive refuses every message: the reader of the log has nothing to say.
func (e *enumerator) Receive(reader int, _ []byte) error {
	return fmt.Errorf("receive from reader %d: no message is expected", reader)
}

// Confirm does nothing; the reader confirms the log.
func (e *enumerator) Confirm(epoch.ID, source.Cut) {}

// Durable drops the slots of attempts that never had a durable epoch.
func (e *enumerator) Durable(epoch.ID) { token(e.keeper.durable) }

// Drain has nothing to finish: the log has no end of its own.
func (e *enumerator) Drain(context.Context) error {
	e.keeper.stop()
	return nil
}

// Report returns what is captured and what is not.
func (e *enumerator) Report() report.Enumerator {
	r := report.Enumerator{
		Connector: connectorName, Assignment: "NOT_APPLICABLE",
		Assigned: report.UnsupportedOf[uint64](), Completed: report.UnsupportedOf[uint64](), Running: report.UnsupportedOf[uint64](),
		PreparedUnsent: report.UnsupportedOf[uint64](), TablesNotChunked: report.UnsupportedOf[uint64](),
	}
	for _, t := range e.keeper.state.Tables {
		r.Tables = append(r.Tables, report.Table{Name: t.String(), Lifecycle: report.Incremental})
	}
	for _, t := range e.keeper.tables() {
		r.Tables = append(r.Tables, report.Table{Name: t.name.String(), Lifecycle: report.Unknown, Note: t.why})
	}
	return r
}

// Close ends the connection.
func (e *enumerator) Close() error {
	e.cancel()
	e.done.Wait()
	return nil
}
