package cdcmysql

import (
	"context"
	"fmt"
	"strings"

	"weir.dev/weir/pkg/cdc"
	"weir.dev/weir/pkg/cdc/halves"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/cdc-mysql/internal/core"
	"weir.dev/weir/services/cdc-mysql/internal/server"
)

// Connector reads the logs of MySQL and MariaDB servers. One value serves every job of a process.
type Connector struct{}

var _ source.Connector = Connector{}

// opened is what both halves and Release begin with.
type opened struct {
	cfg    source.Config
	source *spec.MySQLSource
	target *server.Target
	veil   *halves.Veil
	where  string
}

func open(cfg source.Config) (*opened, error) {
	where := "sources." + cfg.Source.Name
	my, ok := cfg.Source.Config.(*spec.MySQLSource)
	if !ok {
		return nil, fmt.Errorf("%s: a source of type %q was given to the MySQL connector: %w", where, cfg.Source.Type, fault.Bug)
	}
	url, err := cfg.Resolve(my.URL.Raw())
	if err != nil {
		return nil, fmt.Errorf("%s.url: %w", where, err)
	}
	target, err := server.NewTarget(url, where, cfg.Job)
	if err != nil {
		return nil, err
	}
	veil, err := halves.NewVeil(&my.Columns, cfg.Resolve, where)
	if err != nil {
		return nil, err
	}
	return &opened{cfg: cfg, source: my, target: target, veil: veil, where: where}, nil
}

// captures reports whether the source wants a table. Weir's own tables never are.
func (o *opened) captures(name core.Name) bool {
	return !strings.HasPrefix(name.Table, "weir_") && o.source.Tables.Match(name.Schema, name.Table)
}

// OpenEnumerator checks the server and, in the first attempt, notes where its log is.
func (Connector) OpenEnumerator(ctx context.Context, cfg source.Config) (source.Enumerator, error) {
	o, err := open(cfg)
	if err != nil {
		return nil, err
	}
	session, err := o.target.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer session.Close()
	s := setup{opened: o, session: session}
	if err := s.run(ctx); err != nil {
		return nil, err
	}
	k := newKeeper(&s)
	state := s.state
	state.Resume = core.Point{}
	return halves.StartEnumerator(ctx, halves.EnumeratorConfig{
		Connector: connectorName, Assigner: s.assigner, Readers: cfg.Readers, Only: halves.Mode(o.source.Snapshot) == cdc.Only,
		Introduction: s.introduction(),
		State: func(copied []byte) []byte {
			state.Copy = copied
			return mustMarshal(state)
		},
		Objects: func() []epoch.Object { return halves.Spooled(s.assigner.Spools()) },
		Planner: newPlanner(o, &s.state), Watch: k.run, Outside: k.tables, Waits: o.target.Waits, Watermark: core.Watermark, Logger: cfg.Logger,
	}), nil
}

// OpenReader proves that the server can be reached. What is read, the enumerator says; its state is restored there too.
func (Connector) OpenReader(ctx context.Context, cfg source.Config) (source.Reader, error) {
	o, err := open(cfg)
	if err != nil {
		return nil, err
	}
	session, err := o.target.Open(ctx)
	if err != nil {
		return nil, err
	}
	session.Close()
	return newReader(cfg, o), nil
}

// Release has nothing to drop: a reader leaves nothing at the server.
func (Connector) Release(context.Context, source.Config) error { return nil }
