package coordinator

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"sync"
	"testing"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/envelope"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/registry"
)

// ledger is a target's ledger that outlives the processes of a test.
type ledger struct {
	mu   sync.Mutex
	rows map[string]job.LedgerRow
	// commits counts what was applied, by sink and epoch.
	commits map[string]int
	stuck   bool
}

func newLedger() *ledger {
	return &ledger{rows: make(map[string]job.LedgerRow), commits: make(map[string]int)}
}

// actor plays a process of the mesh: it does what Want says and tells facts, without rows. Every epoch counts one message
// and one row per channel.
type actor struct {
	t      testing.TB
	conn   *bus.Conn
	reg    *registry.Registry
	lease  job.NodeLease
	target *ledger
	log    func(job.Action)

	held  job.Held
	seen  job.Seen
	job   string
	facts map[string][]byte
}

func newActor(t testing.TB, conn *bus.Conn, reg *registry.Registry, name, incarnation string, target *ledger, capabilities ...string) *actor {
	t.Helper()
	return &actor{
		t: t, conn: conn, reg: reg, target: target, job: "shop", facts: make(map[string][]byte), log: func(job.Action) {},
		lease: job.NodeLease{Node: name, Incarnation: incarnation, Capabilities: capabilities, Slots: 8},
	}
}

// run plays until ctx ends; the lease is then left to expire, as a killed process would. The caller closes conn, and so
// ends the liveness endpoint.
func (a *actor) run(ctx context.Context) {
	if err := a.conn.ServePing(a.lease.Node, bus.Discovery{Service: "actor", Version: "0.0.1"}); err != nil {
		a.t.Errorf("serve ping: %v", err)
		return
	}
	lease := a.acquire(ctx)
	if lease == nil {
		return
	}
	w := a.reg.WatchHead(ctx, a.job)
	defer w.Close()
	renew := time.NewTicker(lease.Interval())
	defer renew.Stop()
	again := time.NewTicker(time.Second)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case u, ok := <-w.Updates():
			if !ok {
				return
			}
			if u.Kind == bus.Put {
				v, err := registry.DecodeHead(u.Entry)
				if err != nil {
					a.t.Errorf("head: %v", err)
					return
				}
				a.follow(ctx, v)
			}
		case <-renew.C:
			err := lease.Renew(ctx, nil)
			if errors.Is(err, registry.ErrLeaseLost) {
				if lease = a.acquire(ctx); lease == nil {
					return
				}
			}
		case <-again.C:
			for _, s := range sortedKeys(a.facts) {
				_ = a.conn.PutFact(ctx, s, nil, a.facts[s])
			}
		}
	}
}

func (a *actor) acquire(ctx context.Context) *registry.Lease {
	for {
		l, err := a.reg.AcquireNode(ctx, a.lease)
		if err == nil {
			return l
		}
		if !pause(ctx, 100*time.Millisecond) {
			return nil
		}
	}
}

func (a *actor) follow(ctx context.Context, v job.View) {
	var f job.Freshness
	if a.seen, f = a.seen.Judge(v, time.Minute); f != job.Current {
		return
	}
	self := job.Self{Node: a.lease.Node, Incarnation: a.lease.Incarnation}
	for range 10 {
		todo := job.Want(v.Head, self, a.held)
		if len(todo) == 0 {
			return
		}
		for _, x := range todo {
			a.log(x)
			a.do(ctx, v.Head, x)
		}
	}
	a.t.Errorf("%s does not come to rest: %+v", a.lease.Node, job.Want(v.Head, self, a.held))
}

func (a *actor) do(ctx context.Context, h *job.Head, x job.Action) {
	switch x := x.(type) {
	case job.Stop:
		a.held = job.Held{Releasing: a.held.Releasing}
		clear(a.facts)
	case job.ReadPlan:
		d, err := a.reg.Plan(ctx, x.Ref)
		if err != nil {
			if ctx.Err() == nil {
				a.t.Errorf("read plan: %v", err)
			}
			return
		}
		a.held.Fence, a.held.Plan = h.Fence, d
	case job.Start:
		a.held.Started = true
		for _, s := range x.Subtasks {
			r := job.ReadyFact{Fence: x.Fence, Subtask: s, Incarnation: a.lease.Incarnation}
			if v, _ := a.held.Plan.Vertex(s.Vertex); v.Role == plan.Committer {
				r.Ledger = a.claim(v.Name, h)
			}
			a.tell(ctx, h, envelope.Ready, s, r)
		}
	case job.Emit:
		a.held.Emitting = true
	case job.Drain:
		a.held.Draining = true
		for _, s := range a.mine(plan.Reader) {
			a.tell(ctx, h, envelope.Drained, s, job.DrainedFact{Fence: x.Fence, Subtask: s})
		}
	case job.Barrier:
		a.held.Barrier = x.Epoch
		for _, s := range a.mine(plan.Enumerator, plan.Reader, plan.Writer) {
			a.tell(ctx, h, envelope.Ack, s, a.ack(h, x.Epoch, s))
		}
	case job.CommitUpTo:
		a.held.Durable = x.Durable.Epoch
		for _, s := range a.mine(plan.Committer) {
			v, _ := a.held.Plan.Vertex(s.Vertex)
			if a.commit(ctx, h, v.Name, x.Durable) {
				a.tell(ctx, h, envelope.Committed, s, job.CommittedFact{Fence: x.Fence, Subtask: s, Epoch: x.Durable.Epoch})
			}
		}
	case job.Confirm:
		a.held.Committed = x.Epoch
	case job.DropExternal:
		a.held.Releasing = x.Request
		s := plan.SubtaskID{Vertex: job.ReleaseVertex}
		a.tell(ctx, h, job.ReleasedKind, s, job.ReleasedFact{Fence: x.Fence, Node: a.lease.Node, Request: x.Request})
	}
}

