package bus_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/meshtest"
	"weir.dev/weir/pkg/plan"
)

func TestMain(m *testing.M) { meshtest.Main(m) }

// patience bounds waits that end at once unless something is broken or the machine is very busy.
const patience = time.Minute

var (
	reader = plan.SubtaskID{Vertex: "db", Index: 0}
	writer = plan.SubtaskID{Vertex: "out", Index: 0}
)

func connect(t testing.TB, s *meshtest.Server) *bus.Conn {
	t.Helper()
	return connectAs(t, bus.Options{Name: "test", InProcess: s})
}

func connectAs(t testing.TB, o bus.Options) *bus.Conn {
	t.Helper()
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	c, err := bus.Connect(t.Context(), o)
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(c.Close)
	return c
}

func base(t testing.TB, c *bus.Conn) {
	t.Helper()
	cfg := bus.BaseConfig{Replicas: 1, LeaseTTL: 3 * time.Second, MemoryState: true}
	if err := c.EnsureBase(t.Context(), cfg); err != nil {
		t.Fatalf("ensure base: %v", err)
	}
}

// mesh is a server, a connection and the base streams.
func mesh(t testing.TB) (*meshtest.Server, *bus.Conn) {
	t.Helper()
	s := meshtest.StartServer(t, meshtest.ServerOptions{})
	c := connect(t, s)
	base(t, c)
	return s, c
}

// bubble runs f with a mesh of its own in virtual time.
func bubble(t *testing.T, f func(t *testing.T, s *meshtest.Server, c *bus.Conn)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := meshtest.StartServer(t, meshtest.ServerOptions{})
		defer s.Shutdown()
		c := connect(t, s)
		defer c.Close()
		base(t, c)
		f(t, s, c)
	})
}

func createData(t testing.TB, c *bus.Conn, job string, f fence.Token) {
	t.Helper()
	if err := c.CreateData(t.Context(), bus.DataConfig{Job: job, Fence: f, MaxMsgsPerSubject: 1 << 20}); err != nil {
		t.Fatalf("create data stream: %v", err)
	}
}

func publisher(t testing.TB, c *bus.Conn, cfg bus.PublisherConfig) *bus.Publisher {
	t.Helper()
	p, err := c.NewPublisher(t.Context(), cfg)
	if err != nil {
		t.Fatalf("open publisher: %v", err)
	}
	t.Cleanup(p.Close)
	return p
}

// receiver reads the channels into a subtask of the first attempt of the job "shop".
func receiver(t testing.TB, c *bus.Conn, at plan.SubtaskID) *bus.Receiver {
	t.Helper()
	return receiverAt(t, c, at, 0)
}

// alert is a receiver in virtual time that says that a server is silent long before a connection is given up for that.
func alert(t testing.TB, c *bus.Conn, at plan.SubtaskID) *bus.Receiver {
	t.Helper()
	return receiverAt(t, c, at, 500*time.Millisecond)
}

func receiverAt(t testing.TB, c *bus.Conn, at plan.SubtaskID, heartbeat time.Duration) *bus.Receiver {
	t.Helper()
	r, err := c.OpenReceiver(t.Context(), bus.ReceiverConfig{Job: "shop", Fence: 1, Subtask: at, Heartbeat: heartbeat})
	if err != nil {
		t.Fatalf("open receiver: %v", err)
	}
	t.Cleanup(r.Close)
	return r
}

func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}
