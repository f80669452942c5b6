package coordinator

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metricnoop "go.opentelemetry.io/otel/metric/noop"

	"weir.dev/weir/pkg/app"
	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/config"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/meshtest"
	"weir.dev/weir/pkg/registry"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/pkg/telemetry"
)

func TestMain(m *testing.M) { meshtest.Main(m) }

const shopSpec = `apiVersion: weir/v1
job: shop
epoch: {interval: 200ms}
sources:
  bots: {type: generator}
sinks:
  hole: {from: [bots], type: blackhole}
`

// mesh is a bus with coordinators and actors.
type mesh struct {
	t      testing.TB
	srv    *meshtest.Server
	conn   *bus.Conn
	reg    *registry.Registry
	target *ledger
	cfg    Config
	work   sync.WaitGroup
	ctx    context.Context
	cancel context.CancelFunc
}

func newMesh(t testing.TB, o meshtest.ServerOptions) *mesh {
	t.Helper()
	m := &mesh{t: t, srv: meshtest.StartServer(t, o), target: newLedger(), cfg: Default()}
	m.ctx, m.cancel = context.WithCancel(t.Context())
	m.conn = m.connect("test")
	return m
}

// close ends everything before a bubble's function returns.
func (m *mesh) close() {
	m.cancel()
	m.work.Wait()
	m.conn.Close()
	m.srv.Shutdown()
}

func (m *mesh) connect(name string) *bus.Conn {
	m.t.Helper()
	c, err := bus.Connect(m.ctx, bus.Options{Name: name, InProcess: m.srv})
	if err != nil {
		m.t.Fatalf("connect: %v", err)
	}
	return c
}

// coordinator runs an instance; stop ends it as a signal would and returns what Run returned.
func (m *mesh) coordinator(name string) (stop func() error) {
	m.t.Helper()
	ctx, cancel := context.WithCancel(m.ctx)
	ready, ended := make(chan struct{}), make(chan error, 1)
	var once sync.Once
	log := slog.New(slog.DiscardHandler)
	if os.Getenv("WEIR_TEST_LOG") != "" {
		log = slog.New(slog.NewTextHandler(os.Stderr, nil)).With("instance", name)
	}
	m.work.Go(func() {
		ended <- Run(ctx, app.Env{
			Service: "coordinator", Node: name,
			Telemetry: telemetry.Telemetry{Logger: log, Meter: metricnoop.NewMeterProvider().Meter("")},
			Bus:       bus.Options{Name: name, InProcess: m.srv, Logger: log},
			Ready:     func() { once.Do(func() { close(ready) }) },
		}, m.cfg)
		once.Do(func() { close(ready) })
	})
	<-ready
	if m.reg == nil {
		reg, err := registry.Open(m.ctx, m.conn, m.cfg.Lease.Std())
		if err != nil {
			m.t.Fatalf("open registry: %v", err)
		}
		m.reg = reg
	}
	return func() error {
		cancel()
		return <-ended
	}
}

// actor runs a process; kill ends it without a farewell.
func (m *mesh) actor(name, incarnation string, log func(job.Action), capabilities ...string) (kill func()) {
	m.t.Helper()
	ctx, cancel := context.WithCancel(m.ctx)
	conn := m.connect(name)
	reg, err := registry.Open(ctx, conn, m.cfg.Lease.Std())
	if err != nil {
		m.t.Fatalf("open registry: %v", err)
	}
	a := newActor(m.t, conn, reg, name, incarnation, m.target, capabilities...)
	if log != nil {
		a.log = log
	}
	done := make(chan struct{})
	m.work.Go(func() {
		defer close(done)
		defer conn.Close()
		a.run(ctx)
	})
	return func() {
		cancel()
		<-done
	}
}

