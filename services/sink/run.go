package sink

import (
	"context"
	"fmt"

	"weir.dev/weir/pkg/app"
	"weir.dev/weir/pkg/node"
)

// Config is what a sink service can be told.
type Config = node.Settings

// Default is the configuration for one server.
func Default() Config { return node.DefaultSettings() }

// Run hosts writers and committers until ctx ends.
func Run(ctx context.Context, env app.Env, cfg Config) error {
	sinks, err := Connectors(env.Telemetry.Meter)
	if err != nil {
		return fmt.Errorf("make instruments: %w", err)
	}
	return node.Serve(ctx, env, cfg, node.Offer{Sinks: sinks})
}
