package schedules

import (
	"context"
	"errors"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/meshtest"
	"weir.dev/weir/pkg/node"
	"weir.dev/weir/pkg/plan"
)

// classes are the kinds of faults; their seeds add up to more than 200 schedules.
var classes = []class{
	{name: "source-dies", seeds: 2 * len(sourceSteps), do: func(s *schedule) { s.dieAt("s", sourceSteps) }},
	{name: "sink-dies", seeds: 2 * len(sinkSteps), do: func(s *schedule) { s.dieAt("k", sinkSteps) }},
	{name: "leader-dies", seeds: 3 * len(leaderSteps), do: (*schedule).leaderDies},
	{name: "commit-dies", seeds: 8, do: (*schedule).commitDies},
	{name: "back-within-lease", seeds: 10, do: (*schedule).backWithinLease},
	{name: "data-messages", seeds: 24, plan: dataFaults, do: (*schedule).endure},
	{name: "facts", seeds: 16, plan: factFaults, do: (*schedule).endure},
	{name: "failed-acks", seeds: 10, plan: ackFaults, do: (*schedule).endure, after: (*schedule).skipped},
	{name: "stream-lost", seeds: 16, do: (*schedule).streamLost},
	{name: "silent-watches", seeds: 8, do: (*schedule).silentWatches},
	{name: "slow-sink", seeds: 8, do: (*schedule).slowSink},
	{name: "sink-down", seeds: 6, rows: 6000, do: (*schedule).sinkDown},
	{name: "lost-commit-reply", seeds: 10, do: (*schedule).lostCommitReply},
	{name: "frozen-commit", seeds: 8, do: (*schedule).frozenCommit},
	{name: "partition", seeds: 16, do: (*schedule).partition},
	{name: "skewed-readers", seeds: 8, readers: 2, do: (*schedule).skewedReaders},
	{name: "bus-restarts", seeds: 8, do: (*schedule).busRestarts},
	{name: "registry-restored", seeds: 6, do: (*schedule).registryRestored, ends: true},
	{name: "storm", seeds: 16, plan: dataFaults, do: (*schedule).storm},
}

// step is a place in the life of an attempt that shows on the wire of a process.
type step struct {
	name  string
	match string
	// start says that it belongs to the beginning of an attempt: one is provoked.
	start bool
}

var sourceSteps = []step{
	{name: "lease", match: "weir_leases.nodes."},
	{name: "plan is read", match: "weir_registry.", start: true},
	{name: "consumer", match: "$JS.API.CONSUMER.", start: true},
	{name: "ready", match: ".ready.gen", start: true},
	{name: "rows", match: "Weir-Kind: rows"},
	{name: "barrier", match: "Weir-Kind: barrier"},
	{name: "input", match: ".input.gen"},
	{name: "ack", match: ".ack.gen"},
}

var sinkSteps = []step{
	{name: "consumer", match: "$JS.API.CONSUMER.", start: true},
	{name: "ready", match: ".ready.out", start: true},
	{name: "message taken", match: "$JS.ACK.WEIR_shop"},
	{name: "ack", match: ".ack.out"},
	{name: "manifest is read", match: "weir_registry."},
	{name: "committed", match: ".committed.out"},
}

var leaderSteps = []step{
	{name: "head", match: "$KV.weir_registry.jobs.shop.head"},
	{name: "a later head", match: "$KV.weir_registry.jobs.shop.head"},
	{name: "manifest", match: "$KV.weir_registry.jobs.shop.epoch."},
	{name: "plan", match: "$KV.weir_registry.jobs.shop.plan.", start: true},
	{name: "stream is made", match: "$JS.API.STREAM.CREATE.WEIR_shop", start: true},
	{name: "stream is deleted", match: "$JS.API.STREAM.DELETE.WEIR_shop", start: true},
	{name: "term", match: "$KV.weir_registry.leader.term", start: true},
	{name: "lease", match: "$KV.weir_leases.leader"},
}

// dieAt kills a process of a kind before or after a step, twice.
func (s *schedule) dieAt(kind string, steps []step) {
	st, before := steps[s.seed%len(steps)], s.seed/len(steps)%2 == 0
	for range 2 {
		hit := make(chan *proc, 1)
		nth := 1 + s.r.IntN(3)
		if st.start {
			nth = 1
			s.provoke()
		}
		for _, p := range s.processes(kind) {
			p.link.Arm(meshtest.Trip{Match: st.match, Nth: nth, Before: before, Do: func() {
				select {
				case hit <- p:
					p.crash()
				default:
				}
			}})
		}
		if p := s.hit(hit, st.name); p != nil {
			pass(s.some(10, 3500))
			s.restart(p)
		}
		s.progress(1)
	}
}

