package cdcpostgres

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"weir.dev/weir/pkg/cdc"
	"weir.dev/weir/pkg/cdc/halves"
	"weir.dev/weir/pkg/config"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/meshtest"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/cdc-postgres/internal/core"
	"weir.dev/weir/services/cdc-postgres/internal/pgrepl"
)

// promptly is far above what an answer without the server takes, and far below every time-out towards it.
const promptly = 2 * time.Second

// ⚑ Barriers are answered from a loop that never runs SQL: with every statement hung in a server that never answers, both
// halves return from Poll when they are woken, snapshot, take confirmations and drains, report and close.
func TestLoopsAnswerWhileTheServerIsSilent(t *testing.T) {
	start := enumeratorState{Version: stateVersion, Slot: "weir_shop", Publication: "weir_shop", Start: 100}

	t.Run("reader", func(t *testing.T) {
		cfg, _, swallowed := silentSource(t)
		r, err := Connector{}.OpenReader(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Receive(append([]byte{halves.TellSource}, mustMarshal(start)...)); err != nil {
			t.Fatal(err)
		}
		<-swallowed // the session that is to read the log hangs in a statement
		answers(t, half{
			poll: func(wake <-chan struct{}) (source.Status, error) {
				var out kept
				return r.Poll(t.Context(), &out, wake)
			},
			snapshot: r.Snapshot, confirm: r.Confirm, drain: r.Drain, report: func() { r.Report() }, close: r.Close,
		})
	})
	t.Run("enumerator", func(t *testing.T) {
		cfg, url, swallowed := silentSource(t)
		target, err := pgrepl.NewTarget(url, "sources.db", core.Session{})
		if err != nil {
			t.Fatal(err)
		}
		o := &opened{cfg: cfg, source: cfg.Source.Config.(*spec.PostgresSource), target: target, where: "sources.db"}
		e := startEnumerator(t.Context(), &setup{opened: o, state: start, assigner: cdc.NewAssigner(cdc.Config{Mode: cdc.Never, Readers: 1}, nil)})
		<-swallowed // the heartbeat hangs
		answers(t, half{
			poll: func(wake <-chan struct{}) (source.Status, error) {
				return e.Poll(t.Context(), ignore{}, wake)
			},
			snapshot: e.Snapshot, confirm: e.Confirm, drain: e.Drain, report: func() { e.Report() }, close: e.Close,
		})
	})
}

// silentSource is the configuration of a source whose server never answers.
func silentSource(t *testing.T) (cfg source.Config, url string, swallowed <-chan struct{}) {
	t.Helper()
	url, swallowed = meshtest.SilentPostgres(t)
	return source.Config{
		Identity: source.Identity{Job: "shop", Life: "life", Fence: 3, Subtask: plan.SubtaskID{Vertex: "db"}},
		Source: spec.Source{Name: "db", Type: "postgres", Config: &spec.PostgresSource{
			Heartbeat: config.Duration(20 * time.Millisecond),
		}},
		Resolve: func(string) (string, error) { return url, nil },
		Readers: 1, Batch: 1 << 20, Logger: slog.New(slog.DiscardHandler),
	}, url, swallowed
}

// ignore is a directory whose readers hear nothing.
type ignore struct{}

func (ignore) Tell(context.Context, int, []byte) error { return nil }

// half is what a subtask's loop calls, of a reader or an enumerator.
type half struct {
	poll     func(wake <-chan struct{}) (source.Status, error)
	snapshot func(epoch.ID) (source.Cut, error)
	confirm  func(epoch.ID, source.Cut)
	drain    func(context.Context) error
	report   func()
	close    func() error
}

// answers does what a subtask's loop does for three epochs and an end.
func answers(t *testing.T, h half) {
	t.Helper()
	began := time.Now()
	for e := range epoch.ID(3) {
		if _, err := h.poll(readable()); err != nil {
			t.Fatal(err)
		}
		cut, err := h.snapshot(e + 1)
		if err != nil {
			t.Fatal(err)
		}
		h.report()
		h.confirm(e+1, cut)
	}
	if err := h.drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s, err := h.poll(readable()); err != nil {
		t.Errorf("poll after the drain: %+v, %v", s, err)
	}
	if err := h.close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > promptly {
		t.Errorf("three epochs and an end took %s", took)
	}
}