func (m *mesh) ask(change func(job.Intent) job.Intent) {
	m.t.Helper()
	if _, err := m.reg.Ask(m.ctx, "shop", func(i job.Intent) (job.Intent, error) { return change(i), nil }); err != nil {
		m.t.Fatalf("ask: %v", err)
	}
}

func (m *mesh) submit() {
	m.t.Helper()
	j, err := spec.Parse([]byte(shopSpec), "job.yaml")
	if err != nil {
		m.t.Fatal(err)
	}
	digest, err := m.reg.PutSpec(m.ctx, j)
	if err != nil {
		m.t.Fatal(err)
	}
	m.ask(func(i job.Intent) job.Intent { return i.Submit("shop", digest, "r1", time.Now()) })
}

// await waits until the head is as wanted and returns it.
func (m *mesh) await(what string, ok func(*job.Head) bool) *job.Head {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(m.ctx, 2*time.Minute)
	defer cancel()
	w := m.reg.WatchHead(ctx, "shop")
	defer w.Close()
	var last *job.Head
	for u := range w.Updates() {
		if u.Kind != bus.Put {
			continue
		}
		v, err := registry.DecodeHead(u.Entry)
		if err != nil {
			m.t.Fatal(err)
		}
		if last = v.Head; ok(last) {
			return last
		}
	}
	m.t.Fatalf("no head with %s; last %+v", what, last)
	return nil
}

func durable(h *job.Head) uint64 {
	if h.Durable == nil {
		return 0
	}
	return uint64(h.Durable.Epoch)
}

// bubble runs a test in virtual time.
func bubble(t *testing.T, f func(m *mesh)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := newMesh(t, meshtest.ServerOptions{})
		defer m.close()
		f(m)
	})
}

func TestJobLivesFromSubmitToRelease(t *testing.T) {
	bubble(t, func(m *mesh) {
		m.coordinator("c1")
		m.actor("a", "a-1", nil, "source:generator")
		m.actor("b", "b-1", nil, "sink:blackhole")
		m.submit()
		m.await("three committed epochs", func(h *job.Head) bool { return h.Phase == job.Running && h.Committed >= 3 })
		m.ask(func(i job.Intent) job.Intent { return i.Drained(time.Minute, "r2", time.Now()) })
		h := m.await("the end", func(h *job.Head) bool { return h.Phase == job.Finished && h.Release != nil && h.Release.Done })
		if h.Durable.Epoch != h.Committed || h.Durable.Kind != "TERMINAL" || h.Fence != 1 {
			m.t.Errorf("finished at %+v", h)
		}
		for e, n := range m.target.commits {
			if n != 1 {
				m.t.Errorf("%s committed %d times", e, n)
			}
		}
		// The head does not wait for what is dropped behind it.
		synctest.Wait()
		if fences, err := m.conn.DataFences(m.ctx, "shop"); err != nil || len(fences) != 0 {
			m.t.Errorf("data streams left: %v, %v", fences, err)
		}
	})
}

func TestRegressedTermStopsTheCoordinator(t *testing.T) {
	bubble(t, func(m *mesh) {
		stop := m.coordinator("c1")
		m.actor("a", "a-1", nil, "source:generator", "sink:blackhole")
		m.submit()
		m.await("a run", func(h *job.Head) bool { return h.Phase == job.Running })
		if err := stop(); !errors.Is(err, context.Canceled) {
			m.t.Fatalf("stopped with %v", err)
		}
		b, err := m.conn.Bucket(m.ctx, bus.RegistryBucket)
		if err != nil {
			m.t.Fatal(err)
		}
		if _, err := b.Put(m.ctx, bus.LeaderTermKey, []byte("0")); err != nil {
			m.t.Fatal(err)
		}
		ended := m.coordinator("c2")
		synctest.Wait()
		if err := ended(); fault.CodeOf(err) != fault.JobBusRegressed {
			m.t.Errorf("Run: %v, want BUS_REGRESSED", err)
		}
	})
}

