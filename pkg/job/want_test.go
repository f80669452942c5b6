package job

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/plan"
)

func TestWant(t *testing.T) {
	t.Parallel()
	d := &plan.Deployment{Partitioned: smallPlan(), Fence: 4, Placements: map[plan.SubtaskID]plan.Placement{
		idEnum: {Node: "a", Incarnation: "a1"}, idReader: {Node: "a", Incarnation: "a1"},
		idWriter: {Node: "b", Incarnation: "b1"}, idCommit: {Node: "b", Incarnation: "b1"},
	}}
	durable := &Durable{Ref: epoch.Ref{Epoch: 7, Digest: "d7"}, Key: "k7"}
	ref := PlanRef{Fence: 4, Key: "p4", Digest: "x", Restore: durable}
	head := func(change func(*Head)) *Head {
		h := &Head{Phase: Running, Fence: 4, Plan: &ref, Durable: durable, Committed: 6, Life: "l", SpecDigest: "s"}
		change(h)
		return h
	}
	starting := func(h *Head) { h.Phase = Starting }
	loaded := Held{Fence: 4, Plan: d}
	started := Held{Fence: 4, Plan: d, Started: true}
	upToDate := Held{Fence: 4, Plan: d, Started: true, Emitting: true, Durable: 7, Committed: 6, Barrier: 7}
	release := &Release{Placement: plan.Placement{Node: "a", Incarnation: "a1"}, Try: 2, Sources: []string{"src"}}
	order := &Resnapshot{Seq: 3, Tables: []string{"public.a"}, Fence: 4}
	a := Self{Node: "a", Incarnation: "a1"}
	for _, tt := range []struct {
		name string
		head *Head
		self Self
		held Held
		want []Action
	}{
		{"a missing head means stop", nil, a, started, []Action{Stop{Fence: 4}}},
		{"a missing head and nothing held", nil, a, Held{}, nil},
		{"another fence stops what runs", head(func(h *Head) { h.Fence, h.Plan = 5, nil }), a, started, []Action{Stop{Fence: 4}}},
		{"at rest stops what runs", head(func(h *Head) { h.Phase = Failed }), a, started, []Action{Stop{Fence: 4}}},
		{"not placed yet", head(func(h *Head) { h.Phase, h.Plan = Starting, nil }), a, Held{}, nil},
		{"a plan of another fence starts nothing", head(func(h *Head) { h.Phase, h.Fence = Starting, 5 }), a, Held{}, nil},
		{"read the plan first", head(starting), a, Held{}, []Action{ReadPlan{Ref: ref}}},
		{"start what the plan gives", head(starting), a, loaded, []Action{Start{Fence: 4, Subtasks: []plan.SubtaskID{idEnum, idReader}, Restore: durable}}},
		{
			"an order goes with the start", head(func(h *Head) { h.Phase, h.Resnapshot = Starting, order }), a, loaded,
			[]Action{Start{Fence: 4, Subtasks: []plan.SubtaskID{idEnum, idReader}, Restore: durable, Resnapshot: order}},
		},
		{"another incarnation starts nothing", head(starting), Self{Node: "a", Incarnation: "a2"}, loaded, nil},
		{"another process starts nothing", head(starting), Self{Node: "c", Incarnation: "c1"}, loaded, nil},
		{"started once per fence", head(starting), a, started, nil},
		{"nothing is resurrected in a running attempt", head(func(*Head) {}), a, loaded, nil},
		{"nothing is committed before RUNNING", head(starting), Self{Node: "b", Incarnation: "b1"}, started, nil},
		{"running", head(func(*Head) {}), a, started, []Action{
			CommitUpTo{Fence: 4, Durable: *durable}, Confirm{Fence: 4, Epoch: 6}, Emit{Fence: 4},
		}},
		{"nothing new", head(func(*Head) {}), a, upToDate, nil},
		{"only a committed epoch is confirmed", head(func(h *Head) { h.Committed = 7 }), a, upToDate, []Action{Confirm{Fence: 4, Epoch: 7}}},
		{
			"a barrier once, upwards", head(func(h *Head) { h.InFlight = &InFlight{Epoch: 8, Kind: epoch.Periodic} }), a, upToDate,
			[]Action{Barrier{Fence: 4, Epoch: 8, Kind: epoch.Periodic}},
		},
		{"a barrier handed on is not repeated", head(func(h *Head) { h.InFlight = &InFlight{Epoch: 7} }), a, upToDate, nil},
		{"durable before the next barrier", head(func(h *Head) {
			h.Durable = &Durable{Ref: epoch.Ref{Epoch: 8}}
			h.InFlight = &InFlight{Epoch: 9, Kind: epoch.Terminal}
			h.Phase = Draining
		}), a, upToDate, []Action{
			CommitUpTo{Fence: 4, Durable: Durable{Ref: epoch.Ref{Epoch: 8}}},
			Drain{Fence: 4},
			Barrier{Fence: 4, Epoch: 9, Kind: epoch.Terminal},
		}},
		{
			"release what is asked for", head(func(h *Head) { h.Phase, h.Release = Cancelled, release }), a,
			Held{},
			[]Action{DropExternal{Fence: 4, Request: ReleaseID{Life: "l", Try: 2}, SpecDigest: "s", Sources: []string{"src"}}},
		},
		{"stop, then release", head(func(h *Head) { h.Phase, h.Release = Cancelled, release }), a, started, []Action{
			Stop{Fence: 4}, DropExternal{Fence: 4, Request: ReleaseID{Life: "l", Try: 2}, SpecDigest: "s", Sources: []string{"src"}},
		}},
		{
			"each request once", head(func(h *Head) { h.Phase, h.Release = Cancelled, release }), a,
			Held{Releasing: ReleaseID{Life: "l", Try: 2}},
			nil,
		},
		{
			"another try is another request", head(func(h *Head) { h.Phase, h.Release = Cancelled, release }), a,
			Held{Releasing: ReleaseID{Life: "l", Try: 1}},
			[]Action{
				DropExternal{Fence: 4, Request: ReleaseID{Life: "l", Try: 2}, SpecDigest: "s", Sources: []string{"src"}},
			},
		},
		{"not for another incarnation", head(func(h *Head) { h.Phase, h.Release = Cancelled, release }), Self{Node: "a", Incarnation: "a9"}, Held{}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := Want(tt.head, tt.self, tt.held); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("Want:\n got %s\nwant %s", actions(got), actions(tt.want))
			}
		})
	}
}

