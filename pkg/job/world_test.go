package job

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/position"
)

// world is a whole mesh as a value: a registry, a leader, two processes, the channel between them and a target. It moves
// by transitions, each of which is one thing that can happen; every order of them is a possible history. Process 0 hosts
// enumerator and reader, process 1 writer and committer. The reader emits one row per epoch, numbered by its position.
type world struct {
	now   time.Time
	heads []Head // every version of the head record; its revision is its index plus one
	plans map[string]*plan.Deployment
	links map[epoch.Ref]*epoch.Manifest
	// handed remembers who handed an epoch id out, and which were given up or became durable.
	handed map[epoch.ID]string

	leader State
	under  []Effect    // effects of the leader under way
	ghosts []WriteHead // writes of dead leaders that may still land

	procs   [2]proc
	facts   map[string]Event // the fact stream: last per subject
	told    map[string]bool  // those that the leader has taken in
	channel []parcel         // from reader to writer
	lost    bool             // rows of the channel were lost

	target target
	left   budget

	// For transcripts: tracing writes events and effects into log; mute keeps the writer from receiving.
	tracing, mute bool
	log           []string
}

// proc is a process as it follows the head.
type proc struct {
	incarnation int
	dead        bool
	version     int // how many versions of the head it has seen
	held        Held
	restored    epoch.ID
	position    int       // reader: next row
	rows        int       // tally of the data channel, sent or received
	barriers    int       // tally of the enumerator's channel
	staged      []stagedP // writer: not known to be covered
	passed      epoch.ID  // writer: last barrier
}

type stagedP struct {
	Epoch    epoch.ID
	From, To int
}

// parcel is a barrier with the rows before it.
type parcel struct {
	fence    fence.Token
	epoch    epoch.ID
	from, to int
	rows     int // tally up to the barrier
	barriers int
}

// target is the sink's database.
type target struct {
	row  LedgerRow
	rows []int
	// refused counts commits of fenced committers.
	refused int
}

// budget bounds what goes wrong in one history.
type budget struct {
	ticks, crashes, takeovers, unsure, losses, declines, deletes int
	// repeat delivers facts again that the leader has taken in already.
	drain, cancel, repeat bool
	// eager performs at once what only the leader can see: reads, streams, plans, manifests. lag shows processes older
	// versions of the head.
	eager, lag bool
	epochs     epoch.ID
	fences     fence.Token
}

var (
	idEnum   = plan.SubtaskID{Vertex: "src_enum"}
	idReader = plan.SubtaskID{Vertex: "src"}
	idWriter = plan.SubtaskID{Vertex: "out"}
	idCommit = plan.SubtaskID{Vertex: "out_commit"}
	chEnum   = plan.Channel{From: idEnum, To: idReader}
	chData   = plan.Channel{From: idReader, To: idWriter}
	start    = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
)

// smallPlan is one source with one reader and one sink with one writer.
func smallPlan() plan.Partitioned {
	return plan.NewPartitioned(plan.Model{
		Job: "shop", Guarantee: plan.ExactlyOnce,
		Vertices: []plan.Vertex{
			{ID: "src_enum", Role: plan.Enumerator, Name: "src", Capability: "source:generator", Parallelism: 1},
			{ID: "src", Role: plan.Reader, Name: "src", Capability: "source:generator", Parallelism: 1},
			{ID: "out", Role: plan.Writer, Name: "out", Capability: "sink:blackhole", Parallelism: 1},
			{ID: "out_commit", Role: plan.Committer, Name: "out", Capability: "sink:blackhole", Parallelism: 1},
		},
		Edges: []plan.Edge{
			{From: "src_enum", To: "src", Partition: plan.Broadcast},
			{From: "src", To: "src_enum", Partition: plan.Rebalance, Feedback: true},
			{From: "src", To: "out", Partition: plan.Hash},
		},
	})
}

func smallSpec() Spec {
	return Spec{
		Digest: "spec1", Plan: smallPlan(), Raw: json.RawMessage(`{"job":"shop"}`),
		Settings: Settings{
			Interval: time.Second, IdleInterval: 10 * time.Second, Timeout: 60 * time.Second, MaxUncommitted: 2,
			Backoff: time.Second, Cap: 3, Window: 10 * time.Minute,
		},
	}
}

func newWorld(b budget) *world {
	w := &world{
		now: start, plans: map[string]*plan.Deployment{}, links: map[epoch.Ref]*epoch.Manifest{},
		handed: map[epoch.ID]string{}, facts: map[string]Event{}, told: map[string]bool{}, left: b,
	}
	w.lead(1)
	w.feed(IntentRead{Moment: w.moment(), Intent: Intent{}.Submit("shop", "spec1", "r1", start), Life: "life1"})
	return w
}

