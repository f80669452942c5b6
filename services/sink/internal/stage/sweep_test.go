package stage

import (
	"context"
	"errors"
	"slices"
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

// register has lines of ten letters for each epoch, in order, and remembers which were removed.
type register struct {
	lines   []sink.LetterID
	removed []sink.LetterID
}

func (r *register) Behind(_ context.Context, after sink.LetterID) ([]sink.LetterID, error) {
	for i, id := range r.lines {
		if id.Epoch > after.Epoch || id.Epoch == after.Epoch && id.Index > after.Index {
			return slices.Clone(r.lines[i:min(i+SweepLines, len(r.lines))]), nil
		}
	}
	return nil, nil
}

func (r *register) Remove(_ context.Context, lines []sink.LetterID) error {
	r.removed = append(r.removed, lines...)
	r.lines = slices.DeleteFunc(r.lines, func(id sink.LetterID) bool { return slices.Contains(lines, id) })
	return nil
}

// Sweeps of bounded size go through the whole register, however many lines stay, and begin anew behind its end.
func TestSweep(t *testing.T) {
	t.Parallel()
	const epochs = 150
	r := new(register)
	for e := epoch.ID(1); e <= epochs; e++ {
		for i := range 10 {
			r.lines = append(r.lines, sink.LetterID{Table: "t", Epoch: e, Index: i})
		}
	}
	var s Sweep
	for range epochs/sweepEpochs + 1 {
		k := &kept{}
		if removed, err := s.Run(t.Context(), k, r); err != nil || !removed || k.asked > sweepEpochs+1 {
			t.Fatalf("%d questions, removed: %t, %v", k.asked, removed, err)
		}
	}
	for _, id := range r.removed {
		if id.Index%2 == 0 {
			t.Fatalf("line %+v was removed", id)
		}
	}
	if len(r.removed) != epochs*5 || len(r.lines) != epochs*5 || s.after != (sink.LetterID{}) {
		t.Errorf("%d lines of %d, and the next sweep begins behind %+v", len(r.removed), epochs*5, s.after)
	}
	if removed, err := s.Run(t.Context(), &kept{}, r); removed || err != nil {
		t.Errorf("a register of letters that are there: %t, %v", removed, err)
	}
	down := errors.New("no answer")
	r.lines = append(r.lines, sink.LetterID{Table: "t", Epoch: epochs + 1, Index: 1})
	s.after = sink.LetterID{Epoch: epochs, Index: 9}
	removed, err := s.Run(t.Context(), Letters(&kept{err: down}), r)
	if theirs, ok := errors.AsType[LettersError](err); !ok || !errors.Is(theirs, down) || removed || len(r.lines) != epochs*5+1 {
		t.Errorf("without an answer: %t, %v", removed, err)
	}
}
