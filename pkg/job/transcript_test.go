package job

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/plan"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// settle lets everything happen that needs no time, in one fixed order.
func (w *world) settle() {
	for range 500 {
		switch {
		case len(w.under) > 0:
			w.perform(0)
			continue
		case w.lookup(0), w.lookup(1), w.lookup(2):
			continue
		case len(w.channel) > 0 && !w.procs[1].dead && !w.mute:
			w.receive(false)
			continue
		}
		if k := w.untold(); k != "" {
			w.told[k] = true
			w.feed(stamped(w.facts[k], w.moment()))
			continue
		}
		return
	}
	panic("the world does not settle")
}

func (w *world) lookup(i int) bool {
	if p := &w.procs[i]; p.dead || p.version == len(w.heads) {
		return false
	}
	w.observe(i, len(w.heads))
	return true
}

func (w *world) untold() string {
	for _, k := range slices.Sorted(mapKeys(w.facts)) {
		if !w.told[k] {
			return k
		}
	}
	return ""
}

// wait lets the time pass that the leader asked for.
func (w *world) wait() {
	w.now = w.leader.Wake(w.now)
	w.log = append(w.log, fmt.Sprintf("-- %s", w.now.Sub(start)))
	w.feed(Tick{Moment: w.moment()})
	w.settle()
}

func describeHead(h *Head) string {
	s := fmt.Sprintf("%s fence %d next %d", h.Phase, h.Fence, h.NextEpoch)
	if h.Plan != nil {
		s += " plan " + h.Plan.Key
		if h.Plan.Restore != nil {
			s += fmt.Sprintf(" from %d", h.Plan.Restore.Epoch)
		}
	}
	if h.InFlight != nil {
		s += fmt.Sprintf(" in-flight %d %s", h.InFlight.Epoch, h.InFlight.Kind)
	}
	if h.Durable != nil {
		s += fmt.Sprintf(" durable %d", h.Durable.Epoch)
	}
	s += fmt.Sprintf(" committed %d", h.Committed)
	if h.Skipped > 0 {
		s += fmt.Sprintf(" skipped %d", h.Skipped)
	}
	if h.Release != nil {
		s += fmt.Sprintf(" release %q try %d done %t", h.Release.Node, h.Release.Try, h.Release.Done)
	}
	if !h.RetryAt.IsZero() {
		s += fmt.Sprintf(" retry in %s", h.RetryAt.Sub(h.Updated))
	}
	return s + " reason " + h.Reason.Code
}

func describeEvent(e Event) string {
	name := strings.TrimPrefix(fmt.Sprintf("%T", e), "job.")
	switch e := e.(type) { //nolint:gochecksumtype // the others are told by their names
	case HeadRead:
		if e.View.Head == nil {
			return name + " none"
		}
		return name + " " + describeHead(e.View.Head)
	case HeadWritten:
		return fmt.Sprintf("%s revision %d", name, e.Revision)
	case IntentRead:
		return name + " " + string(e.Intent.Wish)
	case ReadySeen:
		return fmt.Sprintf("%s %s fence %d", name, e.Fact.Subtask, e.Fact.Fence)
	case AckSeen:
		return fmt.Sprintf("%s %s epoch %d staged %d", name, e.Fact.Subtask, e.Fact.Epoch, len(e.Fact.Staged))
	case CommitSeen:
		return fmt.Sprintf("%s epoch %d", name, e.Fact.Epoch)
	case FailureSeen:
		return fmt.Sprintf("%s %s %s", name, e.Fact.Subtask, e.Fact.Class)
	case EffectFailed:
		return fmt.Sprintf("%s %s %s", name, e.Op, e.Class)
	case StreamLost:
		return fmt.Sprintf("%s fence %d", name, e.Fence)
	case NodesRead:
		for _, n := range e.Nodes {
			name += " " + n.Incarnation
		}
		return name
	default:
		return name
	}
}

