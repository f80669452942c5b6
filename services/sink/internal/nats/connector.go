package nats

import (
	"context"
	"fmt"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/sink/internal/stage"
)

// Connector opens writers and committers for a stream of events.
type Connector struct{}

// Level is ORDERED: each change once and in order, an epoch not in one step.
func (Connector) Level(spec.Sink) sink.Level { return sink.Ordered }

// OpenWriter stages images on the bus; it does not touch the target.
func (Connector) OpenWriter(_ context.Context, cfg sink.Config) (sink.Writer, error) {
	if _, err := configOf(cfg); err != nil {
		return nil, err
	}
	w, err := stage.NewWriter(cfg.Store, stage.ChangesOf(spec.Changelog, cfg.Subtask.Index))
	if err != nil {
		return nil, err
	}
	return &stage.Guard{Writer: w, Where: "sinks." + cfg.Sink.Name, Mode: spec.Changelog, DLQ: cfg.Sink.DLQ}, nil
}

// OpenCommitter connects, makes the stream where that is allowed, and proves that it can hold what the level promises.
func (Connector) OpenCommitter(ctx context.Context, cfg sink.Config) (sink.Committer, error) {
	target, err := configOf(cfg)
	if err != nil {
		return nil, err
	}
	codec, err := stage.NewCodec()
	if err != nil {
		return nil, err
	}
	c := &committer{cfg: cfg, target: target, where: "sinks." + cfg.Sink.Name, codec: codec, marks: markSubject(target.Prefix)}
	if c.conn, err = connect(ctx, cfg, target); err != nil {
		return nil, c.translate(ctx, err)
	}
	if c.outlet, err = c.open(ctx); err != nil {
		c.conn.Close()
		return nil, c.translate(ctx, err)
	}
	return c, nil
}

func (c *committer) open(ctx context.Context) (*bus.Outlet, error) {
	return c.conn.OpenOutlet(ctx, bus.OutletConfig{
		Stream: c.target.Stream, Prefix: c.target.Prefix, Create: c.target.Create, Replicas: c.target.Replicas,
		Note: "Weir: events of job " + c.cfg.Job + ", sink " + c.cfg.Sink.Name,
	})
}

// connect opens the sink's own connection to the target server.
func connect(ctx context.Context, cfg sink.Config, target *spec.NATSSink) (*bus.Conn, error) {
	where := "sinks." + cfg.Sink.Name
	url, err := cfg.Resolve(target.URL.Raw())
	if err != nil {
		return nil, fmt.Errorf("resolve %s.url: %w", where, err)
	}
	creds, err := cfg.Resolve(target.Creds.String())
	if err != nil {
		return nil, fmt.Errorf("resolve %s.creds: %w", where, err)
	}
	return bus.Connect(ctx, bus.Options{URL: url, Name: "weir-" + cfg.Job + "-" + cfg.Sink.Name, Creds: creds, Logger: cfg.Logger})
}

func configOf(cfg sink.Config) (*spec.NATSSink, error) {
	target, ok := cfg.Sink.Config.(*spec.NATSSink)
	if !ok {
		return nil, fmt.Errorf("open sink %s: its configuration is a %T", cfg.Sink.Name, cfg.Sink.Config)
	}
	return target, nil
}
