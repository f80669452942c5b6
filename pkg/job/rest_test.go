package job

import (
	"encoding/json"
	"testing"
	"time"

	"weir.dev/weir/pkg/fault"
)

func TestDrainTimeoutIsResumable(t *testing.T) {
	t.Parallel()
	w := running(t)
	w.feed(IntentRead{Moment: w.moment(), Intent: w.leader.Intent.Drained(time.Minute, "r2", w.now)})
	w.perform(0) // DRAINING; the sources never come to their end
	w.later(time.Minute)
	if h := w.writing(t); h.Phase != Failed || h.Reason.Code != string(fault.JobDrainTimeout) || h.Durable.Epoch != 1 {
		t.Fatalf("got %s", describeHead(h))
	}
	w.settle()
	w.feed(IntentRead{Moment: w.moment(), Intent: w.leader.Intent.Resumed("r3", w.now)})
	w.settle()
	if h := w.leader.Head; h.Phase != Running || h.Drain != nil || h.Fence != 2 || h.Durable.Epoch <= 1 {
		t.Errorf("resumed to %s", describeHead(h))
	}
}

// What a life made outside the bus is dropped by one live process; when it dies, or cannot, by another.
func TestReleaseGoesRound(t *testing.T) {
	t.Parallel()
	w := running(t)
	w.feed(IntentRead{Moment: w.moment(), Intent: w.leader.Intent.Cancelled("r2", w.now)})
	for len(w.under) > 0 {
		w.perform(0)
	}
	r := w.leader.Head.Release
	if r == nil || r.Node != "a" || r.Incarnation != "a0" || r.Try != 1 || r.Done {
		t.Fatalf("release %+v", r)
	}
	w.procs[0].incarnation++
	w.feed(w.nodes())
	w.perform(0)
	if r = w.leader.Head.Release; r.Incarnation != "a1" || r.Try != 2 {
		t.Fatalf("after its death: %+v", r)
	}
	answer := func(try int, f json.RawMessage) ReleaseSeen {
		return ReleaseSeen{Moment: w.moment(), Fact: ReleasedFact{Node: "a", Request: ReleaseID{Life: "life1", Try: try}, Fault: f}}
	}
	w.feed(answer(1, nil))
	w.silent(t, "an answer to an older request")
	w.feed(answer(2, json.RawMessage(`{}`)))
	w.silent(t, "it could not; another try waits")
	w.later(releaseRetry)
	w.perform(0)
	if r = w.leader.Head.Release; r.Try != 3 || r.Done {
		t.Fatalf("after it could not: %+v", r)
	}
	w.feed(answer(3, nil))
	w.perform(0)
	if r = w.leader.Head.Release; !r.Done || len(r.Released) != 1 {
		t.Errorf("released: %+v", r)
	}
}

// ⚑ A job made again under its name is another job: life differs, fence and nextEpoch go on counting; an intent that came
// while the old life was under way starts nothing later.
func TestNewLifeCountsOn(t *testing.T) {
	t.Parallel()
	w := running(t)
	w.feed(IntentRead{Moment: w.moment(), Intent: w.leader.Intent.Submit("shop", "spec1", "ignored", w.now), Life: "life2"})
	w.feed(IntentRead{Moment: w.moment(), Intent: w.leader.Intent.Drained(0, "r3", w.now), Life: "life3"})
	w.settle()
	ended := *w.leader.Head
	if ended.Phase != Finished || !ended.Release.Done {
		t.Fatalf("got %s", describeHead(&ended))
	}
	again := *w.leader.Intent
	again.Wish = WishRunning
	w.feed(IntentRead{Moment: w.moment(), Intent: again, Life: "life4"})
	w.settle()
	if w.leader.Head.Life != ended.Life {
		t.Fatal("a start that was asked for before the end began another life")
	}
	w.target = target{}
	w.feed(IntentRead{Moment: w.moment(), Intent: w.leader.Intent.Submit("shop", "spec1", "r5", w.now), Life: "life5"})
	w.settle()
	h := w.leader.Head
	if h.Life != "life5" || h.Fence != ended.Fence+1 || h.Durable.Epoch < ended.NextEpoch {
		t.Errorf("got %s of life %s after %s", describeHead(h), h.Life, describeHead(&ended))
	}
	if m := w.links[h.Durable.Ref]; !w.chain(h.Durable.Ref, 0)[0].Manifest.Prev.IsZero() || m.Life != "life5" {
		t.Error("the new life's chain goes on from the old one's")
	}
}
