package drive

import (
	"log/slog"
	"testing"

	"go.opentelemetry.io/otel/metric/noop"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/rows"
	pkgsink "weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/sink"
)

// Connector is that of a kind of sink.
func Connector(tb testing.TB, kind string) pkgsink.Connector {
	tb.Helper()
	all, err := sink.Connectors(noop.NewMeterProvider().Meter(""))
	if err != nil {
		tb.Fatal(err)
	}
	return all[kind]
}

// Resolve takes a reference as its value.
func Resolve(ref string) (string, error) { return ref, nil }

// Config is that of an attempt of a sink with this fence, for its committer.
func Config(s spec.Sink, token fence.Token) pkgsink.Config {
	return pkgsink.Config{
		Identity: source.Identity{Job: "j", Life: "lifeoftests", Fence: token, Subtask: plan.SubtaskID{Vertex: plan.CommitterOf(s.Name)}},
		Sink:     s, Resolve: Resolve, Writers: 1, Store: &Memory{}, Logger: slog.New(slog.DiscardHandler),
	}
}

// Attempt is both halves of one sink. Last is the epoch that the target has.
type Attempt struct {
	Config    pkgsink.Config
	Writer    pkgsink.Writer
	Committer pkgsink.Committer
	Last      epoch.Ref

	t   testing.TB
	seq uint64
}

// Open opens both halves and claims.
func Open(tb testing.TB, cfg pkgsink.Config) *Attempt {
	tb.Helper()
	a := &Attempt{t: tb, Config: cfg}
	c := Connector(tb, cfg.Sink.Type)
	var err error
	if a.Committer, err = c.OpenCommitter(tb.Context(), cfg); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = a.Committer.Close() })
	cfg.Subtask = plan.SubtaskID{Vertex: plan.VertexID(cfg.Sink.Name)}
	if a.Writer, err = c.OpenWriter(tb.Context(), cfg); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = a.Writer.Close() })
	row, err := a.Committer.Claim(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	a.Last = row.Ref
	return a
}

// Stage stages batches as the next epoch.
func (a *Attempt) Stage(batches ...*rows.Batch) pkgsink.Commit {
	a.t.Helper()
	for _, b := range batches {
		if err := a.Writer.Write(a.t.Context(), *b); err != nil {
			a.t.Fatal(err)
		}
	}
	next := a.Last.Epoch + 1
	pieces, err := a.Writer.Stage(a.t.Context(), next)
	if err != nil {
		a.t.Fatal(err)
	}
	c := pkgsink.Commit{Ref: epoch.Ref{Epoch: next, Digest: "digest of " + next.String()}, Prev: a.Last}
	for _, p := range pieces {
		c.Staged = append(c.Staged, epoch.Staged{Epoch: next, Data: p.Data, Objects: p.Objects, Rows: p.Rows})
	}
	return c
}

// Try commits an epoch.
func (a *Attempt) Try(c pkgsink.Commit) error {
	a.t.Helper()
	_, err := a.Committer.Commit(a.t.Context(), c)
	if err == nil {
		a.Last = c.Ref
	}
	return err
}

// Epoch stages and commits.
func (a *Attempt) Epoch(batches ...*rows.Batch) {
	a.t.Helper()
	if err := a.Try(a.Stage(batches...)); err != nil {
		a.t.Fatal(err)
	}
}
