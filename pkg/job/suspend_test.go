package job

import (
	"testing"
	"time"

	"weir.dev/weir/pkg/epoch"
)

func (w *world) suspend() {
	w.feed(IntentRead{Moment: w.moment(), Intent: w.leader.Intent.Suspended("r5", w.now)})
	w.settle()
}

func (w *world) resume() {
	w.feed(IntentRead{Moment: w.moment(), Intent: w.leader.Intent.Resumed("r6", w.now)})
	w.settle()
}

func wantRows(t *testing.T, w *world) {
	t.Helper()
	for i, r := range w.target.rows {
		if r != i {
			t.Fatalf("the target holds rows %v", w.target.rows)
		}
	}
}

// I15: a suspension takes a SAVEPOINT epoch and rests; a resumed job goes on from there and emits nothing twice.
func TestSuspendAndResume(t *testing.T) {
	t.Parallel()
	w := running(t)
	before := *w.leader.Head
	w.suspend()
	h := w.leader.Head
	if h.Phase != Suspended || h.Durable.Kind != epoch.Savepoint || h.Durable.Epoch != before.Durable.Epoch+1 || h.Reason.Request != "r5" || h.SuspendFrom != 0 {
		t.Fatalf("got %s, durable %+v, reason %+v", describeHead(h), h.Durable, h.Reason)
	}
	if h.Release != nil {
		t.Errorf("what the sources need is given away: %+v", h.Release)
	}
	w.resume()
	again := w.leader.Head
	if again.Phase != Running || again.Fence != h.Fence+1 || again.Plan.Restore == nil || again.Plan.Restore.Ref != h.Durable.Ref {
		t.Fatalf("got %s", describeHead(again))
	}
	if n := len(w.target.rows); n != 3 {
		t.Errorf("the target holds %d rows of 3 epochs", n)
	}
	wantRows(t, w)
}

// A suspension does not wait for a sink that takes nothing; what is durable is committed after the resume.
func TestSuspendWhileTheSinkIsDown(t *testing.T) {
	t.Parallel()
	w := running(t)
	for range 2 {
		w.feed(IntentRead{Moment: w.moment(), Intent: w.leader.Intent.Epoch("r3", w.now)})
		w.holdCommits()
	}
	if n := w.leader.uncommitted(w.leader.Head); n != 2 {
		t.Fatalf("%d epochs are uncommitted", n)
	}
	w.feed(IntentRead{Moment: w.moment(), Intent: w.leader.Intent.Suspended("r5", w.now)})
	w.holdCommits()
	h := w.leader.Head
	if h.Phase != Suspended || h.Durable.Kind != epoch.Savepoint || h.Committed != 1 {
		t.Fatalf("got %s", describeHead(h))
	}
	w.resume()
	if h := w.leader.Head; h.Phase != Running || h.Committed != h.Durable.Epoch {
		t.Errorf("got %s", describeHead(h))
	}
	wantRows(t, w)
}

// Before an attempt runs there is nothing to save: the job rests at once.
func TestSuspendActsAtOnceWhileStarting(t *testing.T) {
	t.Parallel()
	w := newWorld(budget{})
	for w.leader.Head == nil || w.leader.Head.Phase != Starting {
		w.perform(0)
	}
	w.suspend()
	if h := w.leader.Head; h.Phase != Suspended || h.Durable != nil {
		t.Fatalf("got %s", describeHead(h))
	}
	w.resume()
	if h := w.leader.Head; h.Phase != Running || h.Committed != 1 {
		t.Errorf("got %s", describeHead(h))
	}
	wantRows(t, w)
}

// An epoch that times out does not end a suspension: another one is taken.
func TestSuspensionOutlivesASkippedEpoch(t *testing.T) {
	t.Parallel()
	w := running(t)
	w.mute = true
	w.suspend()
	if h := w.leader.Head; h.Phase != Suspending || h.InFlight == nil || h.InFlight.Kind != epoch.Savepoint {
		t.Fatalf("got %s", describeHead(h))
	}
	w.wait() // the deadline
	w.mute = false
	w.settle()
	for range 3 {
		if w.leader.Head.Phase != Suspended {
			w.wait()
		}
	}
	if h := w.leader.Head; h.Phase != Suspended || h.Durable.Kind != epoch.Savepoint {
		t.Errorf("got %s", describeHead(h))
	}
}

// A drain under way is given up for a suspension.
func TestSuspendEndsADrain(t *testing.T) {
	t.Parallel()
	w := running(t)
	w.mute = true
	w.feed(IntentRead{Moment: w.moment(), Intent: w.leader.Intent.Drained(time.Hour, "r4", w.now)})
	w.settle()
	if h := w.leader.Head; h.Phase != Draining {
		t.Fatalf("got %s", describeHead(h))
	}
	w.mute = false
	w.suspend()
	if h := w.leader.Head; h.Phase != Suspended && h.Phase != Finished {
		t.Errorf("got %s", describeHead(h))
	}
}
