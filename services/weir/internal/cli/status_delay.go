package cli

import (
	"fmt"
	"time"

	"weir.dev/weir/pkg/progress"
	"weir.dev/weir/pkg/report"
)

// epochDelayText says where the newest committed epoch spent its time; empty before the first.
func epochDelayText(d *progress.EpochDelay) string {
	if d == nil {
		return ""
	}
	return fmt.Sprintf("epoch %d took %s: snapshot %s  bus %s  stage %s; commit %s", d.Epoch, spell(d.Took), spell(d.Snapshot), spell(d.Bus), spell(d.Stage), spell(d.Commit))
}

// delayLines say how long a reader's newest beat took, and how long the one on its way has taken, where something waits for it.
func delayLines(r *progress.Reader) (lines []string) {
	if b, ok := r.Beat.Get(); ok {
		ago := max(0, r.Observed.Sub(b.Back())).Round(time.Second)
		line := fmt.Sprintf("round trip %s, %s ago: to the reader %s", spell(r.RoundTrip), ago, short(b.Read))
		if !b.Quiet {
			line += "  for the barrier " + short(b.Waited)
		}
		lines = append(lines, line+"  to the sinks and back "+short(b.Landed))
	}
	if p, ok := r.Pending.Get(); ok && r.UnderWay != nil {
		lines = append(lines, fmt.Sprintf("round trip under way for %s: %s", short(p), legText(r.UnderWay.Leg)))
	}
	return lines
}

func legText(l report.Leg) string {
	switch l {
	case report.Reading:
		return "not read yet"
	case report.Waiting:
		return "read, waits for a barrier"
	case report.Landing:
		return "in an epoch, not at every sink"
	}
	return string(l)
}

// spell is a duration with the mark of its accuracy.
func spell(v report.Value[time.Duration]) string {
	d, ok := v.Get()
	switch {
	case !ok:
		return exact(v)
	case v.Accuracy() == report.BestEffort:
		return "~" + short(d)
	}
	return short(d)
}

// short is a duration in three digits or so.
func short(d time.Duration) string {
	for _, unit := range []time.Duration{time.Minute, time.Second, time.Millisecond} {
		if d >= unit {
			return d.Round(unit / 100).String()
		}
	}
	return d.Round(time.Microsecond).String()
}
