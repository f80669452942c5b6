package cdcpostgres

import (
	"context"
	"fmt"

	"weir.dev/weir/pkg/app"
	"weir.dev/weir/pkg/node"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/pkg/source/generator"
)

// Config is what a cdc-postgres service can be told.
type Config = node.Settings

// Default is the configuration for one server.
func Default() Config { return node.DefaultSettings() }

// Run hosts enumerators and readers of PostgreSQL, and of the generator, until ctx ends.
func Run(ctx context.Context, env app.Env, cfg Config) error {
	postgres, err := New(env.Telemetry.Meter)
	if err != nil {
		return fmt.Errorf("make instruments: %w", err)
	}
	return node.Serve(ctx, env, cfg, node.Offer{Sources: map[string]source.Connector{
		"postgres":     postgres,
		generator.Name: generator.Connector{},
	}})
}
