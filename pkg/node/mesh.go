package node

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/registry"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/pkg/task"
)

// Heads reads head records.
type Heads interface {
	// Watch follows the heads of all jobs until stop is called; it may miss any of them.
	Watch(ctx context.Context) (updates <-chan bus.Update, stop func())
	// Heads reads all heads as one snapshot.
	Heads(ctx context.Context, names ...string) (map[string]job.View, error)
	// Head reads one; a missing record is a view with a nil head.
	Head(ctx context.Context, name string) (job.View, error)
}

// Records reads what heads name.
type Records interface {
	Plan(ctx context.Context, ref job.PlanRef) (*plan.Deployment, error)
	Spec(ctx context.Context, name, digest string) (*spec.Job, error)
	Manifest(ctx context.Context, name string, ref epoch.Ref) (*epoch.Manifest, error)
}

// Mesh is what a node needs of the bus, in parts between which tests put faults.
type Mesh struct {
	Bus     task.Bus
	States  task.States
	Letters task.Letters
	Facts   task.Facts
	Heads   Heads
	Records Records
	// Holds gives names to subtasks. Optional.
	Holds func(by source.Identity) source.Hold
}

// meshOn is the real mesh.
func meshOn(conn *bus.Conn, reg *registry.Registry) Mesh {
	return Mesh{
		Bus: task.Conn{Conn: conn}, States: task.Conn{Conn: conn}, Letters: conn, Facts: conn,
		Heads: &heads{Registry: reg}, Records: reg, Holds: holds{reg}.of,
	}
}

// heads adds to the registry a watch without its handle, and reads all heads only when something has moved there.
type heads struct {
	*registry.Registry

	mu   sync.Mutex
	mark bus.Mark // from before all was read
	all  map[string]job.View
	at   time.Time
}

// markTimeout bounds the question whether something has moved; in a cluster only the leader of the registry answers it, the heads
// themselves every replica.
const markTimeout = 250 * time.Millisecond

// trustMark is for how long a registry in which nothing moves need not be read: nothing may rest on one answer of one server.
const trustMark = time.Minute

// Heads reads all heads as one snapshot, or says that it is still the one before. Nobody may change what it returns.
func (h *heads) Heads(ctx context.Context, names ...string) (map[string]job.View, error) {
	if len(names) > 0 {
		return h.Registry.Heads(ctx, names...)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	soon, cancel := context.WithTimeout(ctx, markTimeout)
	mark, err := h.Mark(soon)
	cancel()
	if err == nil && mark == h.mark && h.all != nil && now.Sub(h.at) < trustMark {
		return h.all, nil
	}
	all, rerr := h.Registry.Heads(ctx)
	if rerr != nil {
		return nil, rerr
	}
	if h.all = nil; err == nil {
		h.mark, h.all, h.at = mark, all, now
	}
	return all, nil
}

func (h *heads) Watch(ctx context.Context) (<-chan bus.Update, func()) {
	w := h.WatchHeads(ctx)
	return w.Updates(), w.Close
}

// records is what subtasks of a seat read.
type records struct {
	m Mesh
	// acted is what the seat has acted on.
	acted *atomic.Pointer[job.Order]
}

// Head reads a head that is not older than what the process has acted on: a server of a cluster may be late.
func (r records) Head(ctx context.Context, name string) (*job.Head, error) {
	for wait := 10 * time.Millisecond; ; wait *= 2 {
		v, err := r.m.Heads.Head(ctx, name)
		if err != nil {
			return nil, err
		}
		if acted := r.acted.Load(); acted == nil || !job.OrderOf(v).Below(*acted) {
			return v.Head, nil
		}
		if wait > time.Second {
			return nil, errOlder
		}
		if err := sleep(ctx, wait); err != nil {
			return nil, err
		}
	}
}

// errOlder: nothing may be decided on this reading.
var errOlder = fault.Mark(fault.Transient, errors.New("the head record that was read is older than the one acted on"))

func (r records) Manifest(ctx context.Context, name string, ref epoch.Ref) (*epoch.Manifest, error) {
	return r.m.Records.Manifest(ctx, name, ref)
}
