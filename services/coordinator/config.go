package coordinator

import (
	"time"

	"weir.dev/weir/pkg/config"
	"weir.dev/weir/pkg/fault"
)

// Config is what a coordinator can be told.
type Config struct {
	// Lease is the age at which leases expire that are not renewed. Zero follows the servers found: 3 s on one; 12 s on a
	// cluster, where the loss of a server silences the bus for up to 9 s. All processes of a mesh follow the bucket.
	Lease config.Duration `yaml:"lease" min:"0s" max:"5m" doc:"Age at which a lease that is not renewed expires, at least 1s; 0s is 3s on one server and 12s on a cluster."`
	// Replicas of registry, leases, facts and state. Zero follows the servers found: 1 on one, 3 on a cluster.
	Replicas int `yaml:"replicas" min:"0" max:"5" doc:"Replicas of everything that must survive; 0 is 1 on one server and 3 on a cluster."`
	// Probe is how often data streams are looked at, Ping how often the processes of running jobs are asked whether they
	// live.
	Probe config.Duration `yaml:"probe" min:"100ms" max:"1m" doc:"Time between looks at the data streams."`
	Ping  config.Duration `yaml:"ping" min:"50ms" max:"1m" doc:"Time between liveness requests to a process."`
	// Memory keeps state and events in memory: for tests only.
	Memory bool `yaml:"-"`
}

// Validate checks what the tags cannot say.
func (c *Config) Validate() []fault.Problem {
	if c.Lease != 0 && c.Lease.Std() < time.Second {
		return []fault.Problem{{Path: "lease", What: "this is less than 1s"}}
	}
	return nil
}

// Default follows the servers found.
func Default() Config {
	return Config{
		Probe: config.Duration(time.Second), Ping: config.Duration(250 * time.Millisecond),
	}
}
