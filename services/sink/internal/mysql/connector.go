package mysql

import (
	"context"
	"fmt"

	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/sink/internal/stage"
	"weir.dev/weir/services/sink/internal/transact"
)

// Connector opens writers and committers for MySQL and MariaDB.
type Connector struct{}

// Level is TRANSACTIONAL in every mode: rows and ledger change in one transaction.
func (Connector) Level(spec.Sink) sink.Level { return sink.Transactional }

// OpenWriter stages on the bus; it does not touch the target.
func (Connector) OpenWriter(_ context.Context, cfg sink.Config) (sink.Writer, error) {
	my, err := configOf(cfg)
	if err != nil {
		return nil, err
	}
	return stage.OpenWriter(cfg, my.Allows(spec.AllowTruncate))
}

// OpenCommitter connects, ends what an older attempt left running and makes the ledger.
func (Connector) OpenCommitter(ctx context.Context, cfg sink.Config) (sink.Committer, error) {
	c, err := newCommitter(cfg)
	if err != nil {
		return nil, err
	}
	s, err := c.connect(ctx)
	if err == nil {
		if err = c.ledger.create(ctx, s); err == nil && cfg.Letters != nil {
			err = c.ledger.createLetters(ctx, s)
		}
		if err == nil {
			err = c.use(ctx, s)
		}
		err = translate(ctx, err, c.at)
	}
	if err != nil {
		err = c.fail(ctx, err)
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// newCommitter reads the configuration; nothing is connected yet.
func newCommitter(cfg sink.Config) (*Committer, error) {
	my, err := configOf(cfg)
	if err != nil {
		return nil, err
	}
	cfg.Letters = stage.Letters(cfg.Letters)
	c := &Committer{
		cfg: cfg, my: my, at: transact.Place{Sink: "sinks." + cfg.Sink.Name, Job: cfg.Job},
		ledger:  ledger{database: my.Database, job: cfg.Job, sink: cfg.Sink.Name},
		targets: make(map[version]*target),
	}
	for _, codec := range []**stage.Codec{&c.codec, &c.letterCodec} {
		if *codec, err = stage.NewCodec(); err != nil {
			return nil, err
		}
	}
	url, err := cfg.Resolve(my.URL.Raw())
	if err != nil {
		return nil, fmt.Errorf("resolve %s.url: %w", c.at.Sink, err)
	}
	if c.server, err = newServer(url, c.at); err != nil {
		return nil, err
	}
	c.at.Role = c.server.user
	return c, nil
}

func configOf(cfg sink.Config) (*spec.MySQLSink, error) {
	my, ok := cfg.Sink.Config.(*spec.MySQLSink)
	if !ok {
		return nil, fmt.Errorf("open sink %s: its configuration is a %T", cfg.Sink.Name, cfg.Sink.Config)
	}
	return my, nil
}
