package core

import (
	"fmt"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/fence"
)

// Claimant is who holds a claim or a commit up to a ledger.
type Claimant struct {
	// Where is the sink's place in the spec, Ledger what keeps its row, for people.
	Where, Ledger string
	Job, Life     string
	Fence         fence.Token
}

// MayTake is nil for a ledger that the claimant may claim.
func (c Claimant) MayTake(found Row) error {
	return c.Refusal(Claim(found, c.Life, c.Fence), found, epoch.Ref{}, epoch.Ref{})
}

// Has reports whether a ledger holds the commit of ref already. When it does not and err is nil, the commit is next there.
func (c Claimant) Has(found Row, ref, prev epoch.Ref) (done bool, err error) {
	v := Decide(found, c.Life, c.Fence, ref, prev)
	return v == Done, c.Refusal(v, found, ref, prev)
}

// Refusal is the error of a verdict that is neither Apply nor Done. ref and prev are those of the commit; a claim, which cannot
// diverge, has none.
func (c Claimant) Refusal(v Verdict, found Row, ref, prev epoch.Ref) error {
	switch v {
	case Apply, Done:
		return nil
	case Fenced:
		return fault.New(fault.SinkFenced, c.Where, fmt.Sprintf("%s has fence %s, this attempt %s", c.Ledger, found.Fence, c.Fence))
	case Foreign:
		return fault.New(fault.JobLedgerForeign, c.Where, fmt.Sprintf("%s has life %s, this job %s", c.Ledger, found.Life, c.Life), "job", c.Job)
	case Diverged:
	}
	why := c.Ledger + " holds no epoch of this job"
	if found != (Row{}) {
		why = fmt.Sprintf("%s holds epoch %s %s; the commit of %s %s follows %s %s",
			c.Ledger, found.Ref.Epoch, found.Ref.Digest, ref.Epoch, ref.Digest, prev.Epoch, prev.Digest)
	}
	return fault.New(fault.JobLedgerDiverged, c.Where, why, "job", c.Job)
}