func (w *world) moment() Moment { return Moment{At: w.now, Roll: 0.5} }

// clone copies what transitions change in place; values that are only replaced are shared.
func (w *world) clone() *world {
	c := *w
	c.heads = slices.Clone(w.heads)
	c.plans, c.links, c.handed, c.facts = maps.Clone(w.plans), maps.Clone(w.links), maps.Clone(w.handed), maps.Clone(w.facts)
	c.told = maps.Clone(w.told)
	c.under, c.ghosts, c.channel = slices.Clone(w.under), slices.Clone(w.ghosts), slices.Clone(w.channel)
	c.target.rows = slices.Clone(w.target.rows)
	for i := range c.procs {
		c.procs[i].staged = slices.Clone(w.procs[i].staged)
	}
	return &c
}

func (w *world) view() View {
	if len(w.heads) == 0 {
		return View{At: w.now}
	}
	h := w.heads[len(w.heads)-1]
	return View{Head: &h, Revision: uint64(len(w.heads)), At: w.now}
}

// lead starts a leader of a term; what the one before had under way may still land.
func (w *world) lead(term uint64) {
	intent, life := w.leader.Intent, w.leader.Life
	for _, e := range w.under {
		if x, ok := e.(WriteHead); ok {
			w.ghosts = append(w.ghosts, x)
		}
	}
	w.under = nil
	clear(w.told)
	w.leader = NewState("shop", term)
	w.feed(HeadRead{Moment: w.moment(), View: w.view()})
	if intent != nil {
		w.feed(IntentRead{Moment: w.moment(), Intent: *intent, Life: life})
	}
	w.feed(w.nodes())
}

func (w *world) nodes() NodesRead {
	e := NodesRead{Moment: w.moment(), Settled: true}
	for i, caps := range []string{"source:generator", "sink:blackhole"} {
		p := w.procs[i]
		if p.dead {
			continue
		}
		e.Nodes = append(e.Nodes, LiveNode{Node: plan.Node{Placement: w.place(i), Capabilities: []string{caps}, Free: 4}})
	}
	return e
}

func (w *world) place(i int) plan.Placement {
	return plan.Placement{Node: string(rune('a' + i)), Incarnation: fmt.Sprintf("%c%d", 'a'+i, w.procs[i].incarnation)}
}

// feed gives the leader an event and takes its effects in.
func (w *world) feed(e Event) {
	var effects []Effect
	w.leader, effects = Step(w.leader, e)
	if w.tracing {
		w.log = append(w.log, "> "+describeEvent(e))
		for _, x := range effects {
			w.log = append(w.log, "    < "+describeEffect(x))
		}
	}
	for _, x := range effects {
		switch x.(type) {
		case Announce, StepDown:
		case Collect:
			w.feed(Swept{Moment: w.moment(), Op: OpCollect})
		default:
			w.under = append(w.under, x)
		}
	}
	if !w.left.eager {
		return
	}
	for i, x := range w.under {
		if _, ok := x.(WriteHead); !ok {
			w.perform(i)
			return // it has fed the answer, and so has looked for more
		}
	}
}

// store is the registry's compare-and-swap.
func (w *world) store(x WriteHead) bool {
	if x.Expect != uint64(len(w.heads)) {
		return false
	}
	w.heads = append(w.heads, x.Head)
	if f := x.Head.InFlight; f != nil {
		who := fmt.Sprintf("fence %d", x.Head.Fence)
		if before, ok := w.handed[f.Epoch]; ok && before != who {
			panic(fmt.Sprintf("epoch %d handed out by %s and by %s", f.Epoch, before, who))
		}
		w.handed[f.Epoch] = who
	}
	return true
}

