package job

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/plan"
)

// world is a whole mesh as a value: a registry, a leader, two processes, the channel between them and a target. It moves
// by transitions, each of which is one thing that can happen; every order of them is a possible history. Process 0 hosts
// enumerator and reader, process 1 writer and committer; process 2 may join and take from process 1. The reader emits one row per epoch, numbered by its position.
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

	procs   [3]proc
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
	hosts       []plan.SubtaskID
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
	ticks, crashes, takeovers, unsure, losses, declines, deletes, joins int
	// repeat delivers facts again that the leader has taken in already.
	drain, cancel, apply, suspend, resume, savepoint, rewind, repeat bool
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
	w.procs[2].dead = true
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
	for k := range w.told {
		// Who is ready matters only until RUNNING; the other facts are gathered again.
		if v := w.view(); v.Head == nil || !v.Head.Phase.Active() || !strings.HasPrefix(k, "ready") {
			delete(w.told, k)
		}
	}
	w.leader = NewState("shop", term)
	w.feed(HeadRead{Moment: w.moment(), View: w.view()})
	if intent != nil {
		w.feed(IntentRead{Moment: w.moment(), Intent: *intent, Life: life})
	}
	w.feed(w.nodes())
}

func (w *world) nodes() NodesRead {
	e := NodesRead{Moment: w.moment(), Settled: true}
	for i, caps := range []string{"source:generator", "sink:blackhole", "sink:blackhole"} {
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
		switch x.(type) { //nolint:gochecksumtype // what is not named is answered later
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
	switch e := e.(type) { //nolint:gochecksumtype // the others are never under way
	case WriteHead:
		if w.store(e) {
			w.feed(HeadWritten{Moment: m, Revision: uint64(len(w.heads))})
		} else {
			w.feed(HeadUnsure{Moment: m})
		}
	case ReadHead:
		w.feed(HeadRead{Moment: m, View: w.view()})
	case ReadSpec:
		s := smallSpec()
		s.Digest, s.Raw = e.Digest, json.RawMessage(strconv.Quote(e.Digest))
		w.feed(SpecRead{Moment: m, Spec: s})
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
	case FetchManifest:
		w.feed(ManifestFetched{Moment: m, Link: epoch.Link{Ref: e.Ref, Manifest: w.links[e.Ref]}})
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
