package job

import "time"

// Wish is the state a user asks for.
type Wish string

// The wishes. How each is reached is the leader's business; it quotes the request id in the head's reason.
const (
	WishRunning Wish = "RUNNING"
	WishDrained Wish = "DRAINED"
	// WishSuspended stops after a savepoint; 1c.
	WishSuspended Wish = "SUSPENDED"
	WishCancelled Wish = "CANCELLED"
	WishDeleted   Wish = "DELETED"
)

// Intent is what a user wants of a job; the only record of a job that users write, by CAS.
type Intent struct {
	Version int    `json:"version"`
	Job     string `json:"job"`
	Wish    Wish   `json:"wish"`
	// SpecDigest names the spec to run; the spec itself is stored beside it under its digest before the intent.
	SpecDigest string `json:"specDigest"`
	// EpochSeq asks for one epoch now each time it grows: what `status --wait-for caught-up` does on an idle job.
	EpochSeq uint64 `json:"epochSeq,omitempty"`
	// DrainTimeout bounds a drain.
	DrainTimeout time.Duration `json:"drainTimeout,omitempty"`
	// Resume asks a FAILED or SUSPENDED job to go on from its durable epoch. It is a sequence, not a flag, so that
	// one request starts one attempt.
	Resume  uint64    `json:"resume,omitempty"`
	Request string    `json:"request"`
	At      time.Time `json:"at"`
}
