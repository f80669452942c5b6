package cdcpostgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel/metric"

	"weir.dev/weir/pkg/cdc"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/cdc-postgres/internal/core"
	"weir.dev/weir/services/cdc-postgres/internal/pgrepl"
)

// Connector reads the log of PostgreSQL databases. One value serves every job of a process; the zero value measures
// nothing.
type Connector struct{ metrics *metrics }

var _ source.Connector = Connector{}

// New makes a connector whose sources are measured by meter.
func New(meter metric.Meter) (Connector, error) {
	m, err := newMetrics(meter)
	return Connector{m}, err
}

// opened is what both halves and Release begin with.
type opened struct {
	cfg    source.Config
	source *spec.PostgresSource
	target *pgrepl.Target
	veil   *veil
	where  string
}

func open(cfg source.Config) (*opened, error) {
	where := "sources." + cfg.Source.Name
	pg, ok := cfg.Source.Config.(*spec.PostgresSource)
	if !ok {
		return nil, fmt.Errorf("%s: a source of type %q was given to the PostgreSQL connector: %w", where, cfg.Source.Type, fault.Bug)
	}
	url, err := cfg.Resolve(pg.URL.Raw())
	if err != nil {
		return nil, fmt.Errorf("%s.url: %w", where, err)
	}
	target, err := pgrepl.NewTarget(url, where, core.Session{
		Job: cfg.Job, Life: cfg.Life, Vertex: string(cfg.Subtask.Vertex), Fence: cfg.Fence,
	})
	if err != nil {
		return nil, err
	}
	v, err := newVeil(cfg, pg, where)
	if err != nil {
		return nil, err
	}
	return &opened{cfg: cfg, source: pg, target: target, veil: v, where: where}, nil
}

// OpenEnumerator checks the server, makes publication and slot where they are wanted and missing, and checks those that
// the state names. It waits for transactions in progress when it makes a slot.
func (Connector) OpenEnumerator(ctx context.Context, cfg source.Config) (source.Enumerator, error) {
	o, err := open(cfg)
	if err != nil {
		return nil, err
	}
	conn, err := o.target.SQL(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	s := setup{opened: o, conn: conn}
	if err := s.run(ctx); err != nil {
		return nil, err
	}
	return startEnumerator(ctx, &s), nil
}

// OpenReader proves that the server can be reached. What is read, the enumerator says; its state is restored there too.
func (c Connector) OpenReader(ctx context.Context, cfg source.Config) (source.Reader, error) {
	o, err := open(cfg)
	if err != nil {
		return nil, err
	}
	conn, err := o.target.SQL(ctx)
	if err != nil {
		return nil, err
	}
	if err := conn.Close(ctx); err != nil {
		return nil, o.target.Fault(err)
	}
	m := c.metrics
	if m == nil {
		m = none()
	}
	p := newProgress(m.of(cfg.Job, cfg.Source.Name), cfg.Subtask.Index != cdc.LogReader)
	return newReader(cfg, o, startLink(ctx, o.target, cfg.Logger, p), p), nil
}

// Release drops the slots and the publication that this life of the job made. Readers of this life that are still
// connected are ended first.
func (Connector) Release(ctx context.Context, cfg source.Config) error {
	o, err := open(cfg)
	if err != nil {
		return err
	}
	if o.source.Slot != "" && o.source.Publication != "" {
		return nil
	}
	conn, err := o.target.SQL(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if o.source.Slot == "" {
		if err := o.dropSlots(ctx, conn, func(string) bool { return true }, true); err != nil {
			return err
		}
	}
	if o.source.Publication == "" {
		return o.target.DropPublication(ctx, conn, o.owner().Publication())
	}
	return nil
}

// dropSlots drops the slots of this life that are wanted gone. With own, readers of this very attempt are ended too.
func (o *opened) dropSlots(ctx context.Context, conn *pgx.Conn, gone func(name string) bool, own bool) error {
	slots, err := o.target.Slots(ctx, conn)
	if err != nil {
		return err
	}
	for _, s := range slots {
		if !o.owner().Owns(s.Name) || !gone(s.Name) {
			continue
		}
		if err := o.target.DropSlot(ctx, conn, s.Name, own); err != nil {
			return err
		}
	}
	return nil
}

// owner is who makes slots and publications.
func (o *opened) owner() core.Owner {
	return core.Owner{Job: o.cfg.Job, Source: o.cfg.Source.Name, Life: o.cfg.Life}
}

// captures reports whether the source wants a table. Weir's own tables never are.
func (o *opened) captures(name pgrepl.TableName) bool {
	return !strings.HasPrefix(name.Name, "weir_") && o.source.Tables.Match(name.Schema, name.Name)
}