// A takeover restarts nothing: the attempt goes on, the epoch in flight is gathered again, and the old leader's term is
// gone from every head.
func TestLeaderDeathRestartsNoAttempt(t *testing.T) {
	bubble(t, func(m *mesh) {
		stop := m.coordinator("c1")
		m.actor("a", "a-1", nil, "source:generator", "sink:blackhole")
		m.submit()
		before := m.await("a committed epoch", func(h *job.Head) bool { return h.Committed >= 1 })
		m.coordinator("c2")
		if err := stop(); !errors.Is(err, context.Canceled) {
			m.t.Fatalf("stopped with %v", err)
		}
		after := m.await("two epochs more", func(h *job.Head) bool { return h.Term > before.Term && durable(h) >= durable(before)+2 })
		if after.Fence != before.Fence {
			m.t.Errorf("fence %d after %d: the takeover restarted the attempt", after.Fence, before.Fence)
		}
	})
}

// ⚑ A process that is back within its lease is a lost process: its subtasks are not resurrected in the running attempt.
func TestProcessBackWithinItsLeaseIsLost(t *testing.T) {
	bubble(t, func(m *mesh) {
		m.coordinator("c1")
		m.actor("a", "a-1", nil, "source:generator")
		kill := m.actor("b", "b-1", nil, "sink:blackhole")
		m.submit()
		before := m.await("a committed epoch", func(h *job.Head) bool { return h.Committed >= 1 })
		kill()
		var mu sync.Mutex
		var starts []job.Start
		m.actor("b", "b-2", func(a job.Action) {
			if s, ok := a.(job.Start); ok {
				mu.Lock()
				defer mu.Unlock()
				starts = append(starts, s)
			}
		}, "sink:blackhole")
		after := m.await("another attempt", func(h *job.Head) bool { return h.Fence > before.Fence && durable(h) > durable(before) })
		mu.Lock()
		defer mu.Unlock()
		for _, s := range starts {
			if s.Fence == before.Fence {
				m.t.Errorf("the new incarnation started subtasks of fence %d", s.Fence)
			}
		}
		if after.Durable.Fence != after.Fence {
			m.t.Errorf("durable epoch %d is of fence %d, want %d", after.Durable.Epoch, after.Durable.Fence, after.Fence)
		}
	})
}

// ⚑ A data stream that was deleted, or made anew under the same name, is loss.
func TestLostDataStreamRecovers(t *testing.T) {
	for name, damage := range map[string]func(m *mesh, h *job.Head) error{
		"deleted": func(m *mesh, h *job.Head) error { return m.conn.DeleteData(m.ctx, "shop", h.Fence) },
		"made anew": func(m *mesh, h *job.Head) error {
			return errors.Join(m.conn.DeleteData(m.ctx, "shop", h.Fence), m.conn.CreateData(m.ctx, bus.DataConfig{Job: "shop", Fence: h.Fence}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(m *mesh) {
				m.coordinator("c1")
				m.actor("a", "a-1", nil, "source:generator", "sink:blackhole")
				m.submit()
				before := m.await("two committed epochs", func(h *job.Head) bool { return h.Committed >= 2 })
				pause(m.ctx, 2*time.Second) // virtual: the stream has been looked at
				if err := damage(m, before); err != nil {
					m.t.Fatal(err)
				}
				after := m.await("another attempt", func(h *job.Head) bool { return h.Fence > before.Fence && h.Phase == job.Running })
				if n := len(after.Restarts); n != 1 || after.Restarts[0].Kind != job.RestartLoss {
					m.t.Errorf("restarts %+v, want one LOSS", after.Restarts)
				}
			})
		})
	}
}

