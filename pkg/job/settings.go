package job

import (
	"encoding/json"
	"slices"
	"time"

	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/spec"
)

// Times that no spec sets.
const (
	// StartTimeout is how long an attempt may take until every subtask is ready.
	StartTimeout = 60 * time.Second
	// gatherCommits is how soon the next epoch must be due for a confirmation of commits to wait for its CAS.
	gatherCommits = 50 * time.Millisecond
	// maxBackoff bounds the pause before an attempt.
	maxBackoff = 30 * time.Second
	// awayBackoff bounds the pause before an attempt at a source that was there a moment ago; the longer it is away the longer the
	// pause may be, up to maxBackoff: one part in awayShare of that time.
	awayBackoff = 2 * time.Second
	awayShare   = 10
	// retryEffect is the pause before an effect that failed for a passing reason is issued again.
	retryEffect = 250 * time.Millisecond
	// capacityGrace is how long an attempt waits for room before the head says NO_CAPACITY.
	capacityGrace = time.Second
	// collectEvery is the least time between two collections of garbage.
	collectEvery = 10 * time.Second
	// calmest is how many idle intervals may lie between two epochs in which nothing moves.
	calmest = 30
	// staleHeads is for how long reads older than a known revision are taken for lateness of a replica.
	staleHeads = 12 * time.Second
	// releaseRetry is the pause before another process is asked to drop external resources.
	releaseRetry = 10 * time.Second
)

// Limits of skipped epochs in a row.
const (
	// skippedAlarm is when people are told.
	skippedAlarm = 3
	// skippedRecover is how many skipped barriers may be under way, unacknowledged, before the attempt is given up.
	skippedRecover = 4
)

// lossBudget is how many times the restart cap losses may use up: a node that dies often is not a broken job.
const lossBudget = 10

// Settings are the parts of a spec that drive the machine.
type Settings struct {
	Interval       time.Duration `json:"interval"`
	IdleInterval   time.Duration `json:"idleInterval"`
	Timeout        time.Duration `json:"timeout"`
	MaxUncommitted int           `json:"maxUncommitted"`
	// Backoff, Cap and Window are the restart policy.
	Backoff time.Duration `json:"backoff"`
	Cap     int           `json:"cap"`
	Window  time.Duration `json:"window"`
}

// Spec is a job spec as the machine needs it.
type Spec struct {
	Digest   string           `json:"digest"`
	Settings Settings         `json:"settings"`
	Plan     plan.Partitioned `json:"plan"`
	// Letters says that a sink of the spec has dlq: true.
	Letters bool `json:"letters,omitempty"`
	// Raw is the canonical spec, which goes into every deployment plan.
	Raw json.RawMessage `json:"raw"`
}

// NewSpec prepares a parsed spec that is stored under digest. The error is a *fault.Error of class Permanent.
func NewSpec(j *spec.Job, digest string) (Spec, error) {
	m, err := plan.FromSpec(j)
	if err != nil {
		return Spec{}, err
	}
	p := plan.NewPartitioned(m)
	if _, err := plan.WindowFor(&p); err != nil {
		return Spec{}, err
	}
	return Spec{
		Digest: digest, Plan: p, Raw: j.Canonical(),
		Letters: slices.ContainsFunc(j.Sinks, func(k spec.Sink) bool { return k.DLQ }),
		Settings: Settings{
			Interval:       time.Duration(j.Epoch.Interval),
			IdleInterval:   time.Duration(j.Epoch.IdleInterval),
			Timeout:        time.Duration(j.Epoch.Timeout),
			MaxUncommitted: j.Epoch.MaxUncommitted,
			Backoff:        time.Duration(j.Restart.Backoff),
			Cap:            j.Restart.Cap,
			Window:         time.Duration(j.Restart.Window),
		},
	}, nil
}

// sources lists the names of the spec's sources with the capability each needs.
func (s *Spec) sources() []plan.Vertex {
	var all []plan.Vertex
	for _, v := range s.Plan.Vertices {
		if v.Role == plan.Enumerator {
			all = append(all, v)
		}
	}
	return all
}
