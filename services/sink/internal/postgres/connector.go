package postgres

import (
	"cmp"
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/sink/internal/stage"
	"weir.dev/weir/services/sink/internal/transact"
)

// defaultSchema is where tables and ledger go when the spec names no schema.
const defaultSchema = "public"

// Connector opens writers and committers for PostgreSQL.
type Connector struct{}

// Level is TRANSACTIONAL in every mode: rows and ledger change in one transaction.
func (Connector) Level(spec.Sink) sink.Level { return sink.Transactional }

// OpenWriter stages on the bus; it does not touch the target.
func (Connector) OpenWriter(_ context.Context, cfg sink.Config) (sink.Writer, error) {
	pg, err := configOf(cfg)
	if err != nil {
		return nil, err
	}
	return stage.OpenWriter(cfg, pg.Allows(spec.AllowTruncate))
}

// OpenCommitter connects, ends what older attempts left running and proves that the target can commit.
func (Connector) OpenCommitter(ctx context.Context, cfg sink.Config) (sink.Committer, error) {
	pg, err := configOf(cfg)
	if err != nil {
		return nil, err
	}
	codec, err := stage.NewCodec()
	if err != nil {
		return nil, err
	}
	cfg.Letters = stage.Letters(cfg.Letters)
	c := &Committer{
		cfg: cfg, pg: pg, codec: codec,
		at:      transact.Place{Sink: "sinks." + cfg.Sink.Name, Job: cfg.Job},
		ledger:  ledger{schema: cmp.Or(pg.Schema, defaultSchema), job: cfg.Job, sink: cfg.Sink.Name},
		targets: make(map[rows.TableID]*target),
	}
	if c.url, err = cfg.Resolve(pg.URL.Raw()); err != nil {
		return nil, fmt.Errorf("resolve %s.url: %w", c.at.Sink, err)
	}
	if login, err := pgx.ParseConfig(c.url); err == nil { // connect says what is wrong with it
		c.at.Role = login.User
	}
	s, err := c.connect(ctx)
	if err == nil {
		err = c.probe(ctx, s)
	}
	if err != nil {
		if c.session != nil {
			c.session.close(ctx)
		}
		return nil, err
	}
	return c, nil
}

func configOf(cfg sink.Config) (*spec.PostgresSink, error) {
	pg, ok := cfg.Sink.Config.(*spec.PostgresSink)
	if !ok {
		return nil, fmt.Errorf("open sink %s: its configuration is a %T", cfg.Sink.Name, cfg.Sink.Config)
	}
	return pg, nil
}
