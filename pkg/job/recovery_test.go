package job

import (
	"encoding/json"
	"testing"
	"time"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/plan"
)

// ⚑ A changed incarnation is a lost node: recover at once, whatever the grace period says.
func TestChangedIncarnationIsLossAtOnce(t *testing.T) {
	t.Parallel()
	w := running(t)
	e := w.nodes()
	e.Settled = false
	e.Nodes[1].Incarnation = "b9"
	w.feed(e)
	h := w.writing(t)
	wantRestart(t, h, RestartLoss, string(fault.JobNodeLost))
	if h.Fence != 2 || h.Plan != nil || h.InFlight != nil || !h.RetryAt.IsZero() {
		t.Errorf("got %s; want the fence raised and no pause", describeHead(h))
	}
}

// After a takeover or a reconnect nobody is declared dead for one lease period.
func TestMissingProcessIsLostOnlyWhenSettled(t *testing.T) {
	t.Parallel()
	w := running(t)
	e := w.nodes()
	e.Settled, e.Nodes = false, e.Nodes[:1]
	w.feed(e)
	w.silent(t, "unsettled")
	e.Settled = true
	w.feed(e)
	wantRestart(t, w.writing(t), RestartLoss, string(fault.JobNodeLost))
}

func TestLeavingProcessHandsOverFree(t *testing.T) {
	t.Parallel()
	w := running(t)
	e := w.nodes()
	e.Nodes[0].Leaving = true
	w.feed(e)
	h := w.writing(t)
	wantRestart(t, h, RestartFree, "HANDOVER")
	w.perform(0) // the fence
	w.perform(0) // the streams
	if len(w.under) != 0 {
		t.Errorf("a leaving process got subtasks: %T", w.under[0])
	}
}

func TestFailuresByClass(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		code  fault.Code
		class string
		phase Phase
		kind  RestartKind
	}{
		{fault.AppInternal, "bug", Starting, RestartFailure},
		{fault.BusUnreachable, "transient", Starting, RestartLoss},
		{fault.MYDisconnected, "transient", Starting, RestartAway},
		{fault.MYSilent, "transient", Starting, RestartAway},
		{fault.PGCannotConnect, "transient", Starting, RestartAway},
		{fault.SrcUnreachable, "permanent", Failed, ""},
		{fault.MYRefused, "transient", Starting, RestartLoss},
		{fault.JobDataLost, "bug", Starting, RestartLoss},
		{fault.JobFenced, "fenced", Starting, RestartFailure},
		{fault.JobSinkDown, "transient", Starting, RestartFree},
		{fault.JobLedgerDiverged, "permanent", Failed, ""},
		{fault.AppInternal, "permanent", Failed, ""},
		{fault.JobLedgerDiverged, "bug", Starting, RestartFailure},
		{fault.AppInternal, "poison", Failed, ""},
		{fault.JobLedgerAhead, "not a class", Failed, ""},
	} {
		w := running(t)
		w.feed(permanent(t, idWriter, w, tt.code, tt.class))
		h := w.writing(t)
		if h.Phase != tt.phase || h.Reason.Code != string(tt.code) || h.Reason.Subtask == nil || *h.Reason.Subtask != idWriter {
			t.Errorf("%s as %s: %s, subtask %v", tt.code, tt.class, describeHead(h), h.Reason.Subtask)
		}
		if tt.phase == Starting {
			wantRestart(t, h, tt.kind, string(tt.code))
		} else if h.Reason.Remedy == "" || h.Durable == nil {
			t.Errorf("%s: FAILED without a remedy or without its durable epoch", tt.code)
		}
	}
}

func TestFailureThatCannotBeReadRestarts(t *testing.T) {
	t.Parallel()
	w := running(t)
	w.feed(FailureSeen{Moment: w.moment(), Fact: FailedFact{Fence: 1, Subtask: idWriter, Fault: json.RawMessage(`"?"`)}})
	wantRestart(t, w.writing(t), RestartFailure, string(fault.AppInternal))
}