// mine lists the process's subtasks with one of the roles.
func (a *actor) mine(roles ...plan.Role) []plan.SubtaskID {
	var all []plan.SubtaskID
	for _, s := range a.held.Plan.Subtasks() {
		v, _ := a.held.Plan.Vertex(s.Vertex)
		for _, r := range roles {
			if v.Role == r && a.held.Plan.Placements[s].Node == a.lease.Node {
				all = append(all, s)
			}
		}
	}
	return all
}

func (a *actor) tell(ctx context.Context, h *job.Head, kind envelope.Kind, s plan.SubtaskID, fact any) {
	b, err := json.Marshal(fact)
	if err != nil {
		a.t.Errorf("encode fact: %v", err)
		return
	}
	subject := bus.AckSubject(h.Job, h.Fence, string(kind), s)
	a.facts[subject] = b
	_ = a.conn.PutFact(ctx, subject, nil, b)
}

func (a *actor) ack(h *job.Head, e epoch.ID, s plan.SubtaskID) job.AckFact {
	ack := job.AckFact{Fence: h.Fence, Subtask: s, Epoch: e}
	t := epoch.Tally{Messages: uint64(e), Rows: uint64(e), Hash: uint64(e) * 7}
	for _, edge := range a.held.Plan.Edges {
		if edge.Feedback {
			continue
		}
		for _, c := range a.held.Plan.Channels(edge) {
			if c.From == s {
				ack.Out = with(ack.Out, c, t)
			}
			if c.To == s {
				ack.In = with(ack.In, c, t)
			}
		}
	}
	if v, _ := a.held.Plan.Vertex(s.Vertex); v.Role == plan.Writer {
		ack.Staged = []epoch.Staged{{Epoch: e, Subtask: s, Data: json.RawMessage(`{}`), Rows: 1}}
	}
	return ack
}

func (a *actor) claim(sink string, h *job.Head) *job.LedgerRow {
	a.target.mu.Lock()
	defer a.target.mu.Unlock()
	row := a.target.rows[sink]
	if row.Life == "" {
		row.Life = h.Life
	}
	row.Fence = h.Fence
	a.target.rows[sink] = row
	return &row
}

func (a *actor) commit(ctx context.Context, h *job.Head, sink string, d job.Durable) bool {
	a.target.mu.Lock()
	defer a.target.mu.Unlock()
	if a.target.stuck {
		return false
	}
	row := a.target.rows[sink]
	links, err := a.reg.Chain(ctx, h.Job, d.Ref, row.Ref.Epoch)
	if err != nil {
		if ctx.Err() == nil {
			a.t.Errorf("read chain: %v", err)
		}
		return false
	}
	for _, l := range links {
		if l.Ref.Epoch <= row.Ref.Epoch {
			continue
		}
		if row.Fence != h.Fence || l.Manifest.Sinks[sink].Prev != row.Ref {
			a.t.Errorf("ledger of %s at %+v, manifest %d has prev %+v", sink, row, l.Ref.Epoch, l.Manifest.Sinks[sink].Prev)
			return false
		}
		row.Ref = l.Ref
		a.target.commits[sink+"/"+l.Ref.Epoch.String()]++
	}
	a.target.rows[sink] = row
	return true
}

func with[K comparable, V any](m map[K]V, k K, v V) map[K]V {
	if m == nil {
		m = make(map[K]V)
	}
	m[k] = v
	return m
}

func sortedKeys(m map[string][]byte) []string {
	keys := make([]string, 0, len(m))
	for k := range maps.Keys(m) {
		keys = append(keys, k)
	}
	return keys
}
