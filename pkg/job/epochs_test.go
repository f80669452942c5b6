package job

import (
	"testing"
	"time"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/position"
)

// Nothing with another fence, from an unknown subtask, or for an epoch that was never handed out counts.
func TestAcksThatDoNotCount(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*AckFact){
		"older fence":       func(a *AckFact) { a.Fence = 0 },
		"newer fence":       func(a *AckFact) { a.Fence++ },
		"unknown vertex":    func(a *AckFact) { a.Subtask.Vertex = "other" },
		"unknown subtask":   func(a *AckFact) { a.Subtask.Index = 3 },
		"epoch before":      func(a *AckFact) { a.Epoch-- },
		"epoch not handed":  func(a *AckFact) { a.Epoch++ },
		"epoch far ahead":   func(a *AckFact) { a.Epoch += 100 },
		"a committer's own": func(a *AckFact) { a.Subtask = idCommit },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := running(t)
			w.mute = true
			w.wait()
			w.mute = false
			w.receive(false)
			good := w.facts["ack "+idWriter.String()].(AckSeen)
			bad := good
			bad.Moment = w.moment()
			change(&bad.Fact)
			w.feed(bad)
			if len(w.under) != 0 || w.leader.Attempt.Cut != nil {
				t.Errorf("epoch %d was sealed by %+v", good.Fact.Epoch, bad.Fact)
			}
			// The fault fired: the good one is what was missing.
			good.Moment = w.moment()
			w.feed(good)
			if len(w.under) != 1 {
				t.Error("the good ack does not seal the epoch")
			}
		})
	}
}

func TestEpochTriggers(t *testing.T) {
	t.Parallel()
	input := func(after epoch.ID, early bool) func(w *world) Event {
		return func(w *world) Event {
			return InputSeen{Moment: w.moment(), Fact: InputFact{Fence: 1, Subtask: idReader, After: after, Early: early}}
		}
	}
	for _, tt := range []struct {
		name  string
		event func(w *world) Event
		due   time.Duration
	}{
		{"idle", nil, 10 * time.Second},
		{"input since the last barrier", input(1, false), time.Second},
		{"input before the last barrier", input(0, false), 10 * time.Second},
		{"a writer's epoch is half full", input(1, true), 0},
		{"a request", func(w *world) Event {
			return IntentRead{Moment: w.moment(), Intent: w.leader.Intent.Epoch("r2", w.now)}
		}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := running(t)
			if tt.event != nil {
				w.feed(tt.event(w))
			}
			if tt.due > 0 {
				w.silent(t, "before it is due")
				if got := w.leader.Wake(w.now).Sub(w.now); got != tt.due {
					t.Errorf("wakes in %s, want %s", got, tt.due)
				}
				w.later(tt.due)
			}
			h := w.writing(t)
			if h.InFlight == nil || h.InFlight.Epoch != 2 || h.NextEpoch != 3 || h.InFlight.Kind != epoch.Periodic {
				t.Errorf("got %s", describeHead(h))
			}
			w.perform(0)
			w.feed(Tick{Moment: w.moment()})
			w.silent(t, "one request is one epoch")
		})
	}
}

// holdCommits keeps what committers say from the leader.
func (w *world) holdCommits() {
	for range 50 {
		w.told["committed "+idCommit.String()] = true
		before := len(w.heads)
		w.settleButCommits()
		if len(w.heads) == before {
			return
		}
	}
}

func (w *world) settleButCommits() {
	for len(w.under) > 0 || w.lookup(0) || w.lookup(1) || w.lookup(2) || len(w.channel) > 0 || w.untold() != "" {
		switch k := w.untold(); {
		case len(w.under) > 0:
			w.perform(0)
		case len(w.channel) > 0:
			w.receive(false)
		case k == "committed "+idCommit.String():
			w.told[k] = true
		case k != "":
			w.told[k] = true
			w.feed(stamped(w.facts[k], w.moment()))
		}
	}
}