func TestPauseGrowsWithoutProgress(t *testing.T) {
	t.Parallel()
	r := func(k RestartKind, durable ...epoch.ID) []Restart {
		var all []Restart
		for _, d := range durable {
			all = append(all, Restart{Kind: k, Durable: d})
		}
		return all
	}
	spec := smallSpec()
	s := State{Spec: &spec}
	for _, tt := range []struct {
		name string
		past []Restart
		roll float64
		want time.Duration
	}{
		{"first loss", r(RestartLoss, 4), 0.5, 0},
		{"second loss", r(RestartLoss, 4, 4), 1, time.Second},
		{"third loss", r(RestartLoss, 4, 4, 4), 1, 2 * time.Second},
		{"loss after progress", r(RestartLoss, 3, 3, 4), 1, 0},
		{"first failure", r(RestartFailure, 4), 1, time.Second},
		{"first failure, low roll", r(RestartFailure, 4), 0, time.Second / 2},
		{"bounded", r(RestartFailure, 4, 4, 4, 4, 4, 4, 4, 4), 1, maxBackoff},
		{"bounded far away", r(RestartFree, make([]epoch.ID, 90)...), 1, maxBackoff},
		{"first away", r(RestartAway, 4), 1, 0},
		{"second away", r(RestartAway, 4, 4), 1, time.Second},
		{"away", r(RestartAway, 4, 4, 4, 4, 4, 4, 4), 1, awayBackoff},
		{"away, low roll", r(RestartAway, 4, 4, 4, 4, 4, 4, 4), 0, awayBackoff / 2},
	} {
		if got := s.pause(tt.past, tt.roll); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// A source that is back is found again after no more than a small part of the time that it was away.
func TestPauseGrowsWithTheTimeAway(t *testing.T) {
	t.Parallel()
	spec := smallSpec()
	s := State{Spec: &spec}
	began := time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)
	// It was away before: what lies behind a durable epoch counts for nothing.
	all := []Restart{{At: began.Add(-time.Hour), Kind: RestartAway, Durable: 3}}
	attempts := 0
	for at := began; at.Before(began.Add(time.Hour)); attempts++ {
		all = append(all, Restart{At: at, Kind: RestartAway, Durable: 4})
		pause := s.pause(all, 1)
		if gone := at.Sub(began); pause > max(awayBackoff, gone/awayShare) || pause > maxBackoff || gone > 0 && pause < time.Second {
			t.Fatalf("away for %s the pause is %s", gone, pause)
		}
		at = at.Add(pause + 500*time.Millisecond) // an attempt takes its time
	}
	if attempts > 160 {
		t.Errorf("%d attempts in an hour", attempts)
	}
	all = append(all, Restart{At: began.Add(2 * time.Hour), Kind: RestartLoss, Durable: 4})
	if pause := s.pause(all, 1); pause != maxBackoff {
		t.Errorf("a loss after it: %s, want %s", pause, maxBackoff)
	}
}

// For as long as a source is away the head says so and since when, also while an attempt is placed that will find out.
func TestSourceAwayIsTheReason(t *testing.T) {
	t.Parallel()
	w := running(t)
	since := w.now
	for range 3 {
		w.feed(permanent(t, idEnum, w, fault.MYCannotConnect, "transient"))
		for w.leader.Head.Plan == nil || w.leader.Writing != nil {
			if len(w.under) == 0 {
				w.later(awayBackoff)
				continue
			}
			w.perform(0)
		}
		h := w.leader.Head
		if h.Phase != Starting || h.Reason.Code != string(fault.MYCannotConnect) || h.Reason.Since != since || h.Reason.Remedy == "" {
			t.Fatalf("with a plan: %s, since %s, want %s", describeHead(h), h.Reason.Since, since)
		}
	}
	w.settle()
	if h := w.leader.Head; h.Phase != Running || h.Reason.Code != "RUNNING" {
		t.Errorf("when it is back: %s", describeHead(h))
	}
}

// Losses have a budget of their own, and what is free none.
func TestRestartBudgetsAreApart(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		kind RestartKind
		past int
		want Phase
	}{
		{RestartFailure, 2, Starting},
		{RestartFailure, 3, Failed},
		{RestartStall, 3, Failed},
		{RestartLoss, 3, Starting},
		{RestartLoss, 30, Failed},
		{RestartFree, 500, Starting},
		{RestartAway, 500, Starting},
	} {
		w := running(t)
		h := *w.leader.Head
		h.Restarts = nil
		for range tt.past {
			h.Restarts = append(h.Restarts, Restart{At: w.now, Kind: tt.kind})
		}
		// Old ones do not count.
		h.Restarts = append([]Restart{{At: w.now.Add(-time.Hour), Kind: tt.kind}}, h.Restarts...)
		w.leader.Head = &h
		w.leader.recover(w.moment(), h, cause{Kind: tt.kind, Reason: Reason{Code: "X"}})
		if got := w.leader.Writing; got.Phase != tt.want || tt.want == Failed && got.Reason.Code != string(fault.JobRestartsExhausted) {
			t.Errorf("%s after %d: %s", tt.kind, tt.past, describeHead(got))
		}
	}
}

