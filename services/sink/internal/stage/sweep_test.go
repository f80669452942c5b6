package stage

import (
	"context"
	"errors"
	"testing"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/sink"
)

// kept are the letters there are, every second one of an epoch; each question is counted.
type kept struct {
	sink.DeadLetters
	asked int
	err   error
}

func (k *kept) Stored(_ context.Context, e epoch.ID) ([]sink.LetterID, error) {
	k.asked++
	var ids []sink.LetterID
	for i := 0; i < 10; i += 2 {
		ids = append(ids, sink.LetterID{Table: "t", Epoch: e, Index: i})
	}
	return ids, k.err
}

// register has lines of ten letters for each epoch, and answers for what lies behind one.
type register []sink.LetterID

func (r register) behind(after sink.LetterID) []sink.LetterID {
	for i, id := range r {
		if id.Epoch > after.Epoch || id.Epoch == after.Epoch && id.Index > after.Index {
			return r[i:min(i+SweepLines, len(r))]
		}
	}
	return nil
}

// Sweeps of bounded size go through the whole register, however many lines stay, and begin anew behind its end.
func TestSweep(t *testing.T) {
	t.Parallel()
	const epochs = 150
	var r register
	for e := epoch.ID(1); e <= epochs; e++ {
		for i := range 10 {
			r = append(r, sink.LetterID{Table: "t", Epoch: e, Index: i})
		}
	}
	var s Sweep
	removed := make(map[sink.LetterID]bool)
	for range epochs/sweepEpochs + 1 {
		k := &kept{}
		gone, err := s.Gone(t.Context(), k, r.behind(s.After()))
		if err != nil || k.asked > sweepEpochs+1 {
			t.Fatalf("%d questions, %v", k.asked, err)
		}
		for _, id := range gone {
			if id.Index%2 == 0 || removed[id] {
				t.Fatalf("line %+v is gone, or gone twice", id)
			}
			removed[id] = true
		}
	}
	if len(removed) != epochs*5 || s.After() != (sink.LetterID{}) {
		t.Errorf("%d lines of %d, and the next sweep begins behind %+v", len(removed), epochs*5, s.After())
	}
	down := errors.New("no answer")
	if gone, err := s.Gone(t.Context(), &kept{err: down}, r.behind(s.After())); !errors.Is(err, down) || gone != nil {
		t.Errorf("without an answer %d lines are gone, %v", len(gone), err)
	}
}
