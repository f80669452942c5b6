package job

import (
	"testing"
	"time"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/position"
)

// An order to take ledgers over counts on above everything that they have seen, in their life, and begins the chain anew where
// they are; it is for a job at rest, and for the durable epoch that was seen.
func TestAdoptLedgers(t *testing.T) {
	t.Parallel()
	w := running(t)
	ledger := epoch.Ref{Epoch: 70, Digest: "d70"}
	at := position.New(position.Generator, map[string]string{"n": "9"})
	adopt := func(over epoch.Ref) {
		o := AdoptOrder{
			Life: "life0", Fence: 40, Rows: map[string]epoch.Ref{"out": ledger}, Over: over,
			Positions: map[plan.SubtaskID]position.Position{idReader: at},
		}
		w.feed(IntentRead{Moment: w.moment(), Intent: w.leader.Intent.Adopting(o, "r7", w.now)})
	}
	before := *w.leader.Head
	adopt(before.Durable.Ref)
	w.settle()
	if h := w.leader.Head; h.Phase != Running || h.Refused == nil || h.Refused.Order != OrderAdopt || h.Fence != before.Fence {
		t.Fatalf("while it runs: %s, refused %+v", describeHead(h), h.Refused)
	}
	w.suspend()
	rest := *w.leader.Head
	adopt(before.Durable.Ref)
	w.settle()
	if h := w.leader.Head; h.Phase != Suspended || h.Refused.Seq != 2 || h.Handled.Adopt != 2 {
		t.Fatalf("over an older epoch: %s, refused %+v", describeHead(h), h.Refused)
	}
	w.now = w.now.Add(time.Second)
	adopt(rest.Durable.Ref)
	w.perform(0) // the manifest is stored
	h := w.writing(t)
	if h.Life != "life0" || h.Fence != 41 || h.NextEpoch != 72 || h.Phase != Starting || h.Handled.Adopt != 3 {
		t.Errorf("got %s of life %s, next epoch %d", describeHead(h), h.Life, h.NextEpoch)
	}
	if h.Durable.Epoch != 71 || h.Durable.Kind != epoch.Restore || h.Committed != 71 || h.Adopted.As != h.Durable.Ref || h.Adopted.Left != rest.Life {
		t.Errorf("durable %+v, committed %d, adopted %+v", h.Durable, h.Committed, h.Adopted)
	}
	m := w.links[h.Durable.Ref]
	if m == nil || !m.Prev.IsZero() || m.Life != "life0" || m.LedgerOf("out", h.Durable.Ref) != ledger {
		t.Fatalf("the manifest is %+v", m)
	}
	if found := epoch.Chain([]epoch.Link{{Ref: h.Durable.Ref, Manifest: m}}); len(found) > 0 {
		t.Errorf("the chain: %v", found)
	}
}