// perform does the i-th effect under way and gives the leader its answer.
func (w *world) perform(i int) {
	e := w.under[i]
	w.under = slices.Delete(w.under, i, i+1)
	m := w.moment()
	switch e := e.(type) {
	case WriteHead:
		if w.store(e) {
			w.feed(HeadWritten{Moment: m, Revision: uint64(len(w.heads))})
		} else {
			w.feed(HeadUnsure{Moment: m})
		}
	case ReadHead:
		w.feed(HeadRead{Moment: m, View: w.view()})
	case ReadSpec:
		w.feed(SpecRead{Moment: m, Spec: smallSpec()})
	case ResetStreams:
		w.channel = slices.DeleteFunc(w.channel, func(p parcel) bool { return p.fence < e.Fence })
		w.feed(StreamsReset{Moment: m, Fence: e.Fence})
	case StorePlan:
		key := fmt.Sprintf("plan.%d.%d", e.Plan.Fence, w.leader.Term)
		w.plans[key] = e.Plan
		w.feed(PlanStored{Moment: m, Plan: e.Plan, Ref: PlanRef{Fence: e.Plan.Fence, Key: key, Digest: plan.Digest(e.Plan.Bytes()), Restore: nil}})
	case FetchPlan:
		w.feed(PlanFetched{Moment: m, Plan: w.plans[e.Ref.Key]})
	case FetchChain:
		w.feed(ChainFetched{Moment: m, Links: w.chain(e.Durable.Ref, e.Committed)})
	case StoreManifest:
		w.links[e.Ref] = e.Manifest
		w.feed(ManifestStored{Moment: m, Durable: Durable{
			Ref: e.Ref, Key: fmt.Sprintf("epoch.%d.%d", e.Ref.Epoch, w.leader.Term), Fence: e.Manifest.Fence,
			Kind: e.Manifest.Kind, At: e.Manifest.Completed,
		}})
	case DropStreams:
		w.channel = nil
		w.feed(Swept{Moment: m, Op: OpDropStreams, Fence: e.Fence})
	case Erase:
		w.feed(Swept{Moment: m, Op: OpErase, Fence: e.Fence})
	default:
		panic(fmt.Sprintf("effect %T", e))
	}
}

func (w *world) chain(durable epoch.Ref, committed epoch.ID) []epoch.Link {
	var links []epoch.Link
	for ref := durable; !ref.IsZero(); ref = w.links[ref].Prev {
		links = append(links, epoch.Link{Ref: ref, Manifest: w.links[ref]})
		if ref.Epoch <= committed {
			break
		}
	}
	slices.Reverse(links)
	return links
}

// observe lets a process take in a version of the head and do everything it wants.
func (w *world) observe(i, version int) {
	p := &w.procs[i]
	p.version = version
	h := w.heads[version-1]
	pl := w.place(i)
	for range 8 {
		todo := Want(&h, Self{Node: pl.Node, Incarnation: pl.Incarnation}, p.held)
		if len(todo) == 0 {
			return
		}
		for _, a := range todo {
			w.act(i, &h, a)
		}
	}
	panic("process does not come to rest")
}

func (w *world) act(i int, h *Head, a Action) {
	p := &w.procs[i]
	switch a := a.(type) {
	case Stop:
		p.held = Held{Releasing: p.held.Releasing}
	case ReadPlan:
		p.held.Fence, p.held.Plan = h.Fence, w.plans[a.Ref.Key]
	case Start:
		p.held.Started = true
		p.rows, p.barriers, p.staged, p.position = 0, 0, nil, 0
		if a.Restore != nil {
			p.restored, p.passed = a.Restore.Epoch, a.Restore.Epoch
			fmt.Sscan(w.links[a.Restore.Ref].Subtasks[idReader].Position.Fields["n"], &p.position)
		}
		for _, id := range a.Subtasks {
			r := ReadyFact{Fence: a.Fence, Subtask: id, Incarnation: w.place(i).Incarnation}
			if id == idCommit {
				if w.target.row.Fence > a.Fence {
					w.target.refused++
					continue
				}
				w.target.row.Life, w.target.row.Fence = h.Life, a.Fence
				row := w.target.row
				r.Ledger = &row
			}
			w.say("ready "+id.String(), ReadySeen{Fact: r})
		}
	case Emit:
		p.held.Emitting = true
	case Drain:
		p.held.Draining = true
		if i == 0 {
			w.say("drained "+idReader.String(), DrainedSeen{Fact: DrainedFact{Fence: a.Fence, Subtask: idReader}})
		}
	case Barrier:
		p.held.Barrier = a.Epoch
		if i == 0 {
			w.inject(p, a)
		}
	case CommitUpTo:
		p.held.Durable = a.Durable.Epoch
		if i == 1 {
			p.staged = slices.DeleteFunc(p.staged, func(s stagedP) bool { return s.Epoch <= a.Durable.Epoch })
			w.commit(a)
		}
	case Confirm:
		p.held.Committed = a.Epoch
	case DropExternal:
		p.held.Releasing = a.Request
		w.say("released", ReleaseSeen{Fact: ReleasedFact{Fence: a.Fence, Node: w.place(i).Node, Request: a.Request}})
	}
}

