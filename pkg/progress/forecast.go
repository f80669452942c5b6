package progress

import (
	"fmt"
	"time"

	"weir.dev/weir/pkg/config"
	"weir.dev/weir/pkg/report"
)

// Outlook is what is to be expected of the log that a source keeps for a reader.
type Outlook string

// The outlooks.
const (
	// OutlookUnknown: the source does not say how long it keeps log, or it was not watched long enough.
	OutlookUnknown Outlook = "UNKNOWN"
	// Unbounded: the source keeps the log until it is full.
	Unbounded Outlook = "UNBOUNDED"
	// NotForeseen: the log that is kept does not grow, or is read to its end.
	NotForeseen Outlook = "NOT_FORESEEN"
	// RunsOut: the log will be lost if what was seen lately goes on.
	RunsOut Outlook = "RUNS_OUT"
)

// RunsOutSoon is the time ahead of a loss from which on it is worth a word.
const RunsOutSoon = 24 * time.Hour

// Forecast says when the log that a source keeps will be lost. It is never exact.
type Forecast struct {
	Outlook Outlook `json:"outlook"`
	// In has a value with [RunsOut] only. Where a source keeps log by age, it is the least: files go as a whole, and later.
	In report.Value[time.Duration] `json:"in"`
	// AtLeast says that In is a lower bound, and what is assumed is that nothing more is read.
	AtLeast bool `json:"atLeast,omitempty"`
}

// foresight is the longest time that is told; behind it lies too much that nobody knows.
const foresight = 365 * 24 * time.Hour

// forecast judges by what one report says.
func forecast(r *report.Reader, behind Behind) Forecast {
	k := r.Retention
	switch {
	case k == nil:
		return Forecast{Outlook: OutlookUnknown}
	case k.Bytes > 0:
		return bySize(r, k)
	case k.Age > 0:
		return byAge(r, k, behind)
	}
	return Forecast{Outlook: Unbounded, In: report.UnsupportedOf[time.Duration]()}
}

func bySize(r *report.Reader, k *report.Retention) Forecast {
	room, ok := k.Room.Get()
	if !ok {
		kept, known := r.RetainedBytes.Get()
		if !known {
			return Forecast{Outlook: OutlookUnknown}
		}
		room = k.Bytes - kept
	}
	growth, ok := k.Growth.Get()
	switch {
	case room <= 0:
		return Forecast{Outlook: RunsOut, In: report.BestEffortOf(time.Duration(0))}
	case !ok:
		return Forecast{Outlook: OutlookUnknown}
	case growth <= 0 || float64(room)/float64(growth) > foresight.Seconds():
		return Forecast{Outlook: NotForeseen}
	}
	return Forecast{Outlook: RunsOut, In: report.BestEffortOf(time.Duration(float64(room) / float64(growth) * float64(time.Second)))}
}

// byAge is for a source that removes files of a certain age, counted from their last entry: it has ours at least until that age
// has passed since the entry that was read last. A file that is still written is never removed.
func byAge(r *report.Reader, k *report.Retention, behind Behind) Forecast {
	n, known := behind.Value.Get()
	last, ok := r.LastEvent.Get()
	head, seen := r.Head.Get()
	switch {
	case known && n == 0:
		return Forecast{Outlook: NotForeseen}
	case !ok || !seen:
		return Forecast{Outlook: OutlookUnknown}
	}
	left := max(0, k.Age-head.At.Sub(last))
	return Forecast{Outlook: RunsOut, In: report.BestEffortOf(left), AtLeast: true}
}

// runningOut says whose log will be lost soon.
func (o *Observation) runningOut(st *Status) []Finding {
	var all []Finding
	for i := range st.Sources {
		s := &st.Sources[i]
		for k := range s.Readers {
			r := &s.Readers[k]
			in, ok := r.Forecast.In.Get()
			if !ok || in > RunsOutSoon {
				continue
			}
			all = append(all, Finding{
				Kind: LogRunsOut, Note: true, About: s.Name, Text: fmt.Sprintf("source %s %s", s.Name, r.keeps(in)),
				Remedy: "let the job go on, or let the source keep more: `weir doctor " + s.Type + "` names the setting",
			})
		}
	}
	return all
}

// keeps says in words what is kept for a reader, which will be lost.
func (r *Reader) keeps(in time.Duration) string {
	text := "keeps log"
	if n, ok := r.RetainedBytes.Get(); ok {
		text = "keeps " + config.Bytes(n).Rough() + " of log"
	}
	if r.Retention.Bytes > 0 {
		text += ", at most " + config.Bytes(r.Retention.Bytes).Rough()
	} else {
		text += fmt.Sprintf(" for %s", r.Retention.Age)
	}
	switch {
	case in == 0 && !r.Forecast.AtLeast:
		return text + ": it may be lost at any moment"
	case r.Forecast.AtLeast:
		return text + fmt.Sprintf(": if nothing more is read it is lost, not before about %s from now", roughly(in))
	}
	return text + fmt.Sprintf(": at this rate it is lost in about %s", roughly(in))
}

// roughly leaves of a time what a forecast can say.
func roughly(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%d d", d/(24*time.Hour))
	case d >= 2*time.Hour:
		return fmt.Sprintf("%d h", d/time.Hour)
	case d >= 2*time.Minute:
		return fmt.Sprintf("%d min", d/time.Minute)
	}
	return fmt.Sprintf("%d s", d/time.Second)
}

// Text says a forecast in few words.
func (f Forecast) Text() string {
	in, ok := f.In.Get()
	switch {
	case f.Outlook == Unbounded:
		return "kept without a bound"
	case f.Outlook == NotForeseen:
		return "not lost soon"
	case ok && f.AtLeast:
		return "lost in ~" + roughly(in) + " at least, if nothing more is read"
	case ok:
		return "lost in ~" + roughly(in)
	}
	return "forecast unavailable"
}
