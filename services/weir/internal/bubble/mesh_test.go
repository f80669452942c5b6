package bubble

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metricnoop "go.opentelemetry.io/otel/metric/noop"

	"weir.dev/weir/pkg/app"
	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/config"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/meshtest"
	"weir.dev/weir/pkg/node"
	"weir.dev/weir/pkg/registry"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/pkg/source/generator"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/pkg/telemetry"
	"weir.dev/weir/pkg/verdict"
	"weir.dev/weir/services/coordinator"
)

func TestMain(m *testing.M) { meshtest.Main(m) }

// mesh is the whole of Weir on one real server in virtual time: coordinators and nodes with generator source and ledger
// sink, each on connections of its own.
type mesh struct {
	t      testing.TB
	srv    *meshtest.Server
	conn   *bus.Conn
	reg    *registry.Registry
	target *meshtest.Target
	source source.Connector
	sink   sink.Connector
	spec   *spec.Job
	log    *slog.Logger
	// health takes the conditions of readiness of all nodes.
	health *app.Health
	work   sync.WaitGroup
	ctx    context.Context
	cancel context.CancelFunc
}

// inBubble runs a test of the whole mesh.
func inBubble(t *testing.T, f func(m *mesh)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := &mesh{
			t: t, srv: meshtest.StartServer(t, meshtest.ServerOptions{}), target: &meshtest.Target{},
			source: generator.Connector{},
			log:    slog.New(slog.DiscardHandler),
			health: app.NewHealth(),
		}
		m.sink = meshtest.LedgerSink{Target: m.target}
		if os.Getenv("WEIR_TEST_LOG") != "" {
			m.log = slog.New(slog.NewTextHandler(os.Stderr, nil))
		}
		m.ctx, m.cancel = context.WithCancel(t.Context())
		m.conn = m.connect("test")
		defer func() {
			m.cancel()
			m.work.Wait()
			m.conn.Close()
			m.srv.Shutdown()
		}()
		f(m)
	})
}

func (m *mesh) connect(name string) *bus.Conn {
	m.t.Helper()
	return m.connectBy(meshtest.NewLink(m.srv), name)
}

func (m *mesh) connectBy(way *meshtest.Link, name string) *bus.Conn {
	m.t.Helper()
	c, err := bus.Connect(m.ctx, bus.Options{Name: name, InProcess: way})
	if err != nil {
		m.t.Fatalf("connect: %v", err)
	}
	return c
}

// process runs something until kill is called or the mesh ends.
func (m *mesh) process(name string, run func(ctx context.Context, ready func()) error) (kill func()) {
	m.t.Helper()
	ctx, cancel := context.WithCancel(m.ctx)
	ready, done := make(chan struct{}), make(chan struct{})
	var once sync.Once
	m.work.Go(func() {
		defer close(done)
		err := run(ctx, func() { once.Do(func() { close(ready) }) })
		if ctx.Err() == nil {
			m.t.Errorf("%s ended: %v", name, err)
		}
		once.Do(func() { close(ready) })
	})
	<-ready
	return func() {
		cancel()
		<-done
	}
}

func (m *mesh) coordinator(name string) (kill func()) {
	m.t.Helper()
	kill = m.process(name, func(ctx context.Context, ready func()) error {
		log := m.log.With("instance", name)
		return coordinator.Run(ctx, app.Env{
			Service: "coordinator", Node: name,
			Telemetry: telemetry.Telemetry{Logger: log, Meter: metricnoop.NewMeterProvider().Meter("")},
			Bus:       bus.Options{Name: name, InProcess: m.srv, Logger: log},
			Ready:     ready,
		}, coordinator.Default())
	})
	if m.reg == nil {
		var err error
		if m.reg, err = registry.Open(m.ctx, m.conn, 0); err != nil {
			m.t.Fatal(err)
		}
	}
	return kill
}

// node runs a node; between may put faults between it and the mesh.
func (m *mesh) node(name string, between func(node.Mesh) node.Mesh, kinds ...string) (kill func()) {
	m.t.Helper()
	return m.nodeOn(meshtest.NewLink(m.srv), name, between, kinds...)
}