// hit waits until a wire springs, takes the others away, and tells which process it was.
func (s *schedule) hit(from <-chan *proc, what string) *proc {
	var p *proc
	select {
	case p = <-from:
		s.fire(what)
	case <-time.After(time.Minute):
		s.t.Errorf("step %q was not seen", what)
	}
	for _, q := range s.procs {
		q.link.Disarm()
	}
	return p
}

// provoke makes the leader begin another attempt.
func (s *schedule) provoke() {
	h := s.attempt()
	if err := s.conn.DeleteData(s.ctx, h.Job, h.Fence); err != nil && !errors.Is(err, bus.ErrNotFound) {
		s.t.Logf("delete data stream: %v", err)
	}
}

// leaderDies kills the leader before or after one of its writes, or lets the reply of the write get lost, twice.
func (s *schedule) leaderDies() {
	st := leaderSteps[s.seed%len(leaderSteps)]
	for range 2 {
		hit := make(chan *proc, 1)
		mode := s.seed / len(leaderSteps) % 3
		nth := 1
		if !st.start {
			nth += s.r.IntN(4)
		}
		for _, p := range s.processes("c") {
			p.link.Arm(meshtest.Trip{Match: st.match, Nth: nth, Before: mode == 0, Do: func() {
				select {
				case hit <- p:
				default:
					return
				}
				if mode == 2 {
					p.link.Cut()
					return
				}
				p.crash()
			}})
		}
		switch {
		case st.name == "term":
			s.handOver()
		case st.name == "stream is deleted":
			// The data stream must still be there, so that there is something to delete. There is one node at least that
			// hosts something.
			p := s.hostOf(plan.SubtaskID{Vertex: plan.CommitterOf("out")})
			if p == nil {
				p = s.one("k")
			}
			p.crash()
			pass(s.some(10, 500))
			s.restart(p)
		case st.start:
			s.provoke()
		}
		if p := s.hit(hit, st.name); p != nil && mode != 2 {
			pass(s.some(10, 4000))
			s.restart(p)
		}
		s.progress(1)
	}
}

// handOver takes the lease from the leader, so that the one standing by, or the leader itself, raises the term.
func (s *schedule) handOver() {
	for _, p := range s.processes("c") {
		p.link.HoldRequests()
	}
	pass(2 * s.reg.TTL())
	s.calmLinks("c")
}

// commitDies kills the process of the committer right before its transaction or right after it.
func (s *schedule) commitDies() {
	at := meshtest.BeforeCommit
	if s.seed%2 == 1 {
		at = meshtest.AfterCommit
	}
	for range 2 {
		host := s.hostOf(plan.SubtaskID{Vertex: plan.CommitterOf("out")})
		if host == nil {
			s.progress(1)
			continue
		}
		hit := make(chan *proc, 1)
		s.target.WatchCommits(func(c meshtest.CommitStep) {
			if c != at {
				return
			}
			select {
			case hit <- host:
				host.crash()
			default:
			}
		})
		p := s.hit(hit, "commit")
		s.target.WatchCommits(nil)
		if p != nil {
			pass(s.some(10, 3500))
			s.restart(p)
		}
		s.progress(1)
	}
}

// backWithinLease kills a process and starts it again before its lease can have expired.
func (s *schedule) backWithinLease() {
	for range 3 {
		p := s.one("sk")
		p.crash()
		s.fire("crash")
		pass(s.some(5, 900))
		s.restart(p)
		pass(s.some(5, 3000))
	}
	s.progress(1)
}

func dataFaults(s *schedule) meshtest.FaultPlan {
	return meshtest.FaultPlan{
		Seed: s.r.Uint64(), Budget: 8 + s.r.IntN(30),
		Drop: 0.01 * s.r.Float64(), Repeat: 0.05 * s.r.Float64(), Swap: 0.01 * s.r.Float64(), Delay: 0.06 * s.r.Float64(),
		MaxDelay: s.some(100, 1500), RefusePublish: 0.005 * s.r.Float64(),
	}
}

func factFaults(s *schedule) meshtest.FaultPlan {
	return meshtest.FaultPlan{
		Seed: s.r.Uint64(), MaxDelay: s.some(100, 3000),
		LoseFact: map[string]float64{"*": 0.3 * s.r.Float64()}, LateFact: map[string]float64{"*": 0.3 * s.r.Float64()},
	}
}

