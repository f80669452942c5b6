package task

import (
	"context"
	"errors"
	"slices"
	"testing"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/spec"
)

// letterBus answers puts as it is told and knows who holds the claim.
type letterBus struct {
	owner fence.Token
	put   error
	names []string
}

func (b *letterBus) ClaimDLQ(_ context.Context, _, _ string, f fence.Token) (uint64, error) {
	if f < b.owner {
		return 0, fence.ErrFenced
	}
	b.owner = f
	return uint64(f) * 10, nil
}

func (b *letterBus) EpochLetters(context.Context, string, string, epoch.ID) ([]string, error) {
	return b.names, b.put
}

func (b *letterBus) PutDeadLetter(_ context.Context, subject string, claim uint64, _ bus.Header, _ []byte) error {
	if claim != uint64(b.owner)*10 {
		return bus.ErrConflict
	}
	if b.put == nil {
		b.names = append(b.names, subject)
	}
	return b.put
}

func TestLettersOfOneAttempt(t *testing.T) {
	t.Parallel()
	b := &letterBus{}
	l := &letters{bus: b, job: "shop", sink: "wh", own: 4}
	if err := l.hold(t.Context()); err != nil {
		t.Fatal(err)
	}
	one := sink.Letter{LetterID: sink.LetterID{Table: "s.t", Epoch: 9, Index: 3}, Fault: fault.New(fault.SinkRow, "here", "so")}
	if err := l.Put(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	ids, err := l.Stored(t.Context(), 9)
	if err != nil || !slices.Equal(ids, []sink.LetterID{one.LetterID}) {
		t.Errorf("stored %v, %v", ids, err)
	}
	for _, tt := range []struct {
		put   error
		code  fault.Code
		class fault.Class
	}{
		{bus.ErrFull, fault.SinkDLQFull, fault.Transient},
		{bus.ErrTooBig, fault.SinkDLQRow, fault.Permanent},
		{bus.ErrUnknown, "", fault.Transient},
		{bus.ErrConflict, "", fault.Transient}, // another write was under way, the claim still holds
		{bus.ErrStreamGone, "", fault.Bug},
	} {
		b.put = tt.put
		if err := l.Put(t.Context(), one); fault.CodeOf(err) != tt.code || fault.ClassOf(err) != tt.class {
			t.Errorf("put answered with %v: %v", tt.put, err)
		}
	}
	b.put, b.owner = nil, 5
	if err := l.Put(t.Context(), one); !errors.Is(err, fence.ErrFenced) {
		t.Errorf("put of an attempt that was replaced: %v, want fenced", err)
	}
	if len(b.names) != 1 {
		t.Errorf("letters %v", b.names)
	}
}

func TestOnlySinksWithDLQHaveLetters(t *testing.T) {
	t.Parallel()
	s := &Subtask{}
	if s.letters(spec.Sink{Name: "wh"}) != nil || s.letters(spec.Sink{Name: "wh", DLQ: true}) == nil {
		t.Error("letters do not follow dlq")
	}
}
