package job

import "time"

// IntentVersion is the version of the intent's JSON form.
const IntentVersion = 1

// DefaultDrainTimeout bounds a drain whose intent names no other bound.
const DefaultDrainTimeout = 10 * time.Minute

// Wish is the state a user asks for.
type Wish string

// The wishes. How each is reached is the leader's business; it quotes the request id in the head's reason.
const (
	WishRunning Wish = "RUNNING"
	WishDrained Wish = "DRAINED"
	// WishSuspended stops after a savepoint.
	WishSuspended Wish = "SUSPENDED"
	WishCancelled Wish = "CANCELLED"
	WishDeleted   Wish = "DELETED"
)

// Intent is what a user wants of a job; the only record of a job that users write, by CAS. Each request is made from
// the record before it by one of the methods below, so that sequences only grow.
type Intent struct {
	Version int    `json:"version"`
	Job     string `json:"job"`
	Wish    Wish   `json:"wish"`
	// SpecDigest names the spec to run; the spec itself is stored beside it under its digest before the intent. It
	// takes effect when a life starts, or with Applied.
	SpecDigest string `json:"specDigest"`
	// Start asks for a life each time it grows: ignored while one is not over, a new life after FINISHED, CANCELLED or
	// DELETED.
	Start uint64 `json:"start,omitempty"`
	// Resume asks a FAILED or SUSPENDED job to go on from its durable epoch. It is a sequence, not a flag, so that
	// one request starts one attempt.
	Resume uint64 `json:"resume,omitempty"`
	// EpochSeq asks for one epoch now each time it grows: what `status --wait-for caught-up` does on an idle job.
	EpochSeq uint64 `json:"epochSeq,omitempty"`
	// Resnapshot asks for tables to be copied anew, once each time its sequence grows: a running job is taken back to its
	// durable epoch for it, a FAILED or SUSPENDED one goes on from there.
	Resnapshot *Resnapshot `json:"resnapshot,omitempty"`
	// Applied asks a life to go on with another spec, once each time its sequence grows, as Resnapshot does.
	Applied *Applied `json:"applied,omitempty"`
	// Savepoint asks for an epoch to be kept under a name, or let go, once each time its sequence grows.
	Savepoint *SavepointOrder `json:"savepoint,omitempty"`
	// Restore asks a job at rest to go on from an older epoch, once each time its sequence grows.
	Restore *RestoreOrder `json:"restore,omitempty"`
	// Adopt asks a job at rest to go on from the ledgers of its sinks, once each time its sequence grows.
	Adopt *AdoptOrder `json:"adopt,omitempty"`
	// DrainTimeout bounds a drain; zero is [DefaultDrainTimeout].
	DrainTimeout time.Duration `json:"drainTimeout,omitempty"`
	// Request identifies the person's request; it comes back in the head's reason.
	Request string    `json:"request"`
	At      time.Time `json:"at"`
}

// Submit asks for a life of the job with this spec. Start from the zero Intent when the job has none.
func (i Intent) Submit(job, specDigest, request string, at time.Time) Intent {
	i.Version, i.Job, i.SpecDigest = IntentVersion, job, specDigest
	i.Start++
	return i.ask(WishRunning, request, at)
}

// Drained asks the job to finish what its sources hold now, then to end as FINISHED.
func (i Intent) Drained(timeout time.Duration, request string, at time.Time) Intent {
	i.DrainTimeout = timeout
	return i.ask(WishDrained, request, at)
}

// Suspended asks the job to take an epoch and to come to rest, to be resumed later.
func (i Intent) Suspended(request string, at time.Time) Intent {
	return i.ask(WishSuspended, request, at)
}

// Cancelled asks the job to stop at once and for good.
func (i Intent) Cancelled(request string, at time.Time) Intent {
	return i.ask(WishCancelled, request, at)
}

// Removed asks for the job to be stopped and everything of it outside the targets to be dropped.
func (i Intent) Removed(request string, at time.Time) Intent { return i.ask(WishDeleted, request, at) }

// Resumed asks a FAILED or SUSPENDED job to go on from its durable epoch.
func (i Intent) Resumed(request string, at time.Time) Intent {
	i.Resume++
	return i.ask(WishRunning, request, at)
}

// Epoch asks for one epoch now. The wish stays.
func (i Intent) Epoch(request string, at time.Time) Intent {
	i.EpochSeq++
	return i.ask(i.Wish, request, at)
}

// Resnapshotted asks for tables, schema.table, to be copied anew; none means all.
func (i Intent) Resnapshotted(tables []string, request string, at time.Time) Intent {
	next := Resnapshot{Seq: 1, Tables: tables}
	if i.Resnapshot != nil {
		next.Seq = i.Resnapshot.Seq + 1
	}
	i.Resnapshot = &next
	return i.ask(WishRunning, request, at)
}

func (i Intent) ask(w Wish, request string, at time.Time) Intent {
	i.Wish, i.Request, i.At = w, request, at
	return i
}