// inject is the source's side of an epoch: the cut is exclusive, the row before the barrier belongs to the epoch.
func (w *world) inject(p *proc, a Barrier) {
	from := p.position
	if !p.held.Draining {
		p.position++
		p.rows++
	}
	te, td := epoch.Tally{Messages: uint64(p.barriers)}, epoch.Tally{Messages: uint64(p.rows), Rows: uint64(p.rows)}
	w.say("ack "+idEnum.String(), AckSeen{Fact: AckFact{
		Fence: a.Fence, Subtask: idEnum, Epoch: a.Epoch, Out: map[plan.Channel]epoch.Tally{chEnum: te},
	}})
	w.say("ack "+idReader.String(), AckSeen{Fact: AckFact{
		Fence: a.Fence, Subtask: idReader, Epoch: a.Epoch,
		Position: position.New(position.Generator, map[string]string{"n": fmt.Sprint(p.position)}),
		In:       map[plan.Channel]epoch.Tally{chEnum: te}, Out: map[plan.Channel]epoch.Tally{chData: td},
	}})
	w.channel = append(w.channel, parcel{fence: a.Fence, epoch: a.Epoch, from: from, to: p.position, rows: p.rows})
	p.barriers++
}

// receive is the sink's side: stage, then ack what no durable epoch is known to cover.
func (w *world) receive(decline bool) {
	x := w.channel[0]
	w.channel = w.channel[1:]
	p := &w.procs[1]
	if x.fence != p.held.Fence || !p.held.Started {
		return
	}
	if x.to > x.from {
		p.staged = append(p.staged, stagedP{Epoch: p.passed + 1, From: x.from, To: x.to})
	}
	p.rows += x.to - x.from
	p.passed = x.epoch
	ack := AckFact{
		Fence: x.fence, Subtask: idWriter, Epoch: x.epoch,
		In: map[plan.Channel]epoch.Tally{chData: {Messages: uint64(p.rows), Rows: uint64(p.rows)}},
	}
	if w.lost {
		// Rows were lost on the way: the writer has counted fewer.
		ack.In[chData] = epoch.Tally{}
	}
	if decline {
		ack.Declined = "told to"
	}
	for _, s := range p.staged {
		b, err := json.Marshal(s)
		if err != nil {
			panic(err)
		}
		ack.Staged = append(ack.Staged, epoch.Staged{Epoch: s.Epoch, Subtask: idWriter, Data: b, Rows: uint64(s.To - s.From)})
	}
	w.say("ack "+idWriter.String(), AckSeen{Fact: ack})
}

// commit applies every epoch on the chain after the ledger's, in order, each in one step with the ledger.
func (w *world) commit(a CommitUpTo) {
	t := &w.target
	for _, l := range w.chain(a.Durable.Ref, 0) {
		s := l.Manifest.Sinks["out"]
		switch {
		case t.row.Fence != a.Fence:
			t.refused++
			return
		case l.Ref.Epoch <= t.row.Ref.Epoch, len(s.Staged) == 0:
			continue
		case s.Prev != t.row.Ref:
			panic(fmt.Sprintf("ledger at %d, manifest %d has prev %d", t.row.Ref.Epoch, l.Ref.Epoch, s.Prev.Epoch))
		}
		for _, piece := range s.Staged {
			var r stagedP
			if err := json.Unmarshal(piece.Data, &r); err != nil {
				panic(err)
			}
			for n := r.From; n < r.To; n++ {
				t.rows = append(t.rows, n)
			}
		}
		t.row.Ref = l.Ref
	}
	w.say("committed "+idCommit.String(), CommitSeen{Fact: CommittedFact{Fence: a.Fence, Subtask: idCommit, Epoch: a.Durable.Epoch}})
}

// transition is one thing that can happen.
type transition struct {
	name string
	do   func(w *world)
}

