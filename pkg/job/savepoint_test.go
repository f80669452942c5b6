package job

import (
	"slices"
	"testing"

	"weir.dev/weir/pkg/epoch"
)

func (w *world) savepoint(name string) {
	w.feed(IntentRead{Moment: w.moment(), Intent: w.leader.Intent.Savepointed(name, "r7", w.now)})
	w.settle()
}

func (w *world) restore(savepoint string) {
	w.feed(IntentRead{Moment: w.moment(), Intent: w.leader.Intent.Restoring(savepoint, w.leader.Head.Durable.Ref, true, "r8", w.now)})
	w.settle()
}

// A savepoint is a durable epoch with a name; the job goes on.
func TestSavepoint(t *testing.T) {
	t.Parallel()
	w := running(t)
	w.savepoint("before-upgrade")
	h := w.leader.Head
	p, ok := h.Savepoint("before-upgrade")
	if h.Phase != Running || !ok || p.Durable.Ref != h.Durable.Ref || p.Durable.Kind != epoch.Savepoint || h.Saving != nil || h.Handled.Savepoint != 1 {
		t.Fatalf("got %s, savepoints %+v, handled %+v", describeHead(h), h.Savepoints, h.Handled)
	}
	if !slices.Equal(h.Kept(), []epoch.ID{p.Durable.Epoch}) {
		t.Errorf("kept are %v", h.Kept())
	}
	fence := h.Fence
	w.savepoint("before-upgrade")
	if h := w.leader.Head; h.Refused == nil || h.Refused.Seq != 2 || h.Handled.Savepoint != 2 || len(h.Savepoints) != 1 {
		t.Errorf("the same name again: %+v, refused %+v", h.Savepoints, h.Refused)
	}
	w.feed(IntentRead{Moment: w.moment(), Intent: w.leader.Intent.Unsavepointed("before-upgrade", "r8", w.now)})
	w.settle()
	if h := w.leader.Head; len(h.Savepoints) != 0 || h.Fence != fence || h.Handled.Savepoint != 3 {
		t.Errorf("let go: %+v, handled %+v", h.Savepoints, h.Handled)
	}
}

// A savepoint whose epoch has to be given up is refused and says why; nothing is named after it.
func TestSavepointIsRefused(t *testing.T) {
	t.Parallel()
	w := running(t)
	w.feed(IntentRead{Moment: w.moment(), Intent: w.leader.Intent.Savepointed("a", "r7", w.now)})
	for len(w.channel) == 0 {
		switch {
		case len(w.under) > 0:
			w.perform(0)
		default:
			w.lookup(0)
		}
	}
	w.receive(true)
	w.settle()
	h := w.leader.Head
	if h.Refused == nil || h.Refused.Order != OrderSavepoint || h.Refused.Seq != 1 || len(h.Savepoints) != 0 || h.Saving != nil {
		t.Fatalf("refused %+v, savepoints %+v", h.Refused, h.Savepoints)
	}
	w.suspend()
	w.wait() // an epoch was just skipped
	w.savepoint("b")
	if h := w.leader.Head; h.Phase != Suspended || h.Refused.Seq != 2 || h.Handled.Savepoint != 2 {
		t.Errorf("at rest: %s, refused %+v", describeHead(h), h.Refused)
	}
}

// A job goes back to a savepoint: the chain and the ids go on, the states are the old ones, and what came after is read again.
func TestRestore(t *testing.T) {
	t.Parallel()
	w := running(t)
	w.savepoint("a")
	at := w.procs[0].position
	for range 2 {
		w.feed(IntentRead{Moment: w.moment(), Intent: w.leader.Intent.Epoch("r3", w.now)})
		w.settle()
	}
	before := *w.leader.Head
	w.restore("a")
	if h := w.leader.Head; h.Phase != Running || h.Refused == nil || h.Refused.Order != OrderRestore || h.Fence != before.Fence {
		t.Fatalf("a running job is taken back: %s, refused %+v", describeHead(h), h.Refused)
	}
	w.suspend()
	rest := *w.leader.Head
	w.restore("a")
	h := w.leader.Head
	p, _ := h.Savepoint("a")
	if h.Phase != Running || h.Fence != rest.Fence+1 || h.Restored == nil || h.Restored.From.Ref != p.Durable.Ref || h.Restored.As.Epoch != rest.NextEpoch {
		t.Fatalf("got %s, restored %+v", describeHead(h), h.Restored)
	}
	m := w.links[h.Restored.As]
	if m.Kind != epoch.Restore || m.Prev != rest.Durable.Ref || m.Sinks["out"].Prev.Epoch != rest.Durable.Epoch || len(m.Sinks["out"].Staged) != 0 {
		t.Errorf("the chain goes on with %+v", m)
	}
	if found := epoch.Chain(w.chain(h.Durable.Ref, 0)); len(found) > 0 {
		t.Errorf("chain: %v", found)
	}
	if got := w.target.rows[rest.Durable.Epoch:]; len(got) == 0 || got[0] != at {
		t.Errorf("the target holds rows %v, want those from %d on again", w.target.rows, at)
	}
	w.feed(IntentRead{Moment: w.moment(), Intent: *w.leader.Intent})
	w.settle()
	if w.leader.Head.Fence != h.Fence {
		t.Errorf("the same intent again began fence %d", w.leader.Head.Fence)
	}
}

// A restore is judged for one durable epoch; when another has come meanwhile, it is refused.
func TestRestoreOverAnotherEpoch(t *testing.T) {
	t.Parallel()
	w := running(t)
	w.savepoint("a")
	w.suspend()
	stale := w.leader.Intent.Restoring("a", epoch.Ref{Epoch: 1, Digest: "x"}, false, "r8", w.now)
	w.feed(IntentRead{Moment: w.moment(), Intent: stale})
	w.settle()
	if h := w.leader.Head; h.Phase != Suspended || h.Refused == nil || h.Refused.Order != OrderRestore || h.Handled.Restore != 1 {
		t.Fatalf("got %s, refused %+v", describeHead(h), h.Refused)
	}
	w.restore("nothing")
	if h := w.leader.Head; h.Phase != Suspended || h.Refused.Seq != 2 {
		t.Errorf("a savepoint that is not there: %s, refused %+v", describeHead(h), h.Refused)
	}
}

// A rewind leaves the epochs that no sink has committed: the chain goes on from the newest committed one, every row comes once.
func TestRewind(t *testing.T) {
	t.Parallel()
	w := running(t)
	w.target.row.Fence += 100 // the target takes nothing any more
	for range 2 {
		w.feed(IntentRead{Moment: w.moment(), Intent: w.leader.Intent.Epoch("r3", w.now)})
		w.settle()
	}
	w.suspend()
	rest := *w.leader.Head
	if rest.Phase != Suspended || rest.Committed != 1 || rest.Durable.Epoch != 4 {
		t.Fatalf("got %s", describeHead(&rest))
	}
	w.target.row.Fence -= 100
	w.restore("")
	h := w.leader.Head
	if h.Phase != Running || h.Restored.From.Epoch != 1 || w.links[h.Restored.As].Prev.Epoch != 1 || h.Committed != h.Durable.Epoch {
		t.Fatalf("got %s, restored %+v", describeHead(h), h.Restored)
	}
	if len(w.target.rows) == 0 {
		t.Error("the target holds nothing")
	}
	wantRows(t, w)
}