// nodeOn runs a node whose way to the server a test can disturb.
func (m *mesh) nodeOn(way *meshtest.Link, name string, between func(node.Mesh) node.Mesh, kinds ...string) (kill func()) {
	m.t.Helper()
	cfg := node.Config{
		Node: name, Lookup: config.OS(), Logger: m.log, Between: between,
		Sources: map[string]source.Connector{}, Sinks: map[string]sink.Connector{},
		Service: name, Check: func(name string, check func() error) func() { return m.health.Ready(name, check) },
	}
	for _, k := range kinds {
		switch k {
		case "source":
			cfg.Sources[generator.Name] = m.source
		case "sink":
			cfg.Sinks["blackhole"] = m.sink
		}
	}
	return m.process(name, func(ctx context.Context, ready func()) error {
		conn := m.connectBy(way, name)
		defer conn.Close()
		cfg.Ready = ready
		return node.Run(ctx, conn, cfg)
	})
}

func (m *mesh) ask(change func(job.Intent) job.Intent) {
	m.t.Helper()
	if _, err := m.reg.Ask(m.ctx, m.spec.Name, func(i job.Intent) (job.Intent, error) { return change(i), nil }); err != nil {
		m.t.Fatalf("ask: %v", err)
	}
}

func (m *mesh) submit(text string) {
	m.t.Helper()
	var err error
	if m.spec, err = spec.Parse([]byte(text), "job.yaml"); err != nil {
		m.t.Fatal(err)
	}
	digest, err := m.reg.PutSpec(m.ctx, m.spec)
	if err != nil {
		m.t.Fatal(err)
	}
	m.ask(func(i job.Intent) job.Intent { return i.Submit(m.spec.Name, digest, "r1", time.Now()) })
}

// await waits until the head is as wanted and returns it.
func (m *mesh) await(what string, ok func(*job.Head) bool) *job.Head {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(m.ctx, 5*time.Minute)
	defer cancel()
	var last *job.Head
	for {
		v, err := m.reg.Head(ctx, m.spec.Name)
		if err == nil && v.Head != nil {
			if last = v.Head; ok(last) {
				return last
			}
		}
		select {
		case <-ctx.Done():
			m.t.Fatalf("no head with %s; last %+v, reason %+v", what, last, last.Reason)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// drain ends the job and holds the target against the truth.
func (m *mesh) drain() {
	m.t.Helper()
	m.ask(func(i job.Intent) job.Intent { return i.Drained(time.Minute, "r2", time.Now()) })
	m.judge(m.await("the end", func(h *job.Head) bool { return h.Phase == job.Finished }))
}

// judge holds the target against what the generator made up to the last committed epoch.
func (m *mesh) judge(h *job.Head) {
	m.t.Helper()
	if h.Durable.Epoch != h.Committed {
		m.t.Errorf("finished with epoch %d durable and %d committed", h.Durable.Epoch, h.Committed)
	}
	last, err := m.reg.Manifest(m.ctx, h.Job, h.Durable.Ref)
	if err != nil {
		m.t.Fatal(err)
	}
	links, err := m.reg.History(m.ctx, h.Job, h.Durable.Ref)
	if err != nil {
		m.t.Fatal(err)
	}
	src, _ := m.spec.Source("gen")
	want, err := meshtest.Generated(*src.Config.(*spec.GeneratorSource), "gen", last)
	if err != nil {
		m.t.Fatal(err)
	}
	if len(want) == 0 {
		m.t.Fatal("nothing was generated: the test proves nothing")
	}
	got := m.target.Changes()
	m.t.Logf("%d changes, %d commits, fence %d", len(got), len(m.target.Log()), h.Fence)
	for _, err := range []error{
		verdict.SameChanges(got, want), verdict.KeyOrder(got, want), verdict.WholeTransactions(got),
		verdict.LedgerContiguous(m.target.Log()), verdict.ChainUnbroken(links, m.target.Log()),
	} {
		if err != nil {
			m.t.Error(err)
		}
	}
}

// watchTarget looks at the target every few milliseconds until stop is called: nothing that is visible may be undurable
// or go away again.
func (m *mesh) watchTarget() (stop func()) {
	ctx, cancel := context.WithCancel(m.ctx)
	done := make(chan error, 1)
	m.work.Go(func() {
		var o verdict.Observer
		for {
			seen := m.target.Changes()
			if v, err := m.reg.Head(ctx, m.spec.Name); err == nil && v.Head != nil {
				var d epoch.ID
				if v.Head.Durable != nil {
					d = v.Head.Durable.Epoch
				}
				o.Look(seen, d)
			}
			select {
			case <-ctx.Done():
				done <- o.Err()
				return
			case <-time.After(7 * time.Millisecond):
			}
		}
	})
	return func() {
		cancel()
		if err := <-done; err != nil {
			m.t.Error(err)
		}
	}
}
