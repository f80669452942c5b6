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
	// Lease bounds how long this process trusts its lease; zero follows the mesh, and nothing makes it longer.
	Lease config.Duration `yaml:"lease" min:"0s" max:"5m" doc:"Longest that this process trusts its lease; 0s follows the mesh."`
}

// DefaultSettings follow the mesh.
func DefaultSettings() Settings { return Settings{Slots: 64} }

// handOver bounds the wait of a process that ends for others to take its subtasks: a leader that is there needs a few
// hundred milliseconds.
const handOver = 3 * time.Second

// silencer is a variable for benchmarks, no setting: "off" has nodes publish no reports.
const silencer = "BENCH_WEIR_REPORTS"

func silent(l config.Lookup) bool {
	if l.Env == nil {
		return false
	}
	v, _ := l.Env(silencer)
	return v == "off"
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
	patience := handOver
	if env.Bus.InProcess != nil {
		patience = 0 // the server and the leader end with this process
	}
	return Run(ctx, conn, Config{
		Node: env.Node, Slots: s.Slots, Lease: s.Lease.Std(), Version: app.Version(), HTTP: env.HTTP,
		Sources: offer.Sources, Sinks: offer.Sinks, HandOver: patience, Silent: silent(env.Lookup),
		Lookup: env.Lookup, Logger: env.Telemetry.Logger, Ready: env.Ready,
		Meter: env.Telemetry.Meter, Tracer: env.Telemetry.Tracer,
		Service: env.Service, Check: func(name string, check func() error) func() { return env.Health.Ready(name, check) },
	})
}
