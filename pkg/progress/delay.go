package progress

import (
	"time"

	"weir.dev/weir/pkg/report"
)

// EpochDelay is what of the newest committed epoch went by where, each part by one clock. The readers' own parts are their beats.
type EpochDelay struct {
	Epoch uint64 `json:"epoch"`
	// Took is from the trigger to the last acknowledgement, by the leader's clock.
	Took report.Value[time.Duration] `json:"took"`
	// Snapshot is the slowest reader's and enumerator's share of it, Stage the slowest writer's.
	Snapshot report.Value[time.Duration] `json:"snapshot"`
	Stage    report.Value[time.Duration] `json:"stage"`
	// Bus is the rest: the trigger's way, the barrier's with the rows before it, the acknowledgements'. It is about, because the
	// slowest of each kind need not be on one way.
	Bus report.Value[time.Duration] `json:"bus"`
	// Commit is the slowest sink's time from hearing that the epoch is durable until it was applied; no value while one has not
	// told it.
	Commit report.Value[time.Duration] `json:"commit"`
}

// delay is that of the manifest that the head names as committed; nil where it was not read.
func (o *Observation) delay() *EpochDelay {
	m := o.Committed
	if m == nil || m.Triggered.IsZero() || m.Completed.Before(m.Triggered) {
		return nil
	}
	took := m.Completed.Sub(m.Triggered)
	slowest := make(map[string]time.Duration)
	for _, s := range m.Subtasks {
		for phase, n := range s.Nanos {
			slowest[phase] = max(slowest[phase], time.Duration(n))
		}
	}
	d := &EpochDelay{Epoch: uint64(m.Epoch), Took: report.ExactOf(took), Commit: o.commitDelay(uint64(m.Epoch))}
	known := func(phase string) (v report.Value[time.Duration]) {
		if n, ok := slowest[phase]; ok {
			return report.ExactOf(n)
		}
		return v
	}
	d.Snapshot, d.Stage = known("snapshot"), known("stage")
	d.Bus = report.BestEffortOf(max(0, took-slowest["snapshot"]-slowest["stage"]))
	return d
}

// commitDelay is that of the slowest sink.
func (o *Observation) commitDelay(epoch uint64) (slowest report.Value[time.Duration]) {
	longest := time.Duration(0)
	for _, k := range o.Spec.Sinks {
		f, ok := o.commit(k.Name)
		if !ok || uint64(f.Epoch) != epoch || f.Took <= 0 {
			return slowest
		}
		longest = max(longest, f.Took)
	}
	return report.ExactOf(longest)
}

// roundTrip is that of a reader's newest beat, and pending for how long what waits has been on its way, when it reported. What
// nobody waits for is not pending.
func roundTrip(r *report.Reader, observed time.Time) (whole, pending report.Value[time.Duration]) {
	if b, ok := r.Beat.Get(); ok {
		whole = report.ExactOf(b.Whole())
	} else if r.Beat.Accuracy() == report.Unsupported {
		whole, pending = report.UnsupportedOf[time.Duration](), report.UnsupportedOf[time.Duration]()
	}
	if w := r.UnderWay; w != nil && !w.Quiet {
		pending = report.ExactOf(max(0, observed.Sub(w.Began)))
	}
	return whole, pending
}