func ackFaults(s *schedule) meshtest.FaultPlan {
	return meshtest.FaultPlan{
		Seed: s.r.Uint64(), MaxDelay: 2 * s.timeout, DeclineAck: 0.1 + 0.1*s.r.Float64(),
		LoseFact: map[string]float64{"ack": 0.2 * s.r.Float64()}, LateFact: map[string]float64{"ack": 0.2 * s.r.Float64()},
	}
}

// endure lets the faults between nodes and bus have their time.
func (s *schedule) endure() {
	pass(s.some(4000, 9000))
}

// skipped holds when some epoch was given up: its id is missing on the chain.
func (s *schedule) skipped() {
	h := s.attempt()
	links, err := s.reg.History(s.ctx, h.Job, h.Durable.Ref)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, l := range links {
		if prev := l.Manifest.Prev.Epoch; prev != 0 && l.Ref.Epoch > prev+1 {
			return
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for ref, m := range s.seen {
		if m.Prev.Epoch != 0 && ref.Epoch > m.Prev.Epoch+1 {
			return
		}
	}
	s.t.Error("no epoch was skipped")
}

// streamLost deletes the data stream of the attempt, empties it, or makes it anew under the same name.
func (s *schedule) streamLost() {
	for i := range 3 {
		h := s.attempt()
		name := bus.DataStream(h.Job, h.Fence)
		switch (s.seed + i) % 3 {
		case 0:
			s.provoke()
			s.fire("deleted")
		case 1:
			s.fill()
			if err := s.srv.EmptyStream(name); err != nil {
				s.t.Fatal(err)
			}
			s.calmLinks("k")
			s.fire("emptied")
		case 2:
			s.fill()
			s.provoke()
			cfg := bus.DataConfig{Job: h.Job, Fence: h.Fence, MaxMsgsPerSubject: 72}
			if err := s.conn.CreateData(s.ctx, cfg); err != nil {
				s.t.Logf("make the stream anew: %v", err)
			}
			s.calmLinks("k")
			s.fire("made anew")
		}
		s.progress(1)
		pass(s.some(1, 400))
	}
}

// fill holds what the sinks would take, so that there is something in the data stream to lose.
func (s *schedule) fill() {
	for _, p := range s.processes("k") {
		p.link.HoldReplies()
		p.link.HoldRequests()
	}
	pass(s.some(50, 400))
}

func (s *schedule) calmLinks(kind string) {
	for _, p := range s.processes(kind) {
		p.link.Release()
	}
}

// silentWatches lets every node's watch lose updates, all of them or some, or deliver old ones again; processes die all
// the same.
func (s *schedule) silentWatches() {
	lose := []float64{1, 0.9, 0.5}[s.seed%3]
	s.between = func(m node.Mesh) node.Mesh {
		m.Heads = &forgetful{known: m.Heads, s: s, lose: lose}
		return m
	}
	for _, kind := range []string{"s", "k"} {
		for _, p := range s.processes(kind) {
			p.crash()
			pass(s.some(10, 300))
			s.restart(p)
		}
	}
	s.progress(2)
	p := s.one("sk")
	p.crash()
	pass(s.some(10, 2000))
	s.restart(p)
	s.progress(2)
}

// known has another name than the method Heads, so that it can be embedded.
type known interface{ node.Heads }

// forgetful is a watch that misses updates and tells old ones late.
type forgetful struct {
	known
	s    *schedule
	lose float64
}

func (f *forgetful) Watch(ctx context.Context) (<-chan bus.Update, func()) {
	from, stop := f.known.Watch(ctx)
	to := make(chan bus.Update)
	f.s.work.Go(func() {
		defer close(to)
		rng := newRand(uint64(f.s.seed))
		var old *bus.Update
		for u := range from {
			switch roll := rng.Float64(); {
			case roll < f.lose:
				f.s.fire("update missed")
				old = &u
				continue
			case old != nil && roll < f.lose+(1-f.lose)/2:
				f.s.fire("old update")
				select {
				case to <- *old:
				case <-ctx.Done():
					return
				}
				old = nil
			}
			select {
			case to <- u:
			case <-ctx.Done():
				return
			}
		}
	})
	return to, stop
}

// slowSink lets commits take longer than epochs.
func (s *schedule) slowSink() {
	s.target.SetSlow(s.some(200, 2500))
	s.fire("slow")
	pass(s.some(4000, 9000))
	s.target.SetSlow(0)
}

// sinkDown takes the target away; the first seed for longer than the window of the restart policy. It must cost no attempt.
func (s *schedule) sinkDown() {
	down := s.some(5000, 60_000)
	if s.seed == 0 {
		down = 12 * time.Minute
		s.look.Store(int64(time.Second))
	}
	before := s.attempt()
	s.target.SetDown(true)
	s.fire("down")
	pass(down)
	h := s.attempt()
	if h.Reason.Code != "WEIR-JOB-012" || h.Reason.Since.IsZero() {
		s.t.Errorf("after %s without target the reason is %+v", down, h.Reason)
	}
	s.target.SetDown(false)
	s.look.Store(int64(13 * time.Millisecond))
	// The source may have come to its end meanwhile, and the job with it.
	waiting := h.Committed
	if h = s.await("the next commit", func(h *job.Head) bool { return h.Committed > waiting }); h.Fence != before.Fence {
		s.t.Errorf("a target that was down made attempt %s of %s", h.Fence, before.Fence)
	}
}

// lostCommitReply lets commits succeed whose reply is lost.
func (s *schedule) lostCommitReply() {
	for range 3 {
		s.target.LoseReplies(1 + s.r.IntN(2))
		s.fire("reply lost")
		s.progress(1 + s.r.IntN(2))
		pass(s.some(1, 300))
	}
}

// frozenCommit stops the committer's process inside its commit, longer than its lease, lets another take over, and lets it
// go on: the ledger refuses it.
func (s *schedule) frozenCommit() {
	refused := s.target.Refused()
	reached, thaw := s.target.Freeze()
	<-reached
	host := s.hostOf(plan.SubtaskID{Vertex: plan.CommitterOf("out")})
	host.link.HoldRequests()
	host.link.HoldReplies()
	s.fire("frozen")
	if len(s.processes("k")) == 1 {
		s.start("k9")
	}
	before := s.attempt()
	s.await("other attempt", func(h *job.Head) bool { return h.Fence > before.Fence && h.Committed > before.Committed })
	host.link.Release()
	pass(s.some(1, 200))
	thaw()
	pass(s.some(100, 1000))
	if s.target.Refused() == refused {
		s.t.Error("the commit of the zombie was not refused")
	}
}

// partition silences a process in one direction or both, for shorter or longer than a lease; what it said meanwhile
// arrives late, or never.
func (s *schedule) partition() {
	for range 2 {
		p := s.one("csk")
		switch s.r.IntN(4) {
		case 0:
			p.link.HoldRequests()
		case 1:
			p.link.HoldReplies()
		case 2:
			p.link.HoldRequests()
			p.link.HoldReplies()
		case 3:
			p.link.Cut()
		}
		s.fire("partition of " + p.name)
		pass(s.some(100, 7000))
		if s.r.IntN(3) == 0 {
			p.link.Cut()
		}
		p.link.Release()
		pass(s.some(10, 500))
	}
	s.progress(1)
}

// skewedReaders silences one of two readers while an epoch is in flight, so that its barrier comes long after the other's
// and rows come between them; right after the epoch a process dies, and what was in the epoch must not be read again.
func (s *schedule) skewedReaders() {
	for i := range 3 {
		late := s.hostOf(plan.SubtaskID{Vertex: "gen", Index: i % 2})
		if late == nil || late.dead.Load() {
			s.progress(1)
			continue
		}
		before := s.attempt()
		late.link.HoldRequests()
		late.link.HoldReplies()
		pass(s.some(300, 1500))
		late.link.Release()
		s.fire("skew")
		s.await("durable epoch", func(h *job.Head) bool {
			return h.Fence > before.Fence || h.Durable.Epoch > before.Durable.Epoch
		})
		p := s.one("sk")
		p.crash()
		pass(s.some(10, 1000))
		s.restart(p)
		s.progress(1)
	}
}

// busRestarts stops the server and starts it again: everything in memory is gone.
func (s *schedule) busRestarts() {
	for range 2 {
		s.restartBus(s.some(50, 2000), func(string) {})
		s.fire("restart")
		pass(s.some(10, 4000))
	}
	s.progress(1)
}

// storm lets several kinds of faults happen one after the other, over a bus that loses messages.
func (s *schedule) storm() {
	kinds := []func(){
		s.backWithinLease, s.streamLost, s.slowSink, s.lostCommitReply, s.partition, s.commitDies, s.busRestarts,
		func() { s.leaderCrash() },
	}
	for range 3 {
		kinds[s.r.IntN(len(kinds))]()
	}
}

func (s *schedule) leaderCrash() {
	p := s.one("c")
	p.crash()
	s.fire("coordinator")
	pass(s.some(10, 4000))
	s.restart(p)
}
