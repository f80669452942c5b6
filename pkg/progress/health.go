package progress

import (
	"fmt"
	"time"

	"weir.dev/weir/pkg/report"
)

// RestsAfter is how long a position may rest before that is worth a word.
const RestsAfter = 30 * time.Second

// health says what is seen of a source.
func (o *Observation) health(s *Source, st *Status) Health {
	say := func(state report.Health, reason string) Health {
		h := Health{State: state, Source: report.Framework, Reason: reason}
		if state == report.Stalled {
			h.Source = report.Connector
		}
		return h
	}
	switch {
	case !o.Head.Phase.Active():
		return say(report.HealthUnknown, "the job is "+string(o.Head.Phase))
	case s.Summary.Missing > 0:
		return say(report.StaleReport, fmt.Sprintf("%d of %d readers do not report", s.Summary.Missing, s.Summary.Tasks))
	case s.Summary.Stale > 0:
		return say(report.StaleReport, fmt.Sprintf("the reports of %d of %d readers are old", s.Summary.Stale, s.Summary.Tasks))
	}
	for _, r := range s.Readers {
		since, ok := r.LastChange.Get()
		rests := r.Observed.Sub(since) // both by the node's clock
		if !ok || rests < RestsAfter {
			continue
		}
		state, reason := o.resting(&r, st)
		if state == report.Healthy {
			continue
		}
		if s.Recovery.State == report.Restoring || state == report.Stalled && s.Lifecycle == report.Unknown {
			continue
		}
		return say(state, fmt.Sprintf("%s has been at one position for %s: %s", r.Subtask, rests.Round(time.Second), reason))
	}
	if idle(s) {
		return say(report.Healthy, "idle: everything up to the source's head has been read")
	}
	return say(report.Healthy, "")
}

// resting judges a position that has not moved for long, by evidence alone (P4).
func (o *Observation) resting(r *Reader, st *Status) (report.Health, string) {
	n, known := r.Behind.Value.Get()
	switch {
	case known && n == 0:
		return report.Healthy, ""
	case !known:
		return report.NoProgress, "whether its source is ahead is not known"
	}
	if held := o.heldUp(st); held != "" {
		return report.NoProgress, held
	}
	if head, ok := r.Head.Get(); ok && head.At.IsZero() {
		return report.NoProgress, "when its source was seen ahead is not known"
	}
	return report.Stalled, fmt.Sprintf("its source is seen %d %s ahead, and nothing behind it waits", n, r.Behind.Unit)
}

// heldUp names what behind the readers may hold them up.
func (o *Observation) heldUp(st *Status) string {
	for _, k := range st.Sinks {
		if k.Waiting != nil {
			return "sink " + k.Name + " takes no commits"
		}
	}
	if f := o.Head.InFlight; f != nil && o.At.Sub(f.Triggered) > StaleAfter {
		return fmt.Sprintf("epoch %d is under way since %s", f.Epoch, o.At.Sub(f.Triggered).Round(time.Second))
	}
	if d := o.Head.Durable; d != nil && o.Head.Committed < d.Epoch && o.At.Sub(d.At) > StaleAfter {
		return fmt.Sprintf("epoch %d is durable and not committed", d.Epoch)
	}
	return ""
}

// idle reports whether every reader of the log has read everything up to its source's head, and had no row to read lately: a
// reader that keeps up with a load is not idle, although the head that it saw last is behind it.
func idle(s *Source) bool {
	readers := followers(s)
	for _, r := range readers {
		if n, ok := r.Behind.Value.Get(); !ok || n > 0 || r.Lifecycle != report.Incremental {
			return false
		}
		if last, ok := r.LastEvent.Get(); ok && r.Observed.Sub(last) < StaleAfter {
			return false
		}
	}
	return len(readers) > 0 && s.Summary.Missing+s.Summary.Stale == 0
}

// State is what is said of the source in STIP-30's words.
func (s *Source) State() report.State {
	return report.State{
		Lifecycle: s.Lifecycle, Recovery: s.Recovery.State, RestoredEpoch: s.Recovery.Epoch,
		Health: s.Health.State, Evidence: s.Health.Source, Reason: s.Health.Reason,
	}
}
