package progress

import (
	"slices"
	"time"

	"weir.dev/weir/pkg/job"
)

// RecoveryLine is one recovery of a job.
type RecoveryLine struct {
	At time.Time `json:"at"`
	// Kind is what it was for: LOSS, STALL, or FREE and AWAY, which count for no limit.
	Kind job.RestartKind `json:"kind"`
	// From is the newest durable epoch at that time, from which the job went on; 0 when there was none.
	From uint64 `json:"from"`
	// Reason is what ended the attempt before; only the newest one's is known, and not for ever.
	Reason string `json:"reason,omitempty"`
}

// shownRecoveries bounds a list of recoveries.
const shownRecoveries = 20

// recoveries lists those that the restart policy looks back at.
func (o *Observation) recoveries() []RecoveryLine {
	var all []RecoveryLine
	for _, r := range slices.Backward(o.Head.Restarts) {
		if len(all) == shownRecoveries {
			break
		}
		all = append(all, RecoveryLine{At: r.At, Kind: r.Kind, From: uint64(r.Durable)})
	}
	if r := o.Recovery; r != nil && r.Fence == o.Head.Fence && len(all) > 0 {
		all[0].Reason = sentence(r.Reason.Code, r.Reason.Text)
	}
	return all
}
