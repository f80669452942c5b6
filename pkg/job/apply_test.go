package job

import (
	"encoding/json"
	"testing"

	"weir.dev/weir/pkg/fault"
)

func (w *world) apply(digest string) {
	w.feed(IntentRead{Moment: w.moment(), Intent: w.leader.Intent.Applying(digest, "r9", w.now)})
	w.settle()
}

// A spec is taken into a running life once, uses up no budget, and the head says from which epoch on it holds.
func TestApplyToARunningJob(t *testing.T) {
	t.Parallel()
	w := running(t)
	before := *w.leader.Head
	w.apply("spec2")
	h := w.leader.Head
	if h.Fence != before.Fence+1 || len(h.Restarts) != 0 || h.Phase != Running || h.SpecDigest != "spec2" || h.Life != before.Life {
		t.Fatalf("got %s, restarts %v, spec %s", describeHead(h), h.Restarts, h.SpecDigest)
	}
	want := Applied{Seq: 1, SpecDigest: "spec2", Fence: h.Fence, Epoch: before.Durable.Epoch + 1}
	if h.Applied == nil || *h.Applied != want || h.Handled.Applied != 1 {
		t.Fatalf("the head has %+v, handled %+v; want %+v", h.Applied, h.Handled, want)
	}
	w.feed(IntentRead{Moment: w.moment(), Intent: *w.leader.Intent})
	w.settle()
	if w.leader.Head.Fence != h.Fence {
		t.Errorf("the same intent again began fence %d", w.leader.Head.Fence)
	}
	// The same spec again is another order: its patterns may match other tables today.
	w.apply("spec2")
	if again := w.leader.Head; again.Fence != h.Fence+1 || again.Applied.Seq != 2 || again.Applied.Epoch <= want.Epoch {
		t.Errorf("the same spec again: %s, applied %+v", describeHead(again), again.Applied)
	}
}

// A spec lets a FAILED job go on: the undo of one that cannot be run. Orders that wait together are given together.
func TestApplyToAFailedJob(t *testing.T) {
	t.Parallel()
	w := running(t)
	raw, err := json.Marshal(fault.New(fault.PGNoIdentity, "sources.db", "table a"))
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
	before := w.leader.Head.Fence
	w.feed(IntentRead{Moment: w.moment(), Intent: w.leader.Intent.Applying("spec2", "r8", w.now).Resnapshotted(nil, "r9", w.now)})
	w.settle()
	h := w.leader.Head
	if h.Phase != Running || h.Fence != before+1 || h.Applied == nil || h.Resnapshot == nil || h.Applied.Fence != h.Fence || h.Resnapshot.Fence != h.Fence {
		t.Fatalf("got %s, applied %+v, order %+v", describeHead(h), h.Applied, h.Resnapshot)
	}
}

// A life that begins after an order has the newest spec and nothing left to be applied.
func TestApplyIsOfOneLife(t *testing.T) {
	t.Parallel()
	w := running(t)
	w.apply("spec2")
	w.feed(IntentRead{Moment: w.moment(), Intent: w.leader.Intent.Removed("r2", w.now), Life: "life2"})
	w.settle()
	w.target = target{}
	w.feed(IntentRead{Moment: w.moment(), Intent: w.leader.Intent.Submit("shop", "spec3", "r3", w.now), Life: "life3"})
	w.settle()
	h := w.leader.Head
	if h.Life != "life3" || h.SpecDigest != "spec3" || h.Applied != nil || h.Handled.Applied != 1 {
		t.Errorf("got %s, spec %s, applied %+v, handled %+v", describeHead(h), h.SpecDigest, h.Applied, h.Handled)
	}
}
