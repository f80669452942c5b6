package job

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/plan"
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

func (w *world) later(d time.Duration) *world {
	w.now = w.now.Add(d)
	w.feed(Tick{Moment: w.moment()})
	return w
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
	for len(w.under) > 0 || w.lookup(0) || w.lookup(1) || len(w.channel) > 0 || w.untold() != "" {
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

// ⚑ A claimed ledger row is judged before anything is committed: it must be on the chain of manifests.
func TestLedgerIsJudgedAgainstTheChain(t *testing.T) {
	t.Parallel()
	ref := func(e epoch.ID) epoch.Ref { return epoch.Ref{Epoch: e, Digest: fmt.Sprintf("digest-%d", e)} }
	staged := []epoch.Staged{{Epoch: 1}}
	// Epochs 4 and 7 staged rows, 5 and 8 none; 5 is committed, 8 durable.
	chain := []epoch.Link{
		{Ref: ref(5), Manifest: &epoch.Manifest{Epoch: 5, Sinks: map[string]epoch.SinkState{"out": {Prev: ref(4)}}}},
		{Ref: ref(7), Manifest: &epoch.Manifest{Epoch: 7, Sinks: map[string]epoch.SinkState{"out": {Prev: ref(4), Staged: staged}}}},
		{Ref: ref(8), Manifest: &epoch.Manifest{Epoch: 8, Sinks: map[string]epoch.SinkState{"out": {Prev: ref(7)}}}},
	}
	d := &plan.Deployment{Partitioned: smallPlan()}
	for _, tt := range []struct {
		name      string
		committed epoch.ID
		chain     []epoch.Link
		row       *LedgerRow
		want      fault.Code
	}{
		{name: "at the durable epoch's entry", committed: 5, chain: chain, row: &LedgerRow{Life: "l", Ref: ref(7)}},
		{name: "one back", committed: 5, chain: chain, row: &LedgerRow{Life: "l", Ref: ref(4)}},
		{name: "no ledger", committed: 5, chain: chain},
		{name: "ahead", committed: 5, chain: chain, row: &LedgerRow{Life: "l", Ref: ref(9)}, want: fault.JobLedgerAhead},
		{name: "another branch", committed: 5, chain: chain, row: &LedgerRow{Life: "l", Ref: epoch.Ref{Epoch: 7, Digest: "other"}}, want: fault.JobLedgerDiverged},
		{name: "behind what is committed", committed: 8, chain: chain[2:], row: &LedgerRow{Life: "l", Ref: ref(4)}, want: fault.JobLedgerDiverged},
		{name: "an epoch that staged nothing", committed: 5, chain: chain, row: &LedgerRow{Life: "l", Ref: ref(5)}, want: fault.JobLedgerDiverged},
		{name: "empty though committed", committed: 5, chain: chain, row: &LedgerRow{Life: "l"}, want: fault.JobLedgerDiverged},
		{name: "another life", committed: 5, chain: chain, row: &LedgerRow{Life: "x", Ref: ref(7)}, want: fault.JobLedgerForeign},
		{name: "first attempt", row: &LedgerRow{}},
		{name: "first attempt, ledger kept", row: &LedgerRow{Life: "l", Ref: ref(3)}, want: fault.JobLedgerAhead},
		{name: "nothing committed yet", chain: chain[1:], row: &LedgerRow{Life: "l"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := &Head{Job: "shop", Life: "l", Committed: tt.committed}
			claimed, bad := judge(h, d, tt.chain, map[plan.SubtaskID]ReadyFact{idCommit: {Ledger: tt.row}})
			var got fault.Code
			if bad != nil {
				got = fault.Code(bad.Code)
			}
			if got != tt.want {
				t.Errorf("judged %q (%+v), want %q", got, bad, tt.want)
			}
			if tt.row != nil && claimed["out"] != *tt.row {
				t.Errorf("claimed %+v", claimed)
			}
		})
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
	} {
		if got := s.pause(tt.past, tt.roll); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
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