func describeEffect(e Effect) string {
	name := strings.TrimPrefix(fmt.Sprintf("%T", e), "job.")
	switch e := e.(type) { //nolint:gochecksumtype // the others are told by their names
	case WriteHead:
		return fmt.Sprintf("%s over %d: %s", name, e.Expect, describeHead(&e.Head))
	case ResetStreams:
		return fmt.Sprintf("%s fence %d", name, e.Fence)
	case StorePlan:
		return fmt.Sprintf("%s fence %d", name, e.Plan.Fence)
	case FetchChain:
		return fmt.Sprintf("%s from %d to %d", name, e.Durable.Epoch, e.Committed)
	case StoreManifest:
		return fmt.Sprintf("%s epoch %d prev %d staged %d", name, e.Ref.Epoch, e.Manifest.Prev.Epoch, len(e.Manifest.Sinks["out"].Staged))
	case DropStreams:
		return fmt.Sprintf("%s through %d", name, e.Fence)
	case Announce:
		return fmt.Sprintf("%s %s %s: %s", name, e.Notice.Kind, e.Notice.Phase, e.Notice.Reason.Code)
	case Collect:
		return fmt.Sprintf("%s committed %d", name, e.Committed)
	case StepDown:
		return fmt.Sprintf("%s term %d regressed %t", name, e.Term, e.Regressed)
	default:
		return name
	}
}

func permanent(t *testing.T, id plan.SubtaskID, w *world, code fault.Code, class string) FailureSeen {
	t.Helper()
	b, err := json.Marshal(fault.New(code, "sinks.out", "told to"))
	if err != nil {
		t.Fatal(err)
	}
	return FailureSeen{Moment: w.moment(), Fact: FailedFact{Fence: w.leader.Head.Fence, Subtask: id, Class: class, Fault: b}}
}

// revive starts a dead process again under a new incarnation.
func (w *world) revive(i int) {
	w.procs[i] = proc{incarnation: w.procs[i].incarnation + 1}
	w.feed(w.nodes())
	w.settle()
}

func TestTranscripts(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]func(t *testing.T, w *world){
		"life": func(_ *testing.T, w *world) {
			w.settle()
			w.wait()
			w.feed(IntentRead{Moment: w.moment(), Intent: w.leader.Intent.Drained(time.Minute, "r2", w.now), Life: "life2"})
			w.settle()
		},
		"process-lost": func(_ *testing.T, w *world) {
			w.settle()
			w.crash(1)
			w.settle()
			w.wait()
			w.revive(1)
		},
		"leader-lost-in-flight": func(_ *testing.T, w *world) {
			w.settle()
			w.mute = true
			w.wait()
			w.lead(2)
			w.settle()
			w.mute = false
			w.settle()
		},
		"skipped-then-covered": func(_ *testing.T, w *world) {
			w.settle()
			w.mute = true
			w.wait()
			w.wait()
			w.mute = false
			w.settle()
		},
		"barriers-unanswered": func(_ *testing.T, w *world) {
			w.settle()
			w.mute = true
			for range 5 {
				w.wait()
			}
		},
		"permanent-then-resumed": func(t *testing.T, w *world) {
			t.Helper()
			w.settle()
			w.feed(permanent(t, idCommit, w, fault.JobLedgerDiverged, "permanent"))
			w.settle()
			w.feed(IntentRead{Moment: w.moment(), Intent: w.leader.Intent.Resumed("r2", w.now), Life: "life2"})
			w.settle()
		},
		"restarts-exhausted": func(t *testing.T, w *world) {
			t.Helper()
			w.settle()
			for range 4 {
				w.feed(permanent(t, idReader, w, fault.AppInternal, "bug"))
				w.settle()
				if !w.leader.Head.Phase.AtRest() {
					w.wait()
				}
			}
		},
		"deleted-and-made-again": func(_ *testing.T, w *world) {
			w.settle()
			w.feed(IntentRead{Moment: w.moment(), Intent: w.leader.Intent.Removed("r2", w.now), Life: "life2"})
			w.settle()
			w.target = target{}
			w.feed(IntentRead{Moment: w.moment(), Intent: w.leader.Intent.Submit("shop", "spec1", "r3", w.now), Life: "life3"})
			w.settle()
		},
		"applied": func(_ *testing.T, w *world) {
			w.settle()
			w.feed(IntentRead{Moment: w.moment(), Intent: w.leader.Intent.Applying("spec2", "r2", w.now), Life: "life2"})
			w.settle()
		},
		"ledger-ahead": func(_ *testing.T, w *world) {
			w.target.row = LedgerRow{Life: "life1", Ref: epoch.Ref{Epoch: 9, Digest: "d9"}, Fence: 0}
			w.settle()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(budget{})
			w.tracing = true
			script(t, w)
			for i := 1; i < len(w.heads); i++ {
				if err := follows(&w.heads[i-1], &w.heads[i]); err != nil {
					t.Errorf("head %d: %v", i+1, err)
				}
			}
			got := []byte(strings.Join(w.log, "\n") + "\n")
			path := filepath.Join("testdata", name+".golden")
			if *update {
				if err := os.WriteFile(path, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s differs; run with -update and read the diff\n%s", path, got)
			}
		})
	}
}