func TestStartTimeoutAndTargetDown(t *testing.T) {
	t.Parallel()
	w := newWorld(budget{})
	for w.leader.Head == nil || w.leader.Head.Plan == nil {
		if len(w.under) == 0 {
			w.feed(w.nodes())
		}
		w.perform(0)
	}
	for _, id := range []plan.SubtaskID{idEnum, idReader, idWriter} {
		w.feed(ReadySeen{Moment: w.moment(), Fact: ReadyFact{Fence: 1, Subtask: id, Incarnation: w.leader.Attempt.Plan.Placements[id].Incarnation}})
	}
	b, err := json.Marshal(fault.New(fault.JobSinkDown, "sinks.out", "connection refused"))
	if err != nil {
		t.Fatal(err)
	}
	timeout := *w
	timeout.leader, _ = Step(w.leader, Tick{Moment: Moment{At: w.now.Add(StartTimeout)}})
	wantRestart(t, timeout.writing(t), RestartStall, string(fault.JobStartTimeout))

	// The target cannot be reached: the attempt stays and says why, for as long as it takes.
	w.feed(CommitSeen{Moment: w.moment(), Fact: CommittedFact{Fence: 1, Subtask: idCommit, Waiting: &Trouble{Fault: b, Since: w.now}}})
	if h := w.writing(t); h.Reason.Code != string(fault.JobSinkDown) || h.Fence != 1 || len(h.Restarts) != 0 {
		t.Errorf("got %s", describeHead(h))
	}
	w.perform(0)
	w.later(time.Hour)
	w.silent(t, "SINK_DOWN")
	w.later(30 * time.Second)
	w.silent(t, "SINK_DOWN")
}

// The subtasks' time to become ready begins when they are placed, not while the attempt waits for room.
func TestStartTimeoutBeginsWithThePlan(t *testing.T) {
	t.Parallel()
	w := newWorld(budget{})
	w.procs[0].dead, w.procs[1].dead = true, true
	w.feed(w.nodes())
	w.settle()
	w.wait()
	if w.leader.Head.Reason.Code != string(fault.JobNoCapacity) {
		t.Fatalf("got %s", describeHead(w.leader.Head))
	}
	w.now = w.now.Add(time.Hour)
	w.procs[0].dead, w.procs[1].dead = false, false
	w.feed(w.nodes())
	w.settle()
	if h := w.leader.Head; h.Phase != Running || h.Fence != 1 || len(h.Restarts) != 0 {
		t.Errorf("got %s, restarts %v", describeHead(h), h.Restarts)
	}
}
