package verify

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/registry"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/weir/internal/control"
	"weir.dev/weir/services/weir/verify/audit"
	"weir.dev/weir/services/weir/verify/process"
	"weir.dev/weir/services/weir/verify/relay"
	"weir.dev/weir/services/weir/verify/shop"
)

// How long things may take before the run has failed. None of it is a promise.
const (
	setUpTime   = 90 * time.Second
	classTime   = 8 * time.Minute
	recoverTime = 90 * time.Second
	caughtUp    = 120 * time.Second
)

// The sinks of a run's job, and its source. A target with one sink has the first.
const (
	origin  = "db"
	copying = "copy"
	logging = "log"
)

// jobSpec has short pauses, so that a run meets many epochs and waits for its faults and not for restarts.
const jobSpec = `apiVersion: weir/v1
job: %[1]s
epoch: {interval: 250ms, timeout: %[2]s}
restart: {backoff: 100ms, cap: 1000}
sources:
  db: %[3]s
sinks:%[4]s
`

// trial is one run of one class: a flow at work, and the hands that harm it.
type trial struct {
	class class
	cfg   Config
	seed  uint64
	rng   *rand.Rand
	id    string
	src   source
	dst   target
	*mesh

	source, target *relay.Relay // nil unless the class wants them

	conn    *bus.Conn
	reg     *registry.Registry
	control *control.Client
	known   atomic.Pointer[registry.Registry] // the present one, for readers
	journal journal
	readers []*audit.Reader
	applied atomic.Int64
	shut    func() error // closes the shop; may be repeated

	first  time.Time // the first fault
	faults []Fault
	ignore func()        // ends the journal
	added  []addedColumn // by the run
}

// perform runs a class with a seed. An error of the environment is one of the result's findings too.
func perform(ctx context.Context, cfg Config, c class, seed uint64) (r Result) {
	begun := time.Now()
	id := fmt.Sprintf("wv%08x", rand.Uint32())
	r = Result{Class: c.name, Run: id, Seed: seed, Begun: begun.UTC().Truncate(time.Millisecond), Findings: []string{}, Faults: []Fault{}}
	t := &trial{
		class: c, cfg: cfg, seed: seed, rng: rand.New(rand.NewPCG(seed, 1)),
		id:   id,
		mesh: &mesh{program: cfg.Program, dir: filepath.Join(cfg.Dir, id), relayed: c.relayed},
	}
	find := func(err error) {
		if err != nil {
			r.Findings = append(r.Findings, err.Error())
		}
	}
	var err error
	if t.src, t.dst, err = cfg.sides(id); err != nil {
		find(err)
		return r
	}
	find(t.play(ctx, &r))
	t.close()
	cleaning, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	if err := errors.Join(t.src.end(cleaning), t.dst.end(cleaning)); err != nil {
		find(fmt.Errorf("clean up: %w", err))
	}
	r.Faults = append(r.Faults, t.faults...)
	r.Passed = len(r.Findings) == 0
	if r.Passed {
		_ = os.RemoveAll(t.dir) // in a temporary folder
	} else {
		r.Log = t.dir
	}
	r.Seconds = seconds(time.Since(begun))
	return r
}

// play is the run itself: set up, harm, recovery, audit.
func (t *trial) play(ctx context.Context, r *Result) error {
	setting, cancel := context.WithTimeout(ctx, setUpTime)
	defer cancel()
	if err := t.begin(ctx, setting); err != nil {
		return fmt.Errorf("set up: %w", err)
	}
	running, cancel := context.WithTimeoutCause(ctx, classTime+t.cfg.Outage, errors.New("the class took too long"))
	defer cancel()
	if err := t.class.run(running, t); err != nil {
		return err
	}
	if len(t.faults) == 0 {
		return errors.New("no fault was done: the run proves nothing")
	}
	return t.conclude(ctx, r)
}

// begin builds the flow, opens the shop and waits until readers see rows at the target. setting bounds it; what lives longer is of ctx.
func (t *trial) begin(ctx, setting context.Context) error {
	if err := os.MkdirAll(t.dir, 0o700); err != nil {
		return err
	}
	if err := t.src.begin(setting); err != nil {
		return fmt.Errorf("make the source's tables: %w", err)
	}
	if err := t.dst.begin(setting); err != nil {
		return fmt.Errorf("prepare the target: %w", err)
	}
	if err := t.startMesh(ctx, setting); err != nil {
		return err
	}
	if err := t.submit(setting); err != nil {
		return err
	}
	t.readers = t.dst.watch(ctx, t.durable)
	if err := t.open(ctx); err != nil {
		return err
	}
	return t.until(setting, "the first rows at the target", func(context.Context) error {
		for _, reader := range t.readers {
			if reader.Looks() == 0 {
				return errors.New("a reader has seen nothing yet")
			}
		}
		return nil
	})
}

