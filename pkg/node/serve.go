package node

import (
	"context"
	"time"

	"weir.dev/weir/pkg/app"
	"weir.dev/weir/pkg/config"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/source"
)

// Settings are what every service that hosts subtasks can be told.
type Settings struct {
	// Slots bounds the subtasks of this process; raise it on a large machine, lower it to spread a job.
	Slots int `yaml:"slots" min:"1" max:"1024" doc:"Most subtasks that this process takes."`
	// Lease is the coordinator's lease: 3 s on one server, 12 s on a cluster.
	Lease config.Duration `yaml:"lease" min:"1s" max:"5m" doc:"Age at which a lease that is not renewed expires; the same as the coordinator's."`
}

// DefaultSettings are those for one server.
func DefaultSettings() Settings {
	return Settings{Slots: 64, Lease: config.Duration(3 * time.Second)}
}

// Offer is what a service brings to the mesh.
type Offer struct {
	Sources map[string]source.Connector
	Sinks   map[string]sink.Connector
}

// Serve is the whole of a service that hosts subtasks: it connects, waits for a coordinator, hosts what it offers and
// tells the process around it how it is. It returns when ctx ends.
func Serve(ctx context.Context, env app.Env, s Settings, offer Offer) error {
	conn, disconnect, err := env.Connect(ctx)
	if err != nil {
		return err
	}
	defer disconnect()
	return Run(ctx, conn, Config{
		Node: env.Node, Slots: s.Slots, Lease: s.Lease.Std(), Version: app.Version(), HTTP: env.HTTP,
		Sources: offer.Sources, Sinks: offer.Sinks,
		Lookup: env.Lookup, Logger: env.Telemetry.Logger, Ready: env.Ready,
		Meter: env.Telemetry.Meter, Tracer: env.Telemetry.Tracer,
		Service: env.Service, Check: func(name string, check func() error) func() { return env.Health.Ready(name, check) },
	})
}
