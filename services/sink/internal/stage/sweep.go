package stage

import (
	"context"

	"weir.dev/weir/pkg/sink"
)

const (
	// SweepLines is how many lines of the register one sweep looks at, and sweepEpochs of how many epochs: each of those is a question
	// to the bus.
	SweepLines  = 1000
	sweepEpochs = 20
)

// Forgotten is why the replay of a letter is refused whose line was swept.
const Forgotten = "the target remembers it no more: it was replayed or discarded long ago"

// Register is what a target keeps of dead letters, within the transaction of one epoch.
type Register interface {
	// Behind reads the next lines of the register, at most [SweepLines], in the order of epoch, table and index: those behind
	// a line, of epochs that the ledger's log no longer has.
	Behind(ctx context.Context, after sink.LetterID) ([]sink.LetterID, error)
	// Remove deletes lines.
	Remove(ctx context.Context, lines []sink.LetterID) error
}

// Sweep removes the lines of a register that nobody needs any more: those whose letter is gone, because it was replayed or discarded. A
// letter does not come back, since its epoch is committed and only the commit of its epoch writes it; and one that is replayed
// without its line is refused. As long as there is a letter its line stays, whatever its age: it says whether the letter was
// replayed, by a command that was killed before it could remove it, and whether a later change overtakes it.
//
// A sweep is a small part of the register, and the next one goes on behind it. The zero value begins at the oldest line.
type Sweep struct {
	after sink.LetterID
}

// Run sweeps, and reports whether it has removed any line.
func (s *Sweep) Run(ctx context.Context, letters sink.DeadLetters, r Register) (removed bool, err error) {
	lines, err := r.Behind(ctx, s.after)
	if err != nil {
		return false, err
	}
	gone, err := s.gone(ctx, letters, lines)
	if err != nil || len(gone) == 0 {
		return false, err
	}
	return true, r.Remove(ctx, gone)
}

// gone returns those of the next lines whose letter is gone, and moves on behind those that it has asked for.
func (s *Sweep) gone(ctx context.Context, letters sink.DeadLetters, lines []sink.LetterID) (gone []sink.LetterID, err error) {
	var there map[sink.LetterID]bool
	epochs := 0
	for i, line := range lines {
		if i == 0 || line.Epoch != lines[i-1].Epoch {
			if epochs++; epochs > sweepEpochs {
				return gone, nil
			}
			stored, err := letters.Stored(ctx, line.Epoch)
			if err != nil {
				return nil, err
			}
			there = make(map[sink.LetterID]bool, len(stored))
			for _, id := range stored {
				there[id] = true
			}
		}
		s.after = line
		if !there[line] {
			gone = append(gone, line)
		}
	}
	if len(lines) < SweepLines {
		s.after = sink.LetterID{}
	}
	return gone, nil
}
