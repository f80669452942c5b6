package node

import (
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/plan"
)

// hosted is what `nats micro stats` shows of a node beside its counters.
type hosted struct {
	// Incarnation changes when a lease was lost and taken again; empty while there is no lease.
	Incarnation string `json:"incarnation,omitempty"`
	// Subtasks are those that run, by job.
	Subtasks map[string][]string `json:"subtasks,omitempty"`
	// At is when the node looked.
	At time.Time `json:"at,omitzero"`
}

// show is the newest look, swapped by the node's loop and read by the bus.
type show struct{ at atomic.Pointer[hosted] }

func (s *show) now() any {
	if h := s.at.Load(); h != nil {
		return h
	}
	return hosted{}
}

// discovery is how the node answers NATS micro discovery. What may change is in its statistics.
func (c Config) discovery(s *show) bus.Discovery {
	service := c.Service
	if service == "" {
		service = "node"
	}
	return bus.Discovery{
		Service: service, Version: c.Version, HTTP: c.HTTP, Now: s.now,
		Metadata: map[string]string{"capabilities": strings.Join(c.capabilities(), " ")},
	}
}

// look notes what runs now; it belongs to the loop.
func (n *node) look() {
	h := hosted{Incarnation: n.me.Incarnation, At: time.Now().UTC()}
	for name, s := range n.jobs {
		if len(s.subtasks) == 0 {
			continue
		}
		ids := make([]plan.SubtaskID, 0, len(s.subtasks))
		for _, t := range s.subtasks {
			ids = append(ids, t.ID())
		}
		slices.SortFunc(ids, plan.SubtaskID.Compare)
		if h.Subtasks == nil {
			h.Subtasks = make(map[string][]string)
		}
		for _, id := range ids {
			h.Subtasks[name] = append(h.Subtasks[name], id.String())
		}
	}
	n.show.at.Store(&h)
}
