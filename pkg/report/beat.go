package report

import (
	"fmt"
	"slices"
	"time"
)

// Beat is one heartbeat: the end of a source's log as it was at one moment, followed until every sink has what lies before it. Its
// times are by one clock, that of the reader's process, so that they are exact as what they are called. Whatever was committed at
// the source before Began lies before that end, and whatever lies before it is visible when the beat is back, or sooner.
type Beat struct {
	// Began is when the end of the log was asked for, on a connection beside the flow.
	Began time.Time `json:"began"`
	// Read is from there until the reader had emitted everything before it; Waited from there until the barrier of Epoch
	// passed the reader; Landed from there until the reader heard that every sink has committed that epoch or a later one.
	Read   time.Duration `json:"read"`
	Waited time.Duration `json:"waited"`
	Landed time.Duration `json:"landed"`
	Epoch  uint64        `json:"epoch"`
	// Quiet says that the reader had no rows for the epoch when it got there: nothing before the end has waited for it.
	Quiet bool `json:"quiet,omitempty"`
}

// Whole is the round trip: what a row that was committed at Began has taken at most, or would have. A row asks for its epoch, which
// comes within the epoch interval; without one Waited delays nothing and is left out.
func (b *Beat) Whole() time.Duration {
	if b.Quiet {
		return b.Read + b.Landed
	}
	return b.Read + b.Waited + b.Landed
}

// Back is when the reader heard that it is at the sinks.
func (b *Beat) Back() time.Time { return b.Began.Add(b.Read + b.Waited + b.Landed) }

// Leg is how far a beat is that is on its way.
type Leg string

// The legs, in this order.
const (
	// Reading: rows before the end are not emitted yet.
	Reading Leg = "READING"
	// Waiting: they are, and no barrier has passed behind them.
	Waiting Leg = "WAITING"
	// Landing: an epoch has them, and not every sink has committed it.
	Landing Leg = "LANDING"
)

// Way is a beat that is on its way.
type Way struct {
	Began time.Time `json:"began"`
	Leg   Leg       `json:"leg"`
	// Quiet says that nothing before the end waits for an epoch: the beat goes with the next one that passes.
	Quiet bool `json:"quiet,omitempty"`
}

// beats refuses beats that cannot have been.
func (r *Reader) beats() error {
	b, ok := r.Beat.Get()
	w := r.UnderWay
	switch {
	case ok && (b.Began.IsZero() || b.Epoch == 0 || min(b.Read, b.Waited, b.Landed) < 0):
		return fmt.Errorf("a beat of %s, %s and %s in epoch %d", b.Read, b.Waited, b.Landed, b.Epoch)
	case w != nil && (w.Began.IsZero() || !slices.Contains([]Leg{Reading, Waiting, Landing}, w.Leg)):
		return fmt.Errorf("a beat on its way is %q", w.Leg)
	case w != nil && w.Quiet && w.Leg == Reading:
		return fmt.Errorf("nothing waits, and it is not read")
	case r.Copies && (ok || w != nil):
		return fmt.Errorf("a beat of a reader without the log")
	}
	return nil
}
