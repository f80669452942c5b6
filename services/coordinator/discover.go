package coordinator

import (
	"weir.dev/weir/pkg/app"
	"weir.dev/weir/pkg/bus"
)

// leadership is what `nats micro stats` shows of a coordinator.
type leadership struct {
	Leading bool `json:"leading"`
}

// discovery is how this instance answers NATS micro discovery. Nobody asks for its liveness: the leader's lease tells it.
func (c *coordinator) discovery(http string) bus.Discovery {
	return bus.Discovery{
		Service: "coordinator", Version: app.Version(), HTTP: http,
		Metadata: map[string]string{"incarnation": c.owner.Incarnation},
		Now:      func() any { return leadership{Leading: c.view.leads()} },
	}
}

// leads reports whether this instance leads now.
func (v *view) leads() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.leading
}
