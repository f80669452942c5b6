package core

import (
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fence"
)

// Row is what a ledger holds for one (job, sink). The zero Row means that there is none.
type Row struct {
	Life  string
	Ref   epoch.Ref
	Fence fence.Token
}

// Verdict is the answer to a claim or a commit.
type Verdict uint8

const (
	// Apply: the ledger holds the commit's predecessor; apply and move it on. For a claim: take it.
	Apply Verdict = iota + 1
	// Done: the ledger already holds this epoch with this digest.
	Done
	// Fenced: a newer attempt holds the ledger; stop, write nothing.
	Fenced
	// Foreign: the ledger belongs to another life of the job.
	Foreign
	// Diverged: the ledger holds neither the epoch nor its predecessor; stop, a person has to decide.
	Diverged
)

// String names the verdict for errors and metrics.
func (v Verdict) String() string {
	switch v {
	case Apply:
		return "apply"
	case Done:
		return "done"
	case Fenced:
		return "fenced"
	case Foreign:
		return "foreign"
	case Diverged:
		return "diverged"
	}
	return "none"
}

// Claim decides whether the attempt (life, own) may take the ledger: nobody's, or one of its own life with a fence that is
// not newer. It answers Apply, Fenced or Foreign.
func Claim(found Row, life string, own fence.Token) Verdict {
	switch {
	case found == Row{}:
		return Apply
	case found.Life != life:
		return Foreign
	case found.Fence > own:
		return Fenced
	}
	return Apply
}

// Decide says what a commit of ref, whose predecessor at this sink is prev, has to do with a ledger that holds found.
// A claimed ledger always has a row, so a missing one is Diverged: somebody removed it.
func Decide(found Row, life string, own fence.Token, ref, prev epoch.Ref) Verdict {
	switch {
	case found == Row{}:
		return Diverged
	case found.Life != life:
		return Foreign
	case found.Fence != own:
		return Fenced
	case found.Ref == ref:
		return Done
	case found.Ref == prev && ref.Epoch > prev.Epoch:
		return Apply
	}
	return Diverged
}
