package schedules

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/registry"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/pkg/source/generator"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/pkg/telemetry"
	"weir.dev/weir/services/coordinator"
)

func TestMain(m *testing.M) { meshtest.Main(m) }

// mesh is the whole of Weir on one real server in virtual time. Every process has its own way to the server, which a
// test can cut, hold and trip.
type mesh struct {
	t   testing.TB
	ctx context.Context
	srv *meshtest.Server
	// link is the way of the test itself, conn a connection on it.
	link   *meshtest.Link
	conn   *bus.Conn
	reg    *registry.Registry
	target *meshtest.Target
	spec   *spec.Job
	log    *slog.Logger
	work   sync.WaitGroup
	// between is put between every node and the mesh.
	between func(node.Mesh) node.Mesh
	// procs are the newest incarnations, by name.
	procs map[string]*proc
	// mayEnd allows processes to give up by themselves.
	mayEnd atomic.Bool
	// look is the pause between two looks of the observer.
	look atomic.Int64

	mu sync.Mutex
	// seen are all manifests that were ever durable.
	seen map[epoch.Ref]*epoch.Manifest
	// fired counts the faults that have happened.
	fired map[string]int
}

// proc is one incarnation of a process.
type proc struct {
	name   string
	kind   string
	link   *meshtest.Link
	cancel context.CancelFunc
	done   chan struct{}
	dead   atomic.Bool
	// between is put between a node and the mesh.
	between func(node.Mesh) node.Mesh
	err     error // after done
}

// inBubble runs f with an empty mesh.
func inBubble(t *testing.T, f func(m *mesh)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		m := &mesh{
			t: t, ctx: ctx, srv: meshtest.StartServer(t, meshtest.ServerOptions{}), target: &meshtest.Target{},
			log: slog.New(slog.DiscardHandler), procs: make(map[string]*proc),
			seen: make(map[epoch.Ref]*epoch.Manifest), fired: make(map[string]int),
			between: func(m node.Mesh) node.Mesh { return m },
		}
		if os.Getenv("BUBBLE_LOG") != "" {
			m.log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
		}
		m.look.Store(int64(13 * time.Millisecond))
		m.link = meshtest.NewLink(m.srv)
		var err error
		if m.conn, err = bus.Connect(ctx, bus.Options{Name: "test", InProcess: m.link}); err != nil {
			t.Fatal(err)
		}
		defer func() {
			cancel()
			m.work.Wait()
			m.conn.Close()
			m.srv.Shutdown()
		}()
		f(m)
	})
}

// pass lets virtual time pass. A little more than asked for: timers of the mesh stand on round numbers.
func pass(d time.Duration) { <-time.After(d + 137*time.Microsecond) }

// fire notes that a fault has happened.
func (m *mesh) fire(what string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fired[what]++
}

// start begins an incarnation: a name with c is a coordinator, with s a node that hosts sources, with k one for sinks.
func (m *mesh) start(name string) {
	ctx, cancel := context.WithCancel(m.ctx)
	p := &proc{name: name, kind: name[:1], link: meshtest.NewLink(m.srv), cancel: cancel, done: make(chan struct{}), between: m.between}
	m.procs[name] = p
	run := m.node
	if p.kind == "c" {
		run = m.coordinator
	}
	m.work.Go(func() {
		defer close(p.done)
		p.err = run(ctx, p)
		if ctx.Err() == nil && !p.dead.Load() && !m.mayEnd.Load() {
			m.t.Errorf("%s ended: %v", name, p.err)
		}
	})
}

// crash ends a process as SIGKILL does: nothing it had to say is heard any more, no lease is given back.
func (p *proc) crash() {
	p.dead.Store(true)
	p.link.Down()
	p.cancel()
}

func (m *mesh) coordinator(ctx context.Context, p *proc) error {
	log := m.log.With("instance", p.name)
	cfg := coordinator.Default()
	return coordinator.Run(ctx, app.Env{
		Service: "coordinator", Node: p.name,
		Telemetry: telemetry.Telemetry{Logger: log, Meter: metricnoop.NewMeterProvider().Meter("")},
		Bus:       bus.Options{Name: p.name, InProcess: p.link, Logger: log},
	}, cfg)
}

