package mesh

import (
	"context"
	"fmt"
	"testing"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/registry"
)

// leaseTTL is what processes use on one server; here it is only read.
const leaseTTL = 3 * time.Second

// Records reads a mesh's records from the bus, as any program may.
type Records struct {
	*registry.Registry

	// Bus is the connection; it reopens itself when the server comes back.
	Bus *bus.Conn
}

// Records opens the records; they are closed with the test. The registry must be there, that is a coordinator ready.
func (m *Mesh) Records(tb testing.TB) *Records {
	tb.Helper()
	conn, err := bus.Connect(tb.Context(), bus.Options{URL: m.URL, Name: "itest"})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(conn.Close)
	reg, err := registry.Open(tb.Context(), conn, leaseTTL)
	if err != nil {
		tb.Fatal(err)
	}
	return &Records{Registry: reg, Bus: conn}
}

// brief bounds one read, so that a server that is down costs a poll and not a test.
const brief = 500 * time.Millisecond

// Now reads a job's head record. It is an error when the bus does not answer at once.
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
