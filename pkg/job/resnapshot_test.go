package job

import (
	"encoding/json"
	"reflect"
	"testing"

	"weir.dev/weir/pkg/fault"
)

func (w *world) resnapshot(tables ...string) {
	w.feed(IntentRead{Moment: w.moment(), Intent: w.leader.Intent.Resnapshotted(tables, "r9", w.now)})
	w.settle()
}

// An order takes a running job back to its durable epoch once, uses up no budget, and stays in the head until it is replaced.
func TestResnapshotOfARunningJob(t *testing.T) {
	t.Parallel()
	w := running(t)
	before := *w.leader.Head
	w.resnapshot("public.a")
	h := w.leader.Head
	if h.Fence != before.Fence+1 || len(h.Restarts) != 0 || h.Phase != Running {
		t.Fatalf("got %s, restarts %v", describeHead(h), h.Restarts)
	}
	want := Resnapshot{Seq: 1, Tables: []string{"public.a"}, Fence: before.Fence + 1}
	if h.Resnapshot == nil || !reflect.DeepEqual(*h.Resnapshot, want) || h.Handled.Resnapshot != 1 {
		t.Fatalf("the head has the order %+v, handled %+v", h.Resnapshot, h.Handled)
	}
	if h.Durable.Fence != h.Fence || h.Ordered() != nil {
		t.Errorf("with a durable epoch of fence %d the order is still open: %+v", h.Durable.Fence, h.Ordered())
	}
	w.feed(IntentRead{Moment: w.moment(), Intent: *w.leader.Intent})
	w.settle()
	if w.leader.Head.Fence != h.Fence {
		t.Errorf("the same intent again began fence %d", w.leader.Head.Fence)
	}
}

// An order lets a FAILED job go on; of a job that drains it is refused, and a new life knows nothing of it.
func TestResnapshotOfAFailedJob(t *testing.T) {
	t.Parallel()
	w := running(t)
	f := fault.New(fault.PGSchemaChanged, "sources.db", "a column is gone")
	raw, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	w.feed(FailureSeen{Moment: w.moment(), Fact: FailedFact{
		Fence: w.leader.Head.Fence, Subtask: idReader, Class: "PERMANENT", Fault: raw,
	}})
	w.settle()
	if w.leader.Head.Phase != Failed {
		t.Fatalf("got %s", describeHead(w.leader.Head))
	}
	w.resnapshot()
	if h := w.leader.Head; h.Phase != Running || h.Resnapshot == nil || h.Resnapshot.Fence != h.Fence {
		t.Fatalf("got %s with order %+v", describeHead(h), h.Resnapshot)
	}
}

func TestOrdersTogether(t *testing.T) {
	t.Parallel()
	r := Resnapshot{Tables: []string{"p.b", "p.a"}}
	if got := r.And([]string{"p.c", "p.a"}); !reflect.DeepEqual(got, []string{"p.a", "p.b", "p.c"}) {
		t.Errorf("got %v", got)
	}
	if got := r.And(nil); got != nil {
		t.Errorf("with all: %v", got)
	}
	if got := (&Resnapshot{}).And([]string{"p.a"}); got != nil {
		t.Errorf("all with some: %v", got)
	}
}
