package coordinator

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/registry"
	"weir.dev/weir/pkg/telemetry"
)

// strikes is how many "no responders" in a row make a process dead before its lease expires.
const strikes = 3

// roster is what the leader knows of the processes of the mesh.
type roster struct {
	grace time.Duration
	// settledAt is when a missing process may be declared dead.
	settledAt time.Time
	live      map[string]job.NodeLease
	// fresh collects the leases of a watch that has started again; nil when it is caught up.
	fresh map[string]job.NodeLease
	// pulse is what liveness requests have found, by node.
	pulse map[string]pulse
}

// pulse is the liveness of one incarnation of a process.
type pulse struct {
	incarnation string
	// answered says that it has answered before: one that never did may not have got that far.
	answered bool
	missed   int
}

func newRoster(grace time.Duration) roster {
	return roster{
		grace: grace, settledAt: time.Now().Add(grace),
		live: make(map[string]job.NodeLease), fresh: make(map[string]job.NodeLease), pulse: make(map[string]pulse),
	}
}

// unsettle starts the grace period again.
func (r *roster) unsettle(now time.Time) {
	r.settledAt = now.Add(r.grace)
	clear(r.pulse)
}

// settled reports whether a process that is missing is dead: every lease has been told, and late ones had their time.
func (r *roster) settled(now time.Time) bool { return r.fresh == nil && !now.Before(r.settledAt) }

// update takes one step of the watch on node leases in; changed says that jobs must hear of it.
func (r *roster) update(u bus.Update, now time.Time) (changed bool, err error) {
	switch u.Kind {
	case bus.Put:
		n, err := registry.DecodeNode(u.Entry)
		if err != nil {
			return false, err
		}
		if r.fresh != nil {
			r.fresh[u.Entry.Key] = n
		}
		old, known := r.live[u.Entry.Key]
		r.live[u.Entry.Key] = n
		return !known || !sameNode(old, n), nil
	case bus.Deleted, bus.Expired:
		delete(r.live, u.Entry.Key)
		delete(r.fresh, u.Entry.Key)
		return true, nil
	case bus.Resync:
		r.fresh = make(map[string]job.NodeLease)
		r.unsettle(now)
		return true, nil
	case bus.CaughtUp:
		if r.fresh != nil {
			r.live, r.fresh = r.fresh, nil
			r.settledAt = now.Add(r.grace)
		}
		return true, nil
	}
	return false, nil
}

func sameNode(a, b job.NodeLease) bool {
	return a.Incarnation == b.Incarnation && a.Slots == b.Slots && a.Leaving == b.Leaving &&
		slices.Equal(a.Capabilities, b.Capabilities)
}

// alive lists the processes that count, by name: those with a lease that answer.
func (r *roster) alive() []job.NodeLease {
	all := make([]job.NodeLease, 0, len(r.live))
	for _, n := range r.live {
		if !r.givenUp(n) {
			all = append(all, n)
		}
	}
	slices.SortFunc(all, func(a, b job.NodeLease) int { return strings.Compare(a.Node, b.Node) })
	return all
}

// givenUp reports whether a process with a lease does not answer any more.
func (r *roster) givenUp(n job.NodeLease) bool {
	p := r.pulse[n.Node]
	return p.incarnation == n.Incarnation && p.missed >= strikes
}