// startMesh runs the bus and the class's processes.
func (t *trial) startMesh(ctx, setting context.Context) error {
	source, err := t.resolve(sourceRef)
	if err != nil {
		return err
	}
	target, err := t.resolve(targetRef)
	if err != nil {
		return err
	}
	if t.class.databases {
		if t.source, err = relay.Start(setting, source); err != nil {
			return err
		}
		t.database = append(t.database, t.source)
		source = t.source.URL(source)
		if line := t.dst.line(); line != "" {
			if t.target, err = relay.Start(setting, line); err != nil {
				return err
			}
			t.database = append(t.database, t.target)
			target = t.target.URL(target)
		}
	}
	t.env = []string{"VERIFY_SOURCE=" + source, "VERIFY_TARGET=" + target}
	if err := t.startBus(setting); err != nil {
		return err
	}
	for _, role := range []string{coordinator, coordinator, t.src.role(), t.src.role(), sinks, sinks} { // of each one can be lost
		if err := t.add(setting, role); err != nil {
			return err
		}
	}
	return t.attach(ctx, setting)
}

// attach connects to the bus and follows the job there; a second time when the bus is another one.
func (t *trial) attach(ctx, setting context.Context) (err error) {
	t.detach()
	if t.conn, err = bus.Connect(ctx, bus.Options{URL: t.url, Name: "weir-verify"}); err != nil {
		return err
	}
	if t.reg, err = registry.Open(setting, t.conn, 0); err != nil {
		return err
	}
	t.known.Store(t.reg)
	if t.control, err = control.Open(setting, t.conn); err != nil {
		return err
	}
	following, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	all.Go(func() { t.journal.follow(following, t.reg, t.id) })
	t.ignore = func() { stop(); all.Wait() }
	return nil
}

// detach undoes attach.
func (t *trial) detach() {
	if t.ignore != nil {
		t.ignore()
	}
	if t.conn != nil {
		t.conn.Close()
	}
	t.ignore, t.conn = nil, nil
}

// spec is the run's job, with so many writers where several may be.
func (t *trial) spec(writers int) (*spec.Job, error) {
	text := fmt.Sprintf(jobSpec, t.id, t.class.timeout(), t.src.spec(), t.dst.spec(writers, t.class.letters))
	return spec.Parse([]byte(text), t.id+".yaml")
}

func (t *trial) submit(ctx context.Context) error {
	j, err := t.spec(2)
	if err != nil {
		return err
	}
	if _, err := t.control.Submit(ctx, j, t.id+".yaml", false); err != nil {
		return err
	}
	_, err = t.control.Await(ctx, t.id, func(h *job.Head) (bool, error) {
		switch {
		case h == nil || h.Phase == job.Created || h.Phase == job.Starting:
			return false, nil
		case h.Phase != job.Running:
			return false, fmt.Errorf("the job is %s: %s %s", h.Phase, h.Reason.Code, h.Reason.Text)
		}
		return true, nil
	})
	return err
}

// open starts the shop. It is ended by shut.
func (t *trial) open(ctx context.Context) error {
	load, err := t.src.load(ctx, t.seed, shop.Load{Rate: t.cfg.Rate, Applied: &t.applied})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var failure error
	var done sync.WaitGroup
	done.Go(func() { failure = load(ctx) })
	t.shut = func() error {
		cancel()
		done.Wait()
		return failure
	}
	return nil
}

// durable is the newest epoch that was ever durable, also when the bus has been put back since; false while the bus does not answer.
func (t *trial) durable(ctx context.Context) (newest uint64, known bool) {
	ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	v, err := t.known.Load().Head(ctx, t.id)
	if err != nil || v.Head == nil || v.Head.Durable == nil {
		return 0, false
	}
	return max(t.journal.newestDurable(), uint64(v.Head.Durable.Epoch)), true
}

// holder is the node that runs a vertex's first subtask now.
func (t *trial) holder(ctx context.Context, vertex plan.VertexID) (*node, error) {
	h := t.journal.now().head
	if h.Plan == nil {
		return nil, errors.New("the job has no plan now")
	}
	d, err := t.reg.Plan(ctx, *h.Plan)
	if err != nil {
		return nil, err
	}
	return t.named(d.Placements[plan.SubtaskID{Vertex: vertex}].Node)
}

// until asks again and again until ask returns nil or ctx ends.
func (t *trial) until(ctx context.Context, what string, ask func(context.Context) error) error {
	if err := eventually(ctx, func() error { return ask(ctx) }); err != nil {
		return fmt.Errorf("wait for %s: %w", what, err)
	}
	return nil
}

// eventually repeats what fails, for a while.
func eventually(ctx context.Context, do func() error) error {
	ctx, cancel := context.WithTimeout(ctx, recoverTime)
	defer cancel()
	return process.Await(ctx, nil, func(context.Context) error { return do() })
}

// close ends what play began.
func (t *trial) close() {
	if t.shut != nil {
		_ = t.shut() // conclude has asked for its error
	}
	for _, reader := range t.readers {
		_ = reader.Stop() // nor is this news
	}
	t.detach()
	t.end()
}
