package job

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/plan"
)

// joined is a world whose job has come to rest, and another process that has joined just now.
func joined(t *testing.T) *world {
	t.Helper()
	w := running(t)
	w.join()
	return w
}

// epoch lets the next epoch become durable.
func (w *world) epoch() {
	w.settle()
	w.now = w.leader.Wake(w.now)
	w.feed(Tick{Moment: w.moment()})
	w.settle()
}

// ⚑ Work moves to a process that has joined, right behind a durable epoch and in one write with it: that epoch is kept,
// none is given up, and the attempt costs no budget and no pause.
func TestJoiningMovesWorkBehindADurableEpoch(t *testing.T) {
	t.Parallel()
	w := joined(t)
	w.silent(t, "at once")
	w.epoch()
	h := w.leader.Head
	if h.Fence != 2 || h.Phase != Running || durableEpoch(h) < 2 || len(h.Restarts) != 1 || h.Restarts[0].Kind != RestartFree {
		t.Fatalf("got %s, restarts %+v", describeHead(h), h.Restarts)
	}
	moved := -1
	for i := range w.heads {
		if w.heads[i].Reason.Code == "REBALANCE" {
			moved = i
			break
		}
	}
	if moved < 1 {
		t.Fatal("no head says REBALANCE")
	}
	before, after := w.heads[moved-1], w.heads[moved]
	if before.InFlight == nil || after.Durable == nil || after.Durable.Epoch != before.InFlight.Epoch || after.Fence != before.Fence+1 ||
		after.Skipped != 0 || !after.RetryAt.IsZero() {
		t.Errorf("moved from %s to %s", describeHead(&before), describeHead(&after))
	}
	if got := w.leader.Attempt.Plan.Placements[idCommit].Node; got != "c" {
		t.Errorf("the committer is on %s", got)
	}
}

// The same roster never moves work twice, however long it lasts and whatever room other jobs leave.
func TestTheSameRosterMovesOnce(t *testing.T) {
	t.Parallel()
	w := joined(t)
	for i := range 20 {
		e := w.nodes()
		for n := range e.Nodes {
			e.Nodes[n].Free = 4 + (i+n)%3*20
		}
		w.feed(e)
		w.epoch()
	}
	if h := w.leader.Head; h.Fence != 2 || durableEpoch(h) < 20 {
		t.Errorf("got %s", describeHead(h))
	}
}

// A roster that keeps changing moves nothing until it has been the same for a while.
func TestARosterThatChangesMovesNothing(t *testing.T) {
	t.Parallel()
	w := joined(t)
	for range 6 {
		w.feed(InputSeen{Moment: w.moment(), Fact: InputFact{Fence: 1, Subtask: idReader, After: w.leader.Head.NextEpoch - 1}})
		w.procs[2].incarnation++
		w.feed(w.nodes())
		w.epoch()
	}
	if h := w.leader.Head; h.Fence != 1 || durableEpoch(h) != 7 {
		t.Errorf("got %s", describeHead(h))
	}
}

// What keeps work where it is.
func TestNothingMovesWhile(t *testing.T) {
	t.Parallel()
	b, err := json.Marshal(fault.New(fault.JobSinkDown, "sinks.out", "connection refused"))
	if err != nil {
		t.Fatal(err)
	}
	for name, hold := range map[string]func(w *world){
		"the list of processes is not settled": func(w *world) {
			e := w.nodes()
			e.Settled = false
			w.feed(e)
		},
		"the process leaves again": func(w *world) {
			e := w.nodes()
			e.Nodes[2].Leaving = true
			w.feed(e)
		},
		"the process is full": func(w *world) {
			e := w.nodes()
			e.Nodes[2].Free = 0
			w.feed(e)
		},
		"the process can do something else": func(w *world) {
			e := w.nodes()
			e.Nodes[2].Capabilities = []string{"sink:files"}
			w.feed(e)
		},
		"the target takes nothing": func(w *world) {
			w.feed(CommitSeen{Moment: w.moment(), Fact: CommittedFact{Fence: 1, Subtask: idCommit, Epoch: 1, Waiting: &Trouble{Fault: b, Since: w.now}}})
			w.told["committed "+idCommit.String()] = true
		},
		"the job drains": func(w *world) {
			w.feed(IntentRead{Moment: w.moment(), Intent: w.leader.Intent.Drained(time.Hour, "r2", start), Life: "life2"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := joined(t)
			hold(w)
			w.now = w.now.Add(steadyRoster)
			w.epoch()
			if h := w.leader.Head; h.Fence != 1 || durableEpoch(h) < 2 {
				t.Errorf("got %s", describeHead(h))
			}
		})
	}
}

// Only what is markedly more even is worth an attempt.
func TestMoreEven(t *testing.T) {
	t.Parallel()
	const kind = "sink:blackhole"
	deployed := func(counts ...int) *plan.Deployment {
		d := &plan.Deployment{Placements: make(map[plan.SubtaskID]plan.Placement)}
		d.Vertices = []plan.Vertex{{ID: "out", Role: plan.Writer, Capability: kind}}
		next := 0
		for node, n := range counts {
			for range n {
				d.Placements[plan.SubtaskID{Vertex: "out", Index: next}] = plan.Placement{Node: fmt.Sprint(node)}
				next++
			}
		}
		return d
	}
	for _, tt := range []struct {
		now, next []int
		move      bool
	}{
		{[]int{2, 0}, []int{1, 1}, true},
		{[]int{1, 0}, []int{1, 0}, false},
		{[]int{2, 1, 0}, []int{1, 1, 1}, true},
		{[]int{3, 0}, []int{2, 1}, true},
		{[]int{3, 2}, []int{3, 2}, false},
		{[]int{3, 1}, []int{2, 2}, true},
		{[]int{4, 3, 2}, []int{3, 3, 3}, true},
		{[]int{2, 1}, []int{1, 2}, false},
		{[]int{2, 2, 0}, []int{2, 1, 1}, true},
		{[]int{1, 1, 0}, []int{1, 1, 0}, false},
		{[]int{1, 2}, []int{3, 0}, false},
		{[]int{4, 0}, []int{4, 0}, false},
	} {
		nodes := make([]plan.Node, len(tt.now))
		for i := range nodes {
			nodes[i] = plan.Node{Placement: plan.Placement{Node: fmt.Sprint(i)}, Capabilities: []string{kind}}
		}
		nodes = append(nodes, plan.Node{Placement: plan.Placement{Node: "other"}, Capabilities: []string{"source:generator"}})
		if why := moreEven(deployed(tt.now...), deployed(tt.next...), nodes); (why != "") != tt.move {
			t.Errorf("%v to %v: %q, want a move: %t", tt.now, tt.next, why, tt.move)
		}
	}
}