// With max_uncommitted durable epochs waiting no PERIODIC epoch is triggered; the TERMINAL one of a drain is.
func TestUncommittedEpochsHoldPeriodicOnes(t *testing.T) {
	t.Parallel()
	w := running(t)
	for range 2 {
		w.later(10 * time.Second)
		w.holdCommits()
	}
	if h := w.leader.Head; h.Durable.Epoch != 3 || h.Committed != 1 {
		t.Fatalf("got %s, want two epochs uncommitted", describeHead(h))
	}
	w.later(time.Hour)
	w.silent(t, "two epochs wait")
	w.feed(IntentRead{Moment: w.moment(), Intent: w.leader.Intent.Epoch("r2", w.now)})
	w.silent(t, "a request does not help")
	w.feed(IntentRead{Moment: w.moment(), Intent: w.leader.Intent.Drained(time.Minute, "r3", w.now)})
	w.holdCommits()
	if h := w.leader.Head; h.Durable.Kind != epoch.Terminal || h.Phase != Draining || h.Committed != 1 {
		t.Fatalf("got %s, want the TERMINAL epoch durable", describeHead(h))
	}
	delete(w.told, "committed "+idCommit.String())
	w.settle()
	if h := w.leader.Head; h.Phase != Finished || h.Committed != h.Durable.Epoch {
		t.Errorf("got %s", describeHead(h))
	}
}

// committed is written together with the next epoch in flight when that is due within 50 ms.
func TestCommittedRidesWithTheNextEpoch(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		before time.Duration
		rides  bool
	}{{40 * time.Millisecond, true}, {60 * time.Millisecond, false}} {
		w := running(t)
		w.later(10 * time.Second)
		w.holdCommits()
		w.feed(InputSeen{Moment: w.moment(), Fact: InputFact{Fence: 1, Subtask: idReader, After: 2}})
		w.later(time.Second - tt.before)
		w.feed(stamped(w.facts["committed "+idCommit.String()], w.moment()))
		if alone := w.leader.Writing != nil; alone == tt.rides {
			t.Errorf("%s before the next epoch: written alone is %t", tt.before, alone)
			continue
		}
		if tt.rides {
			w.later(tt.before)
			if h := w.writing(t); h.Committed != 2 || h.InFlight == nil {
				t.Errorf("got %s", describeHead(h))
			}
		}
	}
}

// An epoch that does not balance is never stored: rows were lost on the way.
func TestUnbalancedEpochIsNeverStored(t *testing.T) {
	t.Parallel()
	w := running(t)
	w.mute = true
	w.wait()
	w.mute, w.lost = false, true
	w.settle()
	h := w.leader.Head
	wantRestart(t, h, RestartFailure, string(fault.JobTallyMismatch))
	if h.Durable.Epoch != 1 || h.NextEpoch != 3 {
		t.Errorf("got %s", describeHead(h))
	}
	for ref := range w.links {
		if ref.Epoch == 2 {
			t.Error("a manifest of the unbalanced epoch was stored")
		}
	}
}

// A late ack of an older epoch does not take the newer one's place.
func TestLateOldAckReplacesNothing(t *testing.T) {
	t.Parallel()
	w := running(t)
	old := w.facts["ack "+idReader.String()]
	w.mute = true
	w.wait()
	w.mute = false
	w.feed(stamped(old, w.moment()))
	w.receive(false)
	w.feed(stamped(w.facts["ack "+idWriter.String()], w.moment()))
	if len(w.under) != 1 {
		t.Error("epoch 2 is not sealed although every subtask has answered")
	}
}

// The epochs of a job in which nothing moves grow rare, up to six idle intervals; once something moves they come as often as
// before.
func TestEpochsInWhichNothingMovesGrowRare(t *testing.T) {
	t.Parallel()
	w := running(t)
	at := func(e epoch.ID, n string) *epoch.Manifest {
		p := position.New(position.Generator, map[string]string{"n": n})
		return &epoch.Manifest{Epoch: e, Subtasks: map[plan.SubtaskID]epoch.SubtaskState{idReader: {Position: p}}}
	}
	before := at(1, "7")
	for i, x := range []struct {
		now   *epoch.Manifest
		input epoch.ID
		due   time.Duration
	}{
		{at(2, "7"), 0, 20 * time.Second},
		{at(3, "7"), 0, 40 * time.Second},
		{at(4, "7"), 0, 80 * time.Second},
		{at(5, "7"), 0, 160 * time.Second},
		{at(6, "7"), 0, 300 * time.Second},
		{at(7, "7"), 0, 300 * time.Second},
		{at(8, "8"), 0, 10 * time.Second},
		{at(9, "8"), 0, 20 * time.Second},
		{at(10, "8"), 10, time.Second},
	} {
		a := &w.leader.Attempt
		a.Input = x.input
		a.calms(before, x.now)
		before = x.now
		if _, due, ok := w.leader.due(w.leader.Head, w.moment()); !ok || due.Sub(a.Triggered) != x.due {
			t.Errorf("after manifest %d the next epoch is due %s after the last, want %s", i, due.Sub(a.Triggered), x.due)
		}
	}
	w.leader.Attempt.calms(nil, before)
	if w.leader.Attempt.Calm != 0 {
		t.Error("calm after the first manifest")
	}
}
