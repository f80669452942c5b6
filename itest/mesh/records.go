package mesh

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/registry"
)

// Records reads a mesh's records from the bus, as any program may.
type Records struct {
	*registry.Registry

	// Bus is the connection; it reopens itself when the server comes back.
	Bus *bus.Conn

	mu     sync.Mutex
	newest map[string]uint64 // revision of a job's head
}

// Records opens the records; they are closed with the test. The registry must be there, that is a coordinator ready.
func (m *Mesh) Records(tb testing.TB) *Records {
	tb.Helper()
	conn, err := bus.Connect(tb.Context(), bus.Options{URL: m.URL, Name: "itest"})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(conn.Close)
	reg, err := registry.Open(tb.Context(), conn, 0)
	if err != nil {
		tb.Fatal(err)
	}
	return &Records{Registry: reg, Bus: conn, newest: make(map[string]uint64)}
}

// brief bounds one read, so that a server that is down costs a poll and not a test.
const brief = 500 * time.Millisecond

// Now reads a job's head record. It is an error when the bus does not answer at once, or with an older one than before.
func (r *Records) Now(ctx context.Context, name string) (job.Head, error) {
	ctx, cancel := context.WithTimeout(ctx, brief)
	defer cancel()
	v, err := r.Head(ctx, name)
	if err != nil {
		return job.Head{}, err
	}
	if v.Head == nil {
		return job.Head{}, fmt.Errorf("job %s has no head record", name)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if v.Revision < r.newest[name] {
		return job.Head{}, fmt.Errorf("a server that is late answered: revision %d after %d", v.Revision, r.newest[name])
	}
	r.newest[name] = v.Revision
	return *v.Head, nil
}

// Holder names the node that runs the subtask of a vertex with index 0 in the present attempt; empty when the job has no
// plan now.
func (r *Records) Holder(ctx context.Context, h job.Head, vertex plan.VertexID) (string, error) {
	if h.Plan == nil {
		return "", nil
	}
	d, err := r.Plan(ctx, *h.Plan)
	if err != nil {
		return "", err
	}
	return d.Placements[plan.SubtaskID{Vertex: vertex}].Node, nil
}

// Leader names the node of the coordinator that holds the leader's lease; it is an error when none does.
func (r *Records) Leader(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, brief)
	defer cancel()
	leases, err := r.Bus.Bucket(ctx, bus.LeasesBucket)
	if err != nil {
		return "", err
	}
	e, err := leases.Get(ctx, bus.LeaderKey)
	if err != nil {
		return "", err
	}
	var owner struct{ Node string }
	if err := json.Unmarshal(e.Value, &owner); err != nil {
		return "", fmt.Errorf("decode the leader's lease: %w", err)
	}
	return owner.Node, nil
}