func (m *mesh) node(ctx context.Context, p *proc) error {
	log := m.log.With("instance", p.name)
	conn, err := m.connect(ctx, p, log)
	if err != nil {
		return err
	}
	defer conn.Close()
	cfg := node.Config{
		Node: p.name, Lookup: config.OS(), Logger: log, Between: p.between,
	}
	switch p.kind {
	case "s":
		cfg.Sources = map[string]source.Connector{generator.Name: generator.Connector{}}
	case "k":
		cfg.Sinks = map[string]sink.Connector{"blackhole": meshtest.LedgerSink{Target: m.target}}
	}
	return node.Run(ctx, conn, cfg)
}

// connect waits for the server, which may be restarting.
func (m *mesh) connect(ctx context.Context, p *proc, log *slog.Logger) (*bus.Conn, error) {
	for {
		conn, err := bus.Connect(ctx, bus.Options{Name: p.name, InProcess: p.link, Logger: log})
		if err == nil || ctx.Err() != nil || p.dead.Load() {
			return conn, err
		}
		pass(100 * time.Millisecond)
	}
}

// processes are the newest incarnations of a kind, by name.
func (m *mesh) processes(kind string) []*proc {
	var all []*proc
	for _, p := range m.procs {
		if p.kind == kind {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b *proc) int { return strings.Compare(a.name, b.name) })
	return all
}

// open waits until a coordinator has made the registry.
func (m *mesh) open() {
	m.t.Helper()
	for range 100 {
		var err error
		if m.reg, err = registry.Open(m.ctx, m.conn, 0); err == nil {
			return
		}
		pass(100 * time.Millisecond)
	}
	m.t.Fatal("no coordinator has made the registry")
}

func (m *mesh) submit(text string) {
	m.t.Helper()
	var err error
	if m.spec, err = spec.Parse([]byte(text), "job.yaml"); err != nil {
		m.t.Fatalf("%v in\n%s", err, text)
	}
	digest, err := m.reg.PutSpec(m.ctx, m.spec)
	if err != nil {
		m.t.Fatal(err)
	}
	m.ask(func(i job.Intent) job.Intent { return i.Submit(m.spec.Name, digest, "r1", time.Now()) })
}

func (m *mesh) ask(change func(job.Intent) job.Intent) {
	m.t.Helper()
	var err error
	for range 50 {
		_, err = m.reg.Ask(m.ctx, m.spec.Name, func(i job.Intent) (job.Intent, error) { return change(i), nil })
		if err == nil {
			return
		}
		pass(100 * time.Millisecond)
	}
	m.t.Fatalf("ask: %v", err)
}

// head reads the head record; nil while it cannot be read or there is none.
func (m *mesh) head() *job.Head {
	v, err := m.reg.Head(m.ctx, m.spec.Name)
	if err != nil {
		return nil
	}
	return v.Head
}

// await waits until the head is as wanted and returns it.
func (m *mesh) await(what string, ok func(*job.Head) bool) *job.Head {
	m.t.Helper()
	var last *job.Head
	for until := time.Now().Add(5 * time.Minute); time.Now().Before(until); pass(30 * time.Millisecond) {
		if h := m.head(); h != nil {
			if last = h; ok(h) {
				return h
			}
		}
	}
	if last == nil {
		m.t.Fatalf("no %s, no head", what)
	}
	m.t.Fatalf("no %s: the head is %s, fence %s, durable %+v, committed %s, in flight %+v, reason %+v", what, last.Phase,
		last.Fence, last.Durable, last.Committed, last.InFlight, last.Reason)
	return nil
}

// progress waits until n more epochs have been committed.
func (m *mesh) progress(n int) {
	m.t.Helper()
	var from epoch.ID
	m.await("head", func(h *job.Head) bool { from = h.Committed; return true })
	m.await("progress", func(h *job.Head) bool {
		return h.Phase == job.Running && h.Committed >= from+epoch.ID(n)
	})
}

// hostOf is the process that the newest plan gives a subtask to; nil while there is none.
func (m *mesh) hostOf(id plan.SubtaskID) *proc {
	h := m.head()
	if h == nil || h.Plan == nil {
		return nil
	}
	d, err := m.reg.Plan(m.ctx, *h.Plan)
	if err != nil {
		return nil
	}
	return m.procs[d.Placements[id].Node]
}

// restartBus stops the server, does something to its directory and starts it again: everything in memory is gone. For
// the processes the bus is away for a while.
func (m *mesh) restartBus(away time.Duration, do func(dir string)) {
	m.link.Down()
	for _, p := range m.procs {
		p.link.Down()
	}
	pass(away)
	m.srv.RestartAfter(do)
	m.link.Up()
	for _, p := range m.procs {
		if !p.dead.Load() {
			p.link.Up()
		}
	}
}
