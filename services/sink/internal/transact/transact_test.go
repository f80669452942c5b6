package transact_test

import (
	"context"
	"errors"
	"testing"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/services/sink/internal/core"
	"weir.dev/weir/services/sink/internal/transact"
)

var (
	me     = core.Claimant{Where: "sinks.wh", Ledger: "weir_ledger", Job: "shop", Life: "l1", Fence: 4}
	second = sink.Commit{Ref: epoch.Ref{Epoch: 2, Digest: "b"}, Prev: epoch.Ref{Epoch: 1, Digest: "a"}}

	errCut   = errors.New("the connection is cut")
	errHeld  = errors.New("the row is locked")
	errOwned = errors.New("translated")
)

// target has a ledger's row and goes wrong where it is told to.
type target struct {
	row core.Row
	// rival is what another attempt writes between the first look at no row and the claim.
	rival core.Row
	// apply is how a commit ends; of it comes how the target takes it.
	apply   error
	unknown bool
	through bool // the row moved on, whatever was answered
	lost    bool
	look    error // of a transaction
	applied int
}

func (t *target) Transaction(ctx context.Context, do func(transact.Ledger) error) error {
	if t.look != nil {
		return t.look
	}
	before := t.row
	if err := do(t); err != nil {
		t.row = before
		return err
	}
	return ctx.Err()
}

func (t *target) Lock(context.Context) (core.Row, error) { return t.row, nil }

func (t *target) Take(context.Context) error {
	if t.row == (core.Row{}) {
		t.row = t.rival
	}
	switch {
	case t.row == core.Row{}:
		t.row = core.Row{Life: me.Life, Fence: me.Fence}
	case t.row.Life == me.Life && t.row.Fence <= me.Fence:
		t.row.Fence = me.Fence
	}
	return nil
}

func (t *target) Apply(_ context.Context, commit sink.Commit) (sink.Result, bool, error) {
	t.applied++
	if t.through {
		t.row.Ref = commit.Ref
	}
	return sink.Result{Applied: true, Rows: 7}, t.unknown, t.apply
}

func (t *target) Fail(_ context.Context, err error) (error, bool) {
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err, t.lost
	}
	return errors.Join(errOwned, err), t.lost
}

func (t *target) Locked(err error) bool { return errors.Is(err, errHeld) }

func TestClaim(t *testing.T) {
	t.Parallel()
	at := epoch.Ref{Epoch: 9, Digest: "x"}
	for _, tt := range []struct {
		name string
		t    target
		code fault.Code
		held core.Row // of the answer, and afterwards with the fence of the attempt
	}{
		{name: "nobody's", held: core.Row{Life: "l1"}},
		{name: "of an older attempt", t: target{row: core.Row{Life: "l1", Fence: 3, Ref: at}}, held: core.Row{Life: "l1", Fence: 3, Ref: at}},
		{name: "of a newer attempt", t: target{row: core.Row{Life: "l1", Fence: 5}}, code: fault.SinkFenced},
		{name: "of another life", t: target{row: core.Row{Life: "l0", Fence: 1}}, code: fault.JobLedgerForeign},
		{name: "a newer attempt came first", t: target{rival: core.Row{Life: "l1", Fence: 5}}, code: fault.SinkFenced},
		{name: "another life came first", t: target{rival: core.Row{Life: "l0", Fence: 1}}, code: fault.JobLedgerForeign},
		{name: "an older attempt came first", t: target{rival: core.Row{Life: "l1", Fence: 3, Ref: at}}, held: core.Row{Life: "l1", Ref: at}},
		{name: "locked", t: target{look: errHeld}, code: fault.SinkClaimRaced},
	} {
		got, err := transact.Claim(t.Context(), me, &tt.t)
		if fault.CodeOf(err) != tt.code || (err == nil) != (tt.code == "") {
			t.Errorf("%s: error %v, want %q", tt.name, err, tt.code)
			continue
		}
		if err != nil {
			if tt.t.row.Fence == me.Fence {
				t.Errorf("%s: the ledger was taken", tt.name)
			}
			continue
		}
		if (core.Row{Life: got.Life, Fence: got.Fence, Ref: got.Ref}) != tt.held {
			t.Errorf("%s: it held %+v, want %+v", tt.name, got, tt.held)
		}
		if tt.t.row != (core.Row{Life: tt.held.Life, Fence: fence.Token(4), Ref: tt.held.Ref}) {
			t.Errorf("%s: the ledger has %+v", tt.name, tt.t.row)
		}
	}
}

// I13: an outcome that is unknown is asked of the ledger, and nothing is applied a second time.
func TestCommit(t *testing.T) {
	t.Parallel()
	before := core.Row{Life: "l1", Fence: 4, Ref: second.Prev}
	for _, tt := range []struct {
		name string
		t    target
		want error
		code fault.Code
	}{
		{name: "answered", t: target{row: before, through: true}},
		{name: "refused", t: target{row: before, apply: errCut}, want: errOwned},
		{name: "cut before COMMIT", t: target{row: before, apply: errCut, lost: true}, want: errOwned},
		{name: "COMMIT was refused", t: target{row: before, apply: errCut, unknown: true}, want: errOwned},
		{name: "cut, and it came through", t: target{row: before, apply: errCut, unknown: true, lost: true, through: true}},
		{name: "cut, and it did not", t: target{row: before, apply: errCut, unknown: true, lost: true}, want: errOwned},
		{
			name: "cut, and a newer attempt has taken the ledger",
			t:    target{row: core.Row{Life: "l1", Fence: 5, Ref: second.Prev}, apply: errCut, unknown: true, lost: true, through: true},
			code: fault.SinkAmbiguous,
		},
		{
			name: "cut, and the ledger holds something else",
			t:    target{row: core.Row{Life: "l1", Fence: 4, Ref: epoch.Ref{Epoch: 1, Digest: "z"}}, apply: errCut, unknown: true, lost: true},
			code: fault.SinkAmbiguous,
		},
		{name: "cut, and nobody answers", t: target{row: before, apply: errCut, unknown: true, lost: true, look: errCut}, code: fault.SinkAmbiguous},
	} {
		got, err := transact.Commit(t.Context(), me, &tt.t, second)
		switch {
		case tt.t.applied != 1:
			t.Errorf("%s: applied %d times", tt.name, tt.t.applied)
		case tt.code != "" && fault.CodeOf(err) != tt.code, tt.code == "" && !errors.Is(err, tt.want):
			t.Errorf("%s: error %v, want %v%s", tt.name, err, tt.want, tt.code)
		case err == nil && got != sink.Result{Applied: true, Rows: 7}, err != nil && got != sink.Result{}:
			t.Errorf("%s: result %+v", tt.name, got)
		}
	}
}
