package coordinator

import (
	"time"

	"weir.dev/weir/pkg/config"
)

// Config is what a coordinator can be told.
type Config struct {
	// Lease is the age at which leases expire that are not renewed: 3 s on one server; 12 s on a cluster, where the
	// loss of a server silences the bus for up to 9 s. All processes of a mesh follow the one that made the bucket.
	Lease config.Duration `yaml:"lease" min:"1s" max:"5m" doc:"Age at which a lease that is not renewed expires."`
	// Replicas of registry, leases, facts and state: 1 on one server, 3 on a cluster.
	Replicas int `yaml:"replicas" min:"1" max:"5" doc:"Replicas of everything that must survive: 1 or 3."`
	// Probe is how often data streams are looked at, Ping how often the processes of running jobs are asked whether they
	// live.
	Probe config.Duration `yaml:"probe" min:"100ms" max:"1m" doc:"Time between looks at the data streams."`
	Ping  config.Duration `yaml:"ping" min:"50ms" max:"1m" doc:"Time between liveness requests to a process."`
	// Memory keeps state and events in memory: for tests only.
	Memory bool `yaml:"-"`
}

// Default is the configuration for one server.
func Default() Config {
	return Config{
		Lease: config.Duration(3 * time.Second), Replicas: 1,
		Probe: config.Duration(time.Second), Ping: config.Duration(250 * time.Millisecond),
	}
}