// asked lists the processes whose liveness matters: those that run something, and those that were given up because they did
// not answer, which may be back.
func (r *roster) asked(taken map[string]int) []job.NodeLease {
	var nodes []job.NodeLease
	for _, n := range r.live {
		if taken[n.Node] > 0 || r.givenUp(n) {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// event is the roster as one job sees it: taken is the room that other jobs use.
func (r *roster) event(m job.Moment, taken map[string]int) job.NodesRead {
	e := job.NodesRead{Moment: m, Settled: r.settled(m.At)}
	for _, n := range r.alive() {
		e.Nodes = append(e.Nodes, job.LiveNode{
			Node: plan.Node{
				Placement:    plan.Placement{Node: n.Node, Incarnation: n.Incarnation},
				Capabilities: n.Capabilities, Free: max(n.Slots-taken[n.Node], 0),
			},
			Leaving: n.Leaving,
		})
	}
	return e
}

// beat notes the answer to a liveness request; changed says that a process has just been given up, or is back.
func (r *roster) beat(n job.NodeLease, err error) (changed bool) {
	p := r.pulse[n.Node]
	if p.incarnation != n.Incarnation {
		p = pulse{incarnation: n.Incarnation}
	}
	dead := p.missed >= strikes
	switch {
	case err == nil:
		p.answered, p.missed = true, 0
	case errors.Is(err, bus.ErrNoResponders) && p.answered:
		p.missed++
	}
	r.pulse[n.Node] = p
	return dead != (p.missed >= strikes)
}

// followNodes follows the leases of all processes.
func (l *leader) followNodes(ctx context.Context) {
	w := l.reg.WatchNodes(ctx)
	defer w.Close()
	for u := range w.Updates() {
		l.post(ctx, func(ctx context.Context) {
			before := l.roster.settledAt
			changed, err := l.roster.update(u, time.Now())
			if err != nil {
				l.log.ErrorContext(ctx, "lease cannot be read", telemetry.Err(err))
			}
			if changed {
				l.nodesChanged(ctx)
			}
			if l.roster.settledAt != before || u.Kind == bus.CaughtUp {
				l.tellWhenSettled(ctx)
			}
		})
	}
}

// tellWhenSettled lets the jobs know once the grace period is over; a later unsettling makes it say nothing new.
func (l *leader) tellWhenSettled(ctx context.Context) {
	wait := time.Until(l.roster.settledAt)
	l.work.Go(func() {
		if wait > 0 && !pause(ctx, wait) {
			return
		}
		l.post(ctx, l.nodesChanged)
	})
}

// nodesChanged tells every job what the roster is now, with the room that the other jobs leave it.
func (l *leader) nodesChanged(ctx context.Context) {
	l.crowd = false
	for name, s := range l.jobs {
		l.feed(ctx, name, s, func(m job.Moment) job.Event { return l.roster.event(m, l.takenBesides(name)) })
	}
}

// takenBesides counts the subtasks that other jobs have on each node.
func (l *leader) takenBesides(name string) map[string]int {
	taken := make(map[string]int)
	for other, s := range l.jobs {
		if other != name {
			for node, n := range s.placed {
				taken[node] += n
			}
		}
	}
	return taken
}

// pingNodes asks the processes of running jobs whether they live. A process whose connection is gone is noticed within
// a second instead of a lease.
func (l *leader) pingNodes(ctx context.Context) {
	t := time.NewTicker(l.cfg.Ping.Std())
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		due := make(chan []job.NodeLease, 1)
		l.post(ctx, func(context.Context) { due <- l.pingable() })
		select {
		case <-ctx.Done():
			return
		case nodes := <-due:
			for _, n := range nodes {
				l.work.Go(func() { l.ping(ctx, n) })
			}
		}
	}
}

// pingable lists the processes to ask; none while the roster is not settled.
func (l *leader) pingable() []job.NodeLease {
	if !l.roster.settled(time.Now()) || !l.conn.Connected() {
		return nil
	}
	return l.roster.asked(l.takenBesides(""))
}

func (l *leader) ping(ctx context.Context, n job.NodeLease) {
	err := l.conn.Ping(ctx, n.Node)
	l.post(ctx, func(ctx context.Context) {
		if !l.roster.settled(time.Now()) || !l.roster.beat(n, err) {
			return
		}
		if err == nil {
			l.log.InfoContext(ctx, "process answers again", telemetry.KeyNode, n.Node)
		} else {
			l.log.WarnContext(ctx, "process does not answer", telemetry.KeyNode, n.Node, telemetry.KeyError, telemetry.ErrorValue(err))
		}
		l.nodesChanged(ctx)
	})
}
