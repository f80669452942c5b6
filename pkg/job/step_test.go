package job

import (
	"testing"
	"time"
)

// running is a world whose job has committed its first epoch and waits.
func running(t *testing.T) *world {
	t.Helper()
	w := newWorld(budget{})
	w.settle()
	h := w.leader.Head
	if h.Phase != Running || h.Committed != 1 || h.InFlight != nil || len(w.under) != 0 {
		t.Fatalf("the world is not at rest: %s", describeHead(h))
	}
	return w
}

func (w *world) later(d time.Duration) {
	w.now = w.now.Add(d)
	w.feed(Tick{Moment: w.moment()})
}

func (w *world) writing(t *testing.T) *Head {
	t.Helper()
	if w.leader.Writing == nil {
		t.Fatalf("nothing is being written; head %s", describeHead(w.leader.Head))
	}
	return w.leader.Writing
}

func (w *world) silent(t *testing.T, what string) {
	t.Helper()
	if w.leader.Writing != nil {
		t.Errorf("%s: writes %s", what, describeHead(w.leader.Writing))
	}
}

func wantRestart(t *testing.T, h *Head, kind RestartKind, code string) {
	t.Helper()
	if h.Phase != Starting || h.Reason.Code != code || len(h.Restarts) == 0 || h.Restarts[len(h.Restarts)-1].Kind != kind {
		t.Errorf("got %s, restarts %+v; want another attempt, %s, %s", describeHead(h), h.Restarts, kind, code)
	}
}

// A head that carries a newer term ends this leader; nothing is decided on a reading that is older than one known.
func TestReadingsThatDecideNothing(t *testing.T) {
	t.Parallel()
	w := running(t)
	w.under = nil
	s := w.leader
	old := w.heads[1]
	stale := HeadRead{Moment: w.moment(), View: View{Head: &old, Revision: 2, At: w.now}}
	s, effects := Step(s, stale)
	if len(effects) != 0 || s.Head.Fence != w.leader.Head.Fence || s.Deposed {
		t.Fatalf("a late reading: %v, %s", effects, describeHead(s.Head))
	}
	stale.At = w.now.Add(staleHeads + time.Second)
	s, effects = Step(s, stale)
	if len(effects) != 1 || effects[0] != (StepDown{Regressed: true}) {
		t.Errorf("late for longer than a lease: %v, want StepDown", effects)
	}
	newer := *w.leader.Head
	newer.Term = 7
	s, effects = Step(w.leader, HeadRead{Moment: w.moment(), View: View{Head: &newer, Revision: 99}})
	if len(effects) != 1 || effects[0] != (StepDown{Term: 7}) {
		t.Errorf("a newer term: %v, want StepDown", effects)
	}
	if _, effects = Step(s, Tick{Moment: w.moment()}); len(effects) != 0 {
		t.Errorf("a deposed leader still acts: %v", effects)
	}
}

// A takeover keeps the epoch in flight and restarts its deadline on the new leader's clock.
func TestTakeoverRestartsTheDeadline(t *testing.T) {
	t.Parallel()
	w := running(t)
	w.mute = true
	w.wait()
	before := w.leader.Head.InFlight
	w.now = w.now.Add(time.Hour)
	w.lead(5)
	h := w.writing(t)
	if h.Term != 5 || h.InFlight == nil || h.InFlight.Epoch != before.Epoch || !h.InFlight.Deadline.Equal(w.now.Add(time.Minute)) ||
		h.Fence != w.heads[len(w.heads)-1].Fence {
		t.Errorf("took over as %s, deadline %v", describeHead(h), h.InFlight)
	}
}

func TestWakeNeverNamesThePast(t *testing.T) {
	t.Parallel()
	w := newWorld(budget{})
	w.settle()
	for range 20 {
		at := w.leader.Wake(w.now)
		if at.IsZero() {
			t.Fatal("a running job wants nothing more")
		}
		if !at.After(w.now) {
			t.Fatalf("wakes at %s, now is %s", at, w.now)
		}
		w.wait()
	}
	if w.leader.Head.Committed < 10 {
		t.Errorf("got %s", describeHead(w.leader.Head))
	}
}
