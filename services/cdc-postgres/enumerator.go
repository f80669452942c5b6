package cdcpostgres

import (
	"context"
	"encoding/json"
	"log/slog"

	"weir.dev/weir/pkg/cdc"
	"weir.dev/weir/pkg/cdc/halves"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/services/cdc-postgres/internal/core"
)

// startEnumerator starts the half that plans the copy and looks after slot and publication. The state is the names of both, what
// the server was, and where the copy is.
func startEnumerator(ctx context.Context, s *setup) source.Enumerator {
	k := newKeeper(s)
	state := s.state // without Copy it never changes within an attempt
	state.Copy = nil
	read := state
	read.Standing = s.standing
	s.cfg.Logger.InfoContext(ctx, "source set up", slog.String("slot", state.Slot), slog.String("publication", state.Publication),
		slog.Int("tables", len(state.Tables)), slog.Bool("restored", s.restored), slog.String("lifecycle", s.assigner.Lifecycle().String()))
	return halves.StartEnumerator(ctx, halves.EnumeratorConfig{
		Connector: connectorName, Assigner: s.assigner, Readers: s.cfg.Readers, Only: halves.Mode(s.source.Snapshot) == cdc.Only,
		Introduction: mustMarshal(read),
		State: func(copied []byte) []byte {
			state.Copy = copied
			return mustMarshal(state)
		},
		Objects: func() []epoch.Object { return halves.Spooled(s.assigner.Spools()) },
		Durable: func() { halves.Token(k.durable) },
		Keep:    k.keep,
		Planner: newPlanner(s.target, s.cfg.Logger, state.Tables), Watch: k.run, Outside: k.tables, Watermark: core.Watermark, Logger: s.cfg.Logger,
	})
}

// mustMarshal writes values of this package's own types, which always can be.
func mustMarshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("cdcpostgres: state cannot be written: " + err.Error())
	}
	return b
}