// possible lists everything that can happen next.
func (w *world) possible() []transition {
	var all []transition
	add := func(name string, do func(*world)) { all = append(all, transition{name, do}) }
	for i, e := range w.under {
		name := strings.TrimPrefix(fmt.Sprintf("%T", e), "job.")
		add("done "+name, func(w *world) { w.perform(i) })
		if _, ok := e.(WriteHead); ok && w.left.unsure > 0 {
			add("lost reply", func(w *world) { w.left.unsure--; w.unsure(i, true) })
			add("lost request", func(w *world) { w.left.unsure--; w.unsure(i, false) })
		}
	}
	for i := range w.ghosts {
		add("old leader's write lands", func(w *world) {
			x := w.ghosts[i]
			w.ghosts = slices.Delete(w.ghosts, i, i+1)
			w.store(x)
		})
	}
	for i := range w.procs {
		p := &w.procs[i]
		if p.dead {
			add(fmt.Sprintf("%s starts again", w.place(i).Node), func(w *world) {
				w.procs[i] = proc{incarnation: w.procs[i].incarnation + 1}
				w.feed(w.nodes())
			})
			continue
		}
		if n := len(w.heads); p.version < n {
			add(fmt.Sprintf("%s sees the head", w.place(i).Node), func(w *world) { w.observe(i, n) })
			if p.version+1 < n && w.left.lag {
				add(fmt.Sprintf("%s sees an older head", w.place(i).Node), func(w *world) { w.observe(i, p.version+1) })
			}
		}
		if w.left.crashes > 0 {
			add(fmt.Sprintf("%s dies", w.place(i).Node), func(w *world) { w.left.crashes--; w.crash(i) })
		}
	}
	if len(w.channel) > 0 && !w.procs[1].dead {
		add("writer receives", func(w *world) { w.receive(false) })
		if w.left.declines > 0 {
			add("writer declines", func(w *world) { w.left.declines--; w.receive(true) })
		}
		if w.left.losses > 0 {
			add("rows are lost", func(w *world) { w.left.losses--; w.lost = true; w.receive(false); w.lost = false })
		}
	}
	for _, k := range slices.Sorted(maps.Keys(w.facts)) {
		if !w.told[k] || w.left.repeat {
			add("fact "+k, func(w *world) {
				w.told[k] = true
				w.feed(stamped(w.facts[k], w.moment()))
			})
		}
	}
	if at := w.leader.Wake(w.now); !at.IsZero() && w.left.ticks > 0 {
		add("time passes", func(w *world) {
			w.left.ticks--
			w.now = at
			w.feed(Tick{Moment: w.moment()})
		})
	}
	if w.left.takeovers > 0 {
		add("leader dies", func(w *world) { w.left.takeovers--; w.lead(w.leader.Term + 1) })
	}
	if w.left.deletes > 0 && w.leader.Head != nil && w.leader.Head.Phase == Running {
		add("stream is lost", func(w *world) {
			w.left.deletes--
			w.channel = nil
			w.feed(StreamLost{Moment: w.moment(), Fence: w.leader.Head.Fence, Why: "gone"})
		})
	}
	if w.left.drain && w.leader.Intent.Wish == WishRunning {
		add("user drains", func(w *world) {
			w.left.drain = false
			w.feed(IntentRead{Moment: w.moment(), Intent: w.leader.Intent.Drained(time.Hour, "r2", start), Life: "life2"})
		})
	}
	if w.left.cancel && w.leader.Intent.Wish == WishRunning {
		add("user cancels", func(w *world) {
			w.left.cancel = false
			w.feed(IntentRead{Moment: w.moment(), Intent: w.leader.Intent.Cancelled("r2", start), Life: "life2"})
		})
	}
	return all
}

// unsure loses the answer of a write, or the write itself.
func (w *world) unsure(i int, stored bool) {
	x := w.under[i].(WriteHead)
	w.under = slices.Delete(w.under, i, i+1)
	if stored {
		w.store(x)
	}
	w.feed(EffectFailed{Moment: w.moment(), Op: OpWriteHead, Fault: fault.New(fault.BusAmbiguous, "", ""), Class: fault.Transient})
}

// crash kills a process; facts it has told and nobody has read are lost with it.
func (w *world) crash(i int) {
	w.procs[i].dead = true
	for k, f := range w.facts {
		id := fmt.Sprint(factSubtask(f))
		if (i == 0) == strings.HasPrefix(id, "src") {
			delete(w.facts, k)
		}
	}
	w.feed(w.nodes())
}

// say puts a fact into the stream, in the place of the last one of its subject.
func (w *world) say(key string, fact Event) {
	w.facts[key] = fact
	delete(w.told, key)
}

func factSubtask(e Event) plan.SubtaskID {
	switch e := e.(type) {
	case ReadySeen:
		return e.Fact.Subtask
	case AckSeen:
		return e.Fact.Subtask
	case CommitSeen:
		return e.Fact.Subtask
	case DrainedSeen:
		return e.Fact.Subtask
	default:
		return plan.SubtaskID{Vertex: "src"}
	}
}

// stamped gives a fact the time at which the leader takes it in.
func stamped(e Event, m Moment) Event {
	switch e := e.(type) {
	case ReadySeen:
		e.Moment = m
		return e
	case AckSeen:
		e.Moment = m
		return e
	case CommitSeen:
		e.Moment = m
		return e
	case DrainedSeen:
		e.Moment = m
		return e
	case ReleaseSeen:
		e.Moment = m
		return e
	}
	panic(fmt.Sprintf("fact %T", e))
}
