package job

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/plan"
)

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
		if i == 2 && p.dead {
			if w.left.joins > 0 {
				add("c joins", func(w *world) { w.left.joins--; w.join() })
			}
			continue
		}
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
		if w.left.crashes > 0 && i < 2 {
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
	if w.left.suspend && w.leader.Intent.Wish == WishRunning {
		add("user suspends", func(w *world) {
			w.left.suspend = false
			w.feed(IntentRead{Moment: w.moment(), Intent: w.leader.Intent.Suspended("r2", start), Life: "life2"})
		})
	}
	if h := w.leader.Head; h != nil && h.Phase == Suspended {
		if w.left.resume {
			add("user resumes", func(w *world) {
				w.left.resume = false
				w.feed(IntentRead{Moment: w.moment(), Intent: w.leader.Intent.Resumed("r3", start), Life: "life2"})
			})
		}
		if w.left.rewind && h.Durable != nil {
			add("user rewinds", func(w *world) {
				w.left.rewind = false
				w.feed(IntentRead{Moment: w.moment(), Intent: w.leader.Intent.Restoring("", h.Durable.Ref, false, "r3", start), Life: "life2"})
			})
		}
	}
	if h := w.leader.Head; w.left.savepoint && h != nil && h.Phase == Running {
		add("user wants a savepoint", func(w *world) {
			w.left.savepoint = false
			w.feed(IntentRead{Moment: w.moment(), Intent: w.leader.Intent.Savepointed("a", "r4", start), Life: "life2"})
		})
	}
	if w.left.apply && w.leader.Intent.Wish == WishRunning && w.leader.Head != nil {
		add("user applies a spec", func(w *world) {
			w.left.apply = false
			w.feed(IntentRead{Moment: w.moment(), Intent: w.leader.Intent.Applying("spec2", "r2", start), Life: "life2"})
		})
	}
	return all
}

// join adds a process that can do what process 1 does.
func (w *world) join() {
	w.procs[2] = proc{}
	w.feed(w.nodes())
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
	switch e := e.(type) { //nolint:gochecksumtype // only facts are kept
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
	switch e := e.(type) { //nolint:gochecksumtype // only facts are kept
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
