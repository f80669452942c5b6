package mesh

import (
	"context"
	"errors"
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

// DurableFrom waits until the head names a durable epoch with this id or a later one, and returns that head.
func (r *Records) DurableFrom(ctx context.Context, name string, id uint64) (job.Head, error) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		h, err := r.Now(ctx, name)
		switch {
		case err == nil && h.Durable != nil && uint64(h.Durable.Epoch) >= id:
			return h, nil
		case err == nil && h.Phase.AtRest():
			return h, fmt.Errorf("job %s is %s: %s %s", name, h.Phase, h.Reason.Code, h.Reason.Text)
		}
		select {
		case <-ctx.Done():
			return h, fmt.Errorf("wait for epoch %d of job %s: %w (phase %s, reason %s %s)",
				id, name, errors.Join(ctx.Err(), err), h.Phase, h.Reason.Code, h.Reason.Text)
		case <-tick.C:
		}
	}
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
