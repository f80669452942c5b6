package transact

import (
	"cmp"
	"context"
	"errors"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/services/sink/internal/core"
)

// Target is a database with the ledger in it. It has at most one session at a time, and opens one when it is asked for
// something. A new session begins only when those of before, of this attempt and of older ones, can no longer change anything.
type Target interface {
	// Transaction runs do in a transaction, which ends with COMMIT, or without a trace when do fails.
	Transaction(ctx context.Context, do func(Ledger) error) error
	// Apply makes one epoch visible, in one transaction with the ledger, or does nothing when the ledger has it already.
	// unknown is true when the error is one of COMMIT: if the session is lost by it, nobody has heard the outcome. The result
	// is then that of a commit that came through.
	Apply(ctx context.Context, commit sink.Commit) (result sink.Result, unknown bool, err error)
	// Fail translates an error and forgets what it may have made untrue. lost says that it gave up the session.
	Fail(ctx context.Context, err error) (translated error, lost bool)
	// Locked reports whether an error, as it came, says that others held a lock for too long.
	Locked(err error) bool
}

// Ledger is the row of one sink, within a transaction.
type Ledger interface {
	// Lock reads the row and keeps others from it; the zero Row when there is none, and nothing is locked.
	Lock(ctx context.Context) (core.Row, error)
	// Take writes the fence of this attempt into the row, or makes it. It leaves one alone that the attempt may not take.
	Take(ctx context.Context) error
}

// Claim takes the ledger for an attempt, and returns what it held before.
func Claim(ctx context.Context, who core.Claimant, t Target) (job.LedgerRow, error) {
	found, err := claim(ctx, who, t)
	if err != nil {
		failed, _ := t.Fail(ctx, err)
		if t.Locked(err) {
			failed = fault.Wrap(err, fault.SinkClaimRaced, who.Where, "the ledger row is locked")
		}
		return job.LedgerRow{}, failed
	}
	return job.LedgerRow{Life: cmp.Or(found.Life, who.Life), Ref: found.Ref, Fence: found.Fence}, nil
}

func claim(ctx context.Context, who core.Claimant, t Target) (found core.Row, err error) {
	err = t.Transaction(ctx, func(l Ledger) error {
		if found, err = l.Lock(ctx); err != nil {
			return err
		}
		if err := who.MayTake(found); err != nil {
			return err
		}
		if err := l.Take(ctx); err != nil {
			return err
		}
		// Between a read that found nothing to lock and the write another attempt may have come first.
		now, err := l.Lock(ctx)
		if err != nil {
			return err
		}
		if found == (core.Row{}) {
			found.Ref, found.Life = now.Ref, now.Life
		}
		return who.MayTake(now)
	})
	return found, err
}

// Commit applies one durable epoch.
func Commit(ctx context.Context, who core.Claimant, t Target, commit sink.Commit) (sink.Result, error) {
	result, unknown, err := t.Apply(ctx, commit)
	if err == nil {
		return result, nil
	}
	failed, lost := t.Fail(ctx, err)
	if !unknown || !lost {
		return sink.Result{}, failed
	}
	// The connection broke during COMMIT. The old session is over before a new one looks, and then the row says what became
	// of it.
	applied, lookErr := lookUp(ctx, who, t, commit)
	if lookErr != nil {
		return sink.Result{}, fault.Wrap(errors.Join(failed, lookErr), fault.SinkAmbiguous, who.Where,
			"the connection broke during COMMIT of epoch "+commit.Ref.Epoch.String())
	}
	if !applied {
		return sink.Result{}, failed
	}
	return result, nil
}

// lookUp resolves a commit whose outcome is unknown.
func lookUp(ctx context.Context, who core.Claimant, t Target, commit sink.Commit) (applied bool, err error) {
	err = t.Transaction(ctx, func(l Ledger) error {
		found, err := l.Lock(ctx)
		if err != nil {
			return err
		}
		applied, err = who.Has(found, commit.Ref, commit.Prev)
		return err
	})
	if err != nil {
		failed, _ := t.Fail(ctx, err)
		return false, failed
	}
	return applied, nil
}
