package stage

import (
	"context"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/sink"
)

// LettersError comes from where letters are kept, not from the target, and has its class already.
type LettersError struct{ Err error }

func (e LettersError) Error() string { return e.Err.Error() }

// Unwrap returns the error as it came.
func (e LettersError) Unwrap() error { return e.Err }

// Letters marks the errors of l as [LettersError], so that a committer tells them from those of its target; nil of nil.
func Letters(l sink.DeadLetters) sink.DeadLetters {
	if l == nil {
		return nil
	}
	return letters{l}
}

type letters struct{ sink.DeadLetters }

func (l letters) Stored(ctx context.Context, e epoch.ID) ([]sink.LetterID, error) {
	ids, err := l.DeadLetters.Stored(ctx, e)
	return ids, lettersError(err)
}

func (l letters) Put(ctx context.Context, x sink.Letter) error {
	return lettersError(l.DeadLetters.Put(ctx, x))
}

func lettersError(err error) error {
	if err == nil {
		return nil
	}
	return LettersError{err}
}