func actions(all []Action) string {
	s := ""
	for _, a := range all {
		s += fmt.Sprintf("%T%+v ", a, a)
	}
	return s
}

// Nobody acts on a (term, fence, revision) below one it has seen; lower for longer than a lease means that the registry
// went back.
func TestSeenJudges(t *testing.T) {
	t.Parallel()
	at := start
	view := func(term uint64, f int, rev uint64, after time.Duration) View {
		return View{Head: &Head{Term: term, Fence: fence.Token(f + 1)}, Revision: rev, At: at.Add(after)}
	}
	var s Seen
	for i, tt := range []struct {
		view View
		want Freshness
	}{
		{view(1, 1, 5, 0), Current},
		{view(1, 1, 5, 0), Current},
		{view(1, 1, 4, time.Second), Stale},
		{view(2, 1, 6, 2*time.Second), Current},
		{view(1, 2, 7, 3*time.Second), Stale},
		{view(3, 0, 8, 4*time.Second), Stale},
		{View{At: at.Add(5 * time.Second)}, Stale},
		{view(1, 1, 5, 7*time.Second), Regressed},
		{view(2, 1, 6, 9*time.Second), Current},
	} {
		var got Freshness
		if s, got = s.Judge(tt.view, 3*time.Second); got != tt.want {
			t.Errorf("reading %d: %d, want %d", i, got, tt.want)
		}
	}
}
