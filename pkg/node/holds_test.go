package node

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/meshtest"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/registry"
	"weir.dev/weir/pkg/source"
)

func identity(job string) source.Identity {
	return source.Identity{Job: job, Life: "l", Fence: 1, Subtask: plan.SubtaskID{Vertex: "db"}}
}

func TestMain(m *testing.M) { meshtest.Main(m) }

// A name is one subtask's at a time: the second hears who has it, until the first gives it back, or loses it.
func TestHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := meshtest.StartServer(t, meshtest.ServerOptions{})
		defer srv.Shutdown()
		conn, err := bus.Connect(t.Context(), bus.Options{Name: "test", InProcess: srv})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		const ttl = 3 * time.Second
		if err := conn.EnsureBase(t.Context(), bus.BaseConfig{LeaseTTL: ttl, MemoryState: true}); err != nil {
			t.Fatal(err)
		}
		reg, err := registry.Open(t.Context(), conn, ttl)
		if err != nil {
			t.Fatal(err)
		}
		all := holds{reg}
		one, two := identity("one"), identity("two")
		held, release, err := all.of(one)(t.Context(), "server-id/x:1/5")
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(10 * ttl) // of the bubble: it is renewed
		_, _, err = all.of(two)(t.Context(), "server-id/x:1/5")
		if e, ok := errors.AsType[*source.HeldError](err); !ok || e.By != one {
			t.Errorf("a name that is held: %v", err)
		}
		if held.Err() != nil {
			t.Errorf("held no more: %v", held.Err())
		}
		release()
		if held.Err() == nil {
			t.Error("released, and still held")
		}
		held, release, err = all.of(two)(t.Context(), "server-id/x:1/5")
		if err != nil {
			t.Fatal(err)
		}
		conn.Close() // nobody renews it
		select {
		case <-held.Done():
		case <-time.After(2 * ttl):
			t.Error("not lost in twice its time")
		}
		release()
	})
}
