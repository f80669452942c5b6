package coordinator

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/job"
)

func lease(t *testing.T, n job.NodeLease) bus.Update {
	t.Helper()
	b, err := json.Marshal(n)
	if err != nil {
		t.Fatal(err)
	}
	return bus.Update{Kind: bus.Put, Entry: bus.Entry{Key: bus.NodeKey(n.Node), Value: b}}
}

func names(e job.NodesRead) string {
	s := ""
	for _, n := range e.Nodes {
		s += fmt.Sprintf("%s/%s:%d ", n.Node.Node, n.Incarnation, n.Free)
	}
	return s
}

// A watch that starts again does not make processes vanish that are still there, and starts the grace period again.
func TestRosterSurvivesAResync(t *testing.T) {
	r := newRoster(3 * time.Second)
	now := time.Now()
	at := func(d time.Duration) job.Moment { return job.Moment{At: now.Add(d)} }
	a, b := job.NodeLease{Node: "a", Incarnation: "a1", Slots: 4}, job.NodeLease{Node: "b", Incarnation: "b1", Slots: 2}
	for _, u := range []bus.Update{lease(t, a), lease(t, b), {Kind: bus.CaughtUp}} {
		if _, err := r.update(u, now); err != nil {
			t.Fatal(err)
		}
	}
	if got := r.event(at(time.Second), map[string]int{"a": 3}); names(got) != "a/a1:1 b/b1:2 " || got.Settled {
		t.Errorf("at first: %s, settled %t", names(got), got.Settled)
	}
	if got := r.event(at(4*time.Second), map[string]int{"a": 9}); names(got) != "a/a1:0 b/b1:2 " || !got.Settled {
		t.Errorf("after the grace period: %s, settled %t", names(got), got.Settled)
	}
	later := now.Add(10 * time.Second)
	if _, err := r.update(bus.Update{Kind: bus.Resync}, later); err != nil {
		t.Fatal(err)
	}
	if got := r.event(at(11*time.Second), nil); names(got) != "a/a1:4 b/b1:2 " || got.Settled {
		t.Errorf("while the watch starts again: %s, settled %t", names(got), got.Settled)
	}
	a.Incarnation = "a2"
	if _, err := r.update(lease(t, a), later); err != nil {
		t.Fatal(err)
	}
	if r.settled(later.Add(time.Hour)) {
		t.Error("settled although not every lease has been told")
	}
	later = later.Add(time.Hour)
	if _, err := r.update(bus.Update{Kind: bus.CaughtUp}, later); err != nil {
		t.Fatal(err)
	}
	if r.settled(later.Add(2*time.Second)) || !r.settled(later.Add(3*time.Second)) {
		t.Error("the grace period does not begin when the watch has caught up")
	}
	if got := r.event(at(2*time.Hour), nil); names(got) != "a/a2:4 " {
		t.Errorf("caught up again: %s", names(got))
	}
	if changed, _ := r.update(lease(t, a), later); changed {
		t.Error("a renewal without news is news")
	}
	if _, err := r.update(bus.Update{Kind: bus.Expired, Entry: bus.Entry{Key: bus.NodeKey("a")}}, later); err != nil {
		t.Fatal(err)
	}
	if got := r.event(at(12*time.Second), nil); names(got) != "" {
		t.Errorf("after the end of the lease: %s", names(got))
	}
}

// Three fast "no responders" in a row end a process before its lease does; a late answer, or one that never came, do not.
func TestRosterPulse(t *testing.T) {
	a := job.NodeLease{Node: "a", Incarnation: "a1"}
	for _, tt := range []struct {
		name  string
		beats []error
		dead  bool
	}{
		{"three in a row", []error{nil, bus.ErrNoResponders, bus.ErrNoResponders, bus.ErrNoResponders}, true},
		{"two in a row", []error{nil, bus.ErrNoResponders, bus.ErrNoResponders}, false},
		{"an answer in between", []error{nil, bus.ErrNoResponders, bus.ErrNoResponders, nil, bus.ErrNoResponders}, false},
		{"slow answers", []error{nil, bus.ErrUnknown, bus.ErrUnknown, bus.ErrUnknown, bus.ErrUnknown}, false},
		{"never answered before", []error{bus.ErrNoResponders, bus.ErrNoResponders, bus.ErrNoResponders}, false},
		{"back again", []error{nil, bus.ErrNoResponders, bus.ErrNoResponders, bus.ErrNoResponders, nil}, false},
	} {
		r := newRoster(time.Second)
		if _, err := r.update(lease(t, a), time.Now()); err != nil {
			t.Fatal(err)
		}
		for _, err := range tt.beats {
			r.beat(a, err)
		}
		if dead := len(r.alive()) == 0; dead != tt.dead {
			t.Errorf("%s: dead is %t", tt.name, dead)
		}
		// Another incarnation starts with a clean slate.
		b := a
		b.Incarnation = "a2"
		if _, err := r.update(lease(t, b), time.Now()); err != nil {
			t.Fatal(err)
		}
		if len(r.alive()) != 1 {
			t.Errorf("%s: the next incarnation is dead too", tt.name)
		}
	}
}

// A process that was given up is asked again although nothing runs on it any more: else it would never come back.
func TestWhoWasGivenUpIsAskedAgain(t *testing.T) {
	a := job.NodeLease{Node: "a", Incarnation: "a1"}
	r := newRoster(time.Second)
	if _, err := r.update(lease(t, a), time.Now()); err != nil {
		t.Fatal(err)
	}
	if got := r.asked(nil); len(got) != 0 {
		t.Errorf("an idle process is asked: %v", got)
	}
	if got := r.asked(map[string]int{"a": 1}); len(got) != 1 {
		t.Errorf("asked are %v", got)
	}
	r.beat(a, nil)
	for range strikes {
		r.beat(a, bus.ErrNoResponders)
	}
	if got := r.asked(nil); len(got) != 1 || len(r.alive()) != 0 {
		t.Errorf("asked are %v, alive %v", got, r.alive())
	}
}

// The data stream may only grow and never be another one.
func TestStreamWatch(t *testing.T) {
	made := time.Unix(100, 0)
	for _, tt := range []struct {
		name  string
		looks []bus.DataState
		lost  bool
	}{
		{"grows", []bus.DataState{{Created: made, LastSeq: 1}, {Created: made, LastSeq: 5}, {Created: made, LastSeq: 5}}, false},
		{"goes back", []bus.DataState{{Created: made, LastSeq: 5}, {Created: made, LastSeq: 4}}, true},
		{"is another one", []bus.DataState{{Created: made}, {Created: made.Add(time.Second), LastSeq: 9}}, true},
	} {
		var w streamWatch
		lost := false
		for _, s := range tt.looks {
			lost = lost || w.judge(s) != ""
		}
		if lost != tt.lost {
			t.Errorf("%s: lost is %t", tt.name, lost)
		}
	}
}
