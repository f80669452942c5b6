package node

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/registry"
	"weir.dev/weir/pkg/telemetry"
)

const (
	// rereadEvery is how often all heads are read again, whatever the watch says.
	rereadEvery = time.Second
	// busy is for how long after a head has moved reports are published each second, calmReports how often else.
	busy        = 5 * time.Second
	calmReports = 3 * time.Second
)

// stopPatience bounds waiting for subtasks that do not notice that they were stopped, such as a commit inside a driver.
const stopPatience = 10 * time.Second

// node is one session: everything belongs to its loop, except where a field says otherwise.
type node struct {
	cfg  Config
	me   job.NodeLease
	mesh Mesh
	conn *bus.Conn
	log  *slog.Logger
	// metrics and health belong to the process and outlive the session.
	metrics *metrics
	health  *condition
	// show is what the process tells of itself; it outlives the session too.
	show  *show
	going *going
	jobs  map[string]*seat
	// posts brings results of work beside the loop back into it.
	posts chan func()
	// work is everything beside the loop.
	work sync.WaitGroup
	// reading is set while the heads are being read; again asks for one more reading.
	reading, again bool
	// moved is when a head last did, published when reports were last.
	moved, published time.Time
	// owed ticks while somebody waits for a report; nil else.
	owed <-chan time.Time
}

func newNode(cfg Config, me job.NodeLease, m Mesh, conn *bus.Conn, log *slog.Logger) *node {
	return &node{cfg: cfg, me: me, mesh: m, conn: conn, log: log, jobs: make(map[string]*seat), posts: make(chan func(), 64)}
}

func (n *node) self() job.Self { return job.Self{Node: n.me.Node, Incarnation: n.me.Incarnation} }

// run follows the heads until ctx ends, then stops every subtask and waits for them.
func (n *node) run(ctx context.Context) {
	back := make(chan struct{}, 1)
	cancel := n.conn.OnReconnect(func() {
		select {
		case back <- struct{}{}:
		default:
		}
	})
	defer cancel()
	n.work.Go(func() { n.follow(ctx) })
	tick := time.NewTicker(rereadEvery)
	defer tick.Stop()
	n.reread(ctx)
	n.look()
	n.cfg.Ready()
	told := n.going.told
	for {
		if told == nil && n.idle() {
			n.going.end()
		}
		select {
		case <-told:
			told = nil
			n.log.InfoContext(ctx, "node is leaving: its subtasks are handed over")
		case <-ctx.Done():
			n.end(ctx)
			return
		case f := <-n.posts:
			f()
		case <-tick.C:
			n.reread(ctx)
			n.report(ctx)
			n.look()
			n.health.wait(n.stuck())
		case <-n.owed:
			n.answer(ctx)
		case <-back:
			n.log.InfoContext(ctx, "connection is back: heads are read and facts told again")
			n.reread(ctx)
			for _, s := range n.jobs {
				s.repeat()
			}
		}
	}
}

// idle reports whether no attempt has subtasks here.
func (n *node) idle() bool {
	for _, s := range n.jobs {
		if s.cancel != nil {
			return false
		}
	}
	return true
}

// post brings a result into the loop; it gives up when ctx ends.
func (n *node) post(ctx context.Context, f func()) {
	select {
	case n.posts <- f:
	case <-ctx.Done():
	}
}

// follow brings the watch into the loop.
func (n *node) follow(ctx context.Context) {
	updates, stop := n.mesh.Heads.Watch(ctx)
	defer stop()
	for {
		var u bus.Update
		var ok bool
		select {
		case u, ok = <-updates:
		case <-ctx.Done():
			return
		}
		if !ok {
			return
		}
		if u.Kind != bus.Put {
			// What is gone, or may have been missed, shows at the next reading.
			continue
		}
		name, _, ok := registry.JobOf(u.Entry.Key)
		if !ok {
			continue
		}
		v, err := registry.DecodeHead(u.Entry)
		if err != nil {
			n.log.ErrorContext(ctx, "head record cannot be read", telemetry.KeyJob, name, telemetry.KeyError, err)
			continue
		}
		v.At = time.Now()
		n.post(ctx, func() { n.see(ctx, name, v) })
	}
}

// reread reads all heads in one request, beside the loop, at most one at a time.
func (n *node) reread(ctx context.Context) {
	if n.reading {
		n.again = true
		return
	}
	n.reading = true
	n.work.Go(func() {
		views, err := n.mesh.Heads.Heads(ctx)
		n.post(ctx, func() {
			n.reading = false
			if n.again {
				n.again = false
				n.reread(ctx)
			}
			if err != nil {
				n.log.DebugContext(ctx, "heads not read", telemetry.KeyError, err)
				return
			}
			n.seeAll(ctx, views)
		})
	})
}

// seeAll takes in a snapshot of all heads; a job that is missing from it has no record.
func (n *node) seeAll(ctx context.Context, views map[string]job.View) {
	now := time.Now()
	n.health.judgeAll(views, now)
	for name, v := range views {
		v.At = now
		n.see(ctx, name, v)
	}
	for name := range n.jobs {
		if _, ok := views[name]; !ok {
			n.see(ctx, name, job.View{At: now})
		}
	}
}

// see judges one reading and matches it (N2).
func (n *node) see(ctx context.Context, name string, v job.View) {
	s, ok := n.jobs[name]
	if !ok {
		s = newSeat(n, name)
		n.jobs[name] = s
	}
	var fresh job.Freshness
	s.seen, fresh = s.seen.Judge(v, n.cfg.Lease)
	switch fresh {
	case job.Current:
		n.health.judge(name, v.Head)
		s.match(ctx, v)
	case job.Stale:
	case job.Regressed:
		s.regressed(ctx, v)
	}
}

// stuck lists the committers that wait for their targets.
func (n *node) stuck() []stuck {
	var all []stuck
	for name, s := range n.jobs {
		for _, t := range s.subtasks {
			if w, ok := t.Waiting(); ok {
				all = append(all, stuck{job: name, subtask: t.ID(), Wait: w})
			}
		}
	}
	return all
}

// end stops every subtask and waits for them, but not for ever.
func (n *node) end(ctx context.Context) {
	n.health.wait(nil)
	for _, s := range n.jobs {
		s.stop(ctx, context.Cause(ctx))
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, s := range n.jobs {
			s.ended.Wait()
		}
		n.work.Wait()
	}()
	t := time.NewTimer(stopPatience)
	defer t.Stop()
	for {
		select {
		case <-done:
			return
		case <-n.posts:
		case <-t.C:
			n.log.WarnContext(ctx, "subtasks do not stop, the process goes on without them")
			return
		}
	}
}
