package cdcmysql

import (
	"context"

	"weir.dev/weir/pkg/app"
	"weir.dev/weir/pkg/node"
	"weir.dev/weir/pkg/source"
)

// Config is what a cdc-mysql service can be told.
type Config = node.Settings

// Default is the configuration for one server.
func Default() Config { return node.DefaultSettings() }

// Run hosts enumerators and readers of MySQL and MariaDB until ctx ends.
func Run(ctx context.Context, env app.Env, cfg Config) error {
	return node.Serve(ctx, env, cfg, node.Offer{Sources: map[string]source.Connector{"mysql": Connector{}}})
}
