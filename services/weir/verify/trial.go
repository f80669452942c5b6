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

	"github.com/jackc/pgx/v5"

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
	recoverTime = 90 * time.Second
	caughtUp    = 120 * time.Second
)

// The sinks of a run's job, and its source.
const (
	origin  = "db"
	copying = "copy"
	logging = "log"
)

// jobSpec has short pauses, so that a run meets many epochs and waits for its faults and not for restarts.
const jobSpec = `apiVersion: weir/v1
job: %[1]s
epoch: {interval: 250ms, timeout: %[5]s}
restart: {backoff: 100ms, cap: 1000}
sources:
  db: {type: postgres, url: "${VERIFY_SOURCE}", tables: ["%[2]s.*"], snapshot: {mode: never}}
sinks:
  copy: {from: [db], type: postgres, url: "${VERIFY_TARGET}", schema: %[3]s, mode: upsert}
  log: {from: [db], type: postgres, url: "${VERIFY_TARGET}", schema: %[4]s, mode: changelog, writers: %[6]d}
`

// trial is one run of one class: a flow at work, and the hands that harm it.
type trial struct {
	class class
	cfg   Config
	seed  uint64
	rng   *rand.Rand
	scratch
	*mesh

	source, target *relay.Relay // nil unless the class wants them

	conn    *bus.Conn
	reg     *registry.Registry
	control *control.Client
	journal journal
	oracle  *audit.Oracle
	readers []*audit.Reader
	applied atomic.Int64
	shut    func() error // closes the shop; may be repeated

	first  time.Time // the first fault
	faults []Fault
	ends   []func()
}

// perform runs a class with a seed. An error of the environment is one of the result's findings too.
func perform(ctx context.Context, cfg Config, c class, seed uint64) (r Result) {
	begun := time.Now()
	id := fmt.Sprintf("wv%08x", rand.Uint32())
	r = Result{Class: c.name, Run: id, Seed: seed, Begun: begun.UTC().Truncate(time.Millisecond), Findings: []string{}, Faults: []Fault{}}
	t := &trial{
		class: c, cfg: cfg, seed: seed, rng: rand.New(rand.NewPCG(seed, 1)),
		scratch: scratch{source: cfg.Source, target: cfg.Target, id: id},
		mesh:    &mesh{program: cfg.Program, dir: filepath.Join(cfg.Dir, id), relayed: c.relayed},
	}
	find := func(err error) {
		if err != nil {
			r.Findings = append(r.Findings, err.Error())
		}
	}
	err := t.play(ctx, &r)
	find(err)
	t.close()
	cleaning, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	if err := t.scratch.end(cleaning); err != nil {
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
	if err := t.class.run(ctx, t); err != nil {
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
	if err := t.scratch.begin(setting); err != nil {
		return fmt.Errorf("make the source's tables: %w", err)
	}
	var err error
	if t.oracle, err = audit.OpenOracle(setting, t.scratch.source, t.shop()); err != nil {
		return err
	}
	if err := t.startMesh(ctx, setting); err != nil {
		return err
	}
	if err := t.submit(setting); err != nil {
		return err
	}
	following, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	all.Go(func() { t.journal.follow(following, t.reg, t.id) })
	t.ends = append(t.ends, func() { stop(); all.Wait() })
	for _, sql := range []string{
		audit.CopyLook(t.copy(), t.id, copying, shop.Torn(t.copy())), audit.LogLook(t.log(), t.id, logging, shop.Tables()),
	} {
		t.readers = append(t.readers, audit.StartReader(ctx, t.scratch.target, sql, t.durable))
	}
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
	source, target := t.scratch.source, t.scratch.target
	if t.class.databases {
		var err error
		if t.source, err = relay.Start(setting, source); err != nil {
			return err
		}
		t.database = append(t.database, t.source)
		if t.target, err = relay.Start(setting, target); err != nil {
			return err
		}
		t.database = append(t.database, t.target)
		source, target = t.source.URL(source), t.target.URL(target)
	}
	t.env = []string{"VERIFY_SOURCE=" + source, "VERIFY_TARGET=" + target}
	if err := t.startBus(setting); err != nil {
		return err
	}
	for _, role := range roles {
		if err := t.add(setting, role); err != nil {
			return err
		}
	}
	var err error
	if t.conn, err = bus.Connect(ctx, bus.Options{URL: t.url, Name: "weir-verify"}); err != nil {
		return err
	}
	if t.reg, err = registry.Open(setting, t.conn, 0); err != nil {
		return err
	}
	t.control, err = control.Open(setting, t.conn)
	return err
}

// spec is the run's job, with so many writers of the changelog. The copy has one: a shop changes keys.
func (t *trial) spec(writers int) (*spec.Job, error) {
	text := fmt.Sprintf(jobSpec, t.id, t.shop(), t.copy(), t.log(), t.class.timeout(), writers)
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
	conn, err := pgx.Connect(ctx, t.scratch.source)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var failure error
	var done sync.WaitGroup
	done.Go(func() {
		defer conn.Close(context.WithoutCancel(ctx))
		_, failure = shop.Run(ctx, conn, shop.In(t.shop(), t.seed), shop.Load{Rate: t.cfg.Rate, Applied: &t.applied})
	})
	t.shut = func() error {
		cancel()
		done.Wait()
		return failure
	}
	return nil
}

// durable is the newest durable epoch; false while the bus does not answer.
func (t *trial) durable(ctx context.Context) (newest uint64, known bool) {
	ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	v, err := t.reg.Head(ctx, t.id)
	if err != nil || v.Head == nil || v.Head.Durable == nil {
		return 0, false
	}
	return uint64(v.Head.Durable.Epoch), true
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
	for _, end := range t.ends {
		end()
	}
	if t.conn != nil {
		t.conn.Close()
	}
	t.mesh.end()
}
