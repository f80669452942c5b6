package sink

import (
	"context"
	"fmt"
	"log/slog"

	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/sink/internal/core"
	"weir.dev/weir/services/sink/internal/files"
	"weir.dev/weir/services/sink/internal/iceberg"
	"weir.dev/weir/services/sink/internal/mysql"
	"weir.dev/weir/services/sink/internal/nats"
	"weir.dev/weir/services/sink/internal/postgres"
)

// Ledger is what a target remembers of one sink: the current row and the newest commits, oldest first.
type Ledger = core.Ledger

// Entry is one commit that a ledger remembers.
type Entry = core.Entry

// ReadLedger reads the ledger of a job's sink for people and audits; it changes nothing and takes no lock. A target that no
// attempt has claimed yet gives an empty ledger. kept is false for sinks that keep none (blackhole).
func ReadLedger(ctx context.Context, job string, s spec.Sink, resolve func(ref string) (string, error)) (l Ledger, kept bool, err error) {
	cfg := sink.Config{Identity: source.Identity{Job: job}, Sink: s, Resolve: resolve, Logger: slog.New(slog.DiscardHandler)}
	switch c := s.Config.(type) {
	case *spec.PostgresSink:
		url, err := resolve(c.URL.Raw())
		if err != nil {
			return Ledger{}, true, fmt.Errorf("resolve sinks.%s.url: %w", s.Name, err)
		}
		l, err = postgres.ReadLedger(ctx, url, c.Schema, job, s.Name)
		return l, true, err
	case *spec.MySQLSink:
		url, err := resolve(c.URL.Raw())
		if err != nil {
			return Ledger{}, true, fmt.Errorf("resolve sinks.%s.url: %w", s.Name, err)
		}
		l, err = mysql.ReadLedger(ctx, url, c.Database, job, s.Name)
		return l, true, err
	case *spec.FilesSink:
		path, err := resolve(c.Files.Path.String())
		if err != nil {
			return Ledger{}, true, fmt.Errorf("resolve sinks.%s.files.path: %w", s.Name, err)
		}
		l, err = files.ReadLedger(path)
		return l, true, err
	case *spec.IcebergSink:
		l, err = iceberg.ReadLedger(ctx, cfg)
		return l, true, err
	case *spec.NATSSink:
		l, err = nats.ReadLedger(ctx, cfg)
		return l, true, err
	}
	return Ledger{}, false, nil
}