// After a restart of the server the memory streams and leases are gone; the mesh finds itself again without a person. In
// real time: the server waits under a lock while it shuts down, which stops virtual time.
func TestServerRestart(t *testing.T) {
	m := newMesh(t, meshtest.ServerOptions{})
	defer m.close()
	m.cfg.Lease = config.Duration(time.Second)
	m.coordinator("c1")
	m.actor("a", "a-1", nil, "source:generator", "sink:blackhole")
	m.submit()
	before := m.await("a committed epoch", func(h *job.Head) bool { return h.Committed >= 1 })
	m.srv.Restart()
	m.await("progress in another attempt", func(h *job.Head) bool {
		return h.Fence > before.Fence && h.Committed > before.Committed
	})
	m.target.mu.Lock()
	defer m.target.mu.Unlock()
	for e, n := range m.target.commits {
		if n != 1 {
			t.Errorf("%s committed %d times", e, n)
		}
	}
}

// A submitted job waits for capacity and says so; a cancelled one is released and may be submitted again as another life.
func TestCancelAndSubmitAgain(t *testing.T) {
	bubble(t, func(m *mesh) {
		m.coordinator("c1")
		m.submit()
		h := m.await("NO_CAPACITY", func(h *job.Head) bool { return h.Reason.Code == string(fault.JobNoCapacity) })
		if h.Phase != job.Starting || len(h.Restarts) != 0 {
			m.t.Errorf("without capacity: %+v", h)
		}
		m.actor("a", "a-1", nil, "source:generator", "sink:blackhole")
		first := m.await("a committed epoch", func(h *job.Head) bool { return h.Committed >= 1 })
		m.ask(func(i job.Intent) job.Intent { return i.Cancelled("r2", time.Now()) })
		m.await("released", func(h *job.Head) bool { return h.Phase == job.Cancelled && h.Release != nil && h.Release.Done })
		m.target.mu.Lock()
		m.target.rows = make(map[string]job.LedgerRow)
		m.target.mu.Unlock()
		m.submit()
		second := m.await("another life", func(h *job.Head) bool { return h.Life != first.Life && h.Committed >= 1 })
		if second.Fence <= first.Fence || second.Durable.Epoch <= first.Durable.Epoch {
			m.t.Errorf("the new life counts again: fence %d after %d, epoch %d after %d",
				second.Fence, first.Fence, second.Durable.Epoch, first.Durable.Epoch)
		}
		if ids, err := m.reg.Epochs(m.ctx, "shop"); err != nil || uint64(ids[0]) <= durable(first) {
			m.t.Errorf("manifests of the old life are left: %v, %v", ids, err)
		}
	})
}

// BenchmarkEpoch is the time from a request for an epoch until it is durable, on an idle job with fsync on every write.
func BenchmarkEpoch(b *testing.B) {
	m := newMesh(b, meshtest.ServerOptions{SyncAlways: true})
	defer m.close()
	m.coordinator("c1")
	m.actor("a", "a-1", nil, "source:generator")
	m.actor("b", "b-1", nil, "sink:blackhole")
	m.submit()
	last := m.await("a committed epoch", func(h *job.Head) bool { return h.Committed >= 1 })
	w := m.reg.WatchHead(m.ctx, "shop")
	defer w.Close()
	var took []time.Duration
	for b.Loop() {
		m.ask(func(i job.Intent) job.Intent { return i.Epoch("r", time.Now()) })
		var triggered time.Time
		for u := range w.Updates() {
			if u.Kind != bus.Put {
				continue
			}
			v, err := registry.DecodeHead(u.Entry)
			if err != nil {
				b.Fatal(err)
			}
			h := v.Head
			if f := h.InFlight; f != nil && f.Epoch > last.Durable.Epoch {
				triggered = f.Triggered
			}
			if h.Durable.Epoch > last.Durable.Epoch && !triggered.IsZero() {
				took = append(took, time.Since(triggered))
				triggered = time.Time{}
			}
			if h.Committed == h.Durable.Epoch && h.Durable.Epoch > last.Durable.Epoch && h.InFlight == nil {
				last = h
				break
			}
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "ms/durable-p50")
}
