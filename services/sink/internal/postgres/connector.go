package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/sink/internal/core"
	"weir.dev/weir/services/sink/internal/stage"
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
	w := &writer{at: place{sink: "sinks." + cfg.Sink.Name}, mode: cfg.Sink.Mode, truncate: pg.Allows(spec.AllowTruncate), dlq: cfg.Sink.DLQ}
	fold := stage.Upserts
	if cfg.Sink.Mode != spec.Upsert {
		fold = stage.ChangesOf(cfg.Sink.Mode, cfg.Subtask.Index)
	}
	if w.Writer, err = stage.NewWriter(cfg.Store, fold); err != nil {
		return nil, err
	}
	return w, nil
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
	c := &Committer{
		cfg: cfg, pg: pg, codec: codec,
		at:      place{sink: "sinks." + cfg.Sink.Name, job: cfg.Job},
		ledger:  ledger{schema: orElse(pg.Schema, defaultSchema), job: cfg.Job, sink: cfg.Sink.Name},
		targets: make(map[rows.TableID]*target),
	}
	if c.url, err = cfg.Resolve(pg.URL.Raw()); err != nil {
		return nil, fmt.Errorf("resolve %s.url: %w", c.at.sink, err)
	}
	if login, err := pgx.ParseConfig(c.url); err == nil { // connect says what is wrong with it
		c.at.role = login.User
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

// writer adds to staging what the mode forbids, so that a job stops where the row is, not an epoch later.
type writer struct {
	*stage.Writer
	at       place
	mode     spec.Mode
	truncate bool
	dlq      bool
}

// Write checks the batch against the mode and stages it.
func (w *writer) Write(ctx context.Context, b rows.Batch) error {
	if err := w.check(&b); err != nil {
		return err
	}
	return w.Writer.Write(ctx, &b)
}

func (w *writer) check(b *rows.Batch) error {
	table := string(b.Schema().Table())
	where := w.at.sink + ", table " + table
	switch w.mode {
	case spec.Upsert:
		if len(b.Schema().Key()) == 0 {
			return fault.New(fault.SinkNoKey, where, "the source declares no primary key or usable unique index for it")
		}
		if w.truncate {
			return nil
		}
		for i := range b.NumRows() {
			if b.Op(i) == rows.OpTruncate {
				// Skipping it would be a silent difference between source and target.
				return fault.New(fault.SinkTruncateRefused, where, "TRUNCATE "+table)
			}
		}
	case spec.Append:
		if w.dlq {
			return nil // the committer puts such rows aside
		}
		if column, ok := core.Lacking(b); ok {
			return fault.New(fault.SinkPartialImage, where, "column "+column+" was not sent", "table", table)
		}
	case spec.Changelog:
	}
	return nil
}
