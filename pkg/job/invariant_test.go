package job

import (
	"testing"
	"time"
)

// I10: a running attempt is never changed. What a user asks for becomes another attempt with a plan of its own; the plan of
// the one before stays as it was stored.
func TestI10AChangeIsAnotherAttempt(t *testing.T) {
	t.Parallel()
	w := running(t)
	ref := *w.leader.Head.Plan
	stored := string(w.plans[ref.Key].Bytes())
	w.feed(IntentRead{Moment: w.moment(), Intent: w.leader.Intent.Applying("spec2", "r2", w.now)})
	h := w.writing(t)
	if h.Fence != ref.Fence+1 || h.Plan != nil || h.Phase != Starting {
		t.Fatalf("the change begins with %s, plan %+v", describeHead(h), h.Plan)
	}
	w.settle()
	now := w.leader.Head.Plan
	if now.Key == ref.Key || now.Fence != ref.Fence+1 {
		t.Errorf("the changed job runs plan %+v, before %+v", now, ref)
	}
	if got := string(w.plans[ref.Key].Bytes()); got != stored {
		t.Errorf("the plan of fence %d was %s, is %s", ref.Fence, stored, got)
	}
}

// I15: a job ends in the mode that was asked for, whatever it is doing: a drain takes in everything and leaves nothing
// uncommitted, a cancellation and a removal act at once and keep what is durable.
func TestI15EveryEndHasItsMode(t *testing.T) {
	t.Parallel()
	doing := map[string]func(t *testing.T) *world{
		"idle": running,
		"mid-epoch": func(t *testing.T) *world {
			t.Helper()
			w := running(t)
			w.later(10 * time.Second)
			w.perform(0)
			if w.leader.Head.InFlight == nil {
				t.Fatalf("no epoch is in flight: %s", describeHead(w.leader.Head))
			}
			return w
		},
		"an epoch waits for its commit": func(t *testing.T) *world {
			t.Helper()
			w := running(t)
			w.later(10 * time.Second)
			w.holdCommits()
			if h := w.leader.Head; h.Durable.Epoch != 2 || h.Committed != 1 {
				t.Fatalf("nothing waits for a commit: %s", describeHead(h))
			}
			return w
		},
	}
	asked := map[Phase]func(i Intent, at time.Time) Intent{
		Finished:  func(i Intent, at time.Time) Intent { return i.Drained(time.Hour, "r2", at) },
		Cancelled: func(i Intent, at time.Time) Intent { return i.Cancelled("r2", at) },
		Deleted:   func(i Intent, at time.Time) Intent { return i.Removed("r2", at) },
	}
	for what, begin := range doing {
		for want, ask := range asked {
			t.Run(what+" to "+string(want), func(t *testing.T) {
				t.Parallel()
				w := begin(t)
				before := *w.leader.Head
				w.feed(IntentRead{Moment: w.moment(), Intent: ask(*w.leader.Intent, w.now)})
				if want == Finished {
					for k := range w.told {
						delete(w.told, k) // committers repeat what they have said
					}
					w.settle()
					h := w.leader.Head
					if h.Phase != Finished || h.InFlight != nil || h.Durable.Epoch <= before.Durable.Epoch || h.Committed != h.Durable.Epoch {
						t.Errorf("drained to %s", describeHead(h))
					}
					return
				}
				h := w.writing(t)
				if h.Phase != want || h.InFlight != nil || h.Durable.Ref != before.Durable.Ref || h.Fence != before.Fence {
					t.Errorf("the next record is %s after %s", describeHead(h), describeHead(&before))
				}
			})
		}
	}
}
