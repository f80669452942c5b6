package progress

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/report"
)

// recently is how long a recovery is worth a word when all is well again.
const recently = time.Minute

// findings collects the evidence for a job that does not move, the nearest cause first: what failed, what cannot start, what
// takes nothing, what is waited for, what is not heard of; then what is worth knowing.
func (o *Observation) findings(st *Status) []Finding {
	h := o.Head
	switch {
	case h.Phase == job.Failed:
		kind := Failed
		if lostLog(h.Reason.Code) {
			kind = SlotLost
		}
		return []Finding{{
			Kind: kind, About: h.Job, Text: "failed: " + sentence(h.Reason.Code, h.Reason.Text), Since: h.Reason.Since, Remedy: h.Reason.Remedy,
		}}
	case h.Phase.AtRest():
		return nil
	}
	var all []Finding
	all = append(all, o.unstarted()...)
	all = append(all, o.unhosted()...)
	all = append(all, o.blocked(st)...)
	all = append(all, o.waiting()...)
	for i := range st.Sources {
		all = append(all, o.silent(&st.Sources[i])...)
	}
	all = append(all, o.letters(st)...)
	return append(all, o.notes(st)...)
}

func sentence(code, text string) string { return strings.TrimSpace(code + " " + text) }

// lostLog reports whether a code says that the source no longer has what the job needs.
func lostLog(code string) bool {
	return slices.Contains([]fault.Code{fault.PGSlotLost, fault.PGSlotMissing, fault.MYPurged}, fault.Code(code))
}

// ofSource reports whether a code is one of a source.
func ofSource(code string) bool {
	return strings.HasPrefix(code, "WEIR-PG-") || strings.HasPrefix(code, "WEIR-MY-") || strings.HasPrefix(code, "WEIR-SRC-")
}

// unstarted says why an attempt has not begun.
func (o *Observation) unstarted() []Finding {
	h := o.Head
	if h.Phase != job.Starting {
		return nil
	}
	f := Finding{Kind: Starting, About: h.Job, Text: fmt.Sprintf("starting: attempt %d is being deployed", h.Fence), Since: h.Reason.Since}
	if h.Reason.Text != "" {
		f.Text, f.Remedy = "starting: "+sentence(h.Reason.Code, h.Reason.Text), h.Reason.Remedy
		if ofSource(h.Reason.Code) {
			f.Kind = SourceDown
		}
	}
	all := []Finding{f}
	// While it is placed and opened again the head no longer says what ended the attempt before.
	if r := o.Recovery; r != nil && r.Fence <= h.Fence && r.Reason.Code != h.Reason.Code && o.At.Sub(r.At) < 5*recently {
		again := Finding{
			Kind: Restarting, About: h.Job, Since: r.At, Remedy: r.Reason.Remedy,
			Text: fmt.Sprintf("attempt %d took the place of one that ended: %s", r.Fence, sentence(r.Reason.Code, r.Reason.Text)),
		}
		if ofSource(r.Reason.Code) {
			again.Kind = SourceDown
		}
		all = append(all, again)
	}
	return all
}

// unhosted names what no live process can run.
func (o *Observation) unhosted() []Finding {
	if o.Nodes == nil {
		return nil
	}
	need := make(map[string][]string)
	for _, s := range o.Spec.Sources {
		c := plan.SourceCapability(s.Type)
		need[c] = append(need[c], "source "+s.Name)
	}
	for _, k := range o.Spec.Sinks {
		c := plan.SinkCapability(k.Type)
		need[c] = append(need[c], "sink "+k.Name)
	}
	for _, n := range o.Nodes {
		for _, c := range n.Capabilities {
			if !n.Leaving {
				delete(need, c)
			}
		}
	}
	var all []Finding
	for c, who := range need {
		kind, name, _ := strings.Cut(c, ":")
		all = append(all, Finding{
			Kind: NoNode, About: c, Text: fmt.Sprintf("no live process can run %s of type %s: %s", kind, name, strings.Join(who, ", ")),
			Remedy: "start one: `weir serve " + roleOf(kind, name) + "`",
		})
	}
	slices.SortFunc(all, func(a, b Finding) int { return strings.Compare(a.About, b.About) })
	return all
}

// roleOf is the service that runs something.
func roleOf(kind, name string) string {
	if kind == "source" && (name == "postgres" || name == "mysql") {
		return "cdc-" + name
	}
	return "sink"
}

// blocked names the sinks that take nothing.
func (o *Observation) blocked(st *Status) []Finding {
	var all []Finding
	for _, k := range st.Sinks {
		if k.Waiting != nil {
			all = append(all, Finding{
				Kind: SinkBlocked, About: k.Name, Since: k.Waiting.Since,
				Text: fmt.Sprintf("sink %s takes no commits since %s: %s", k.Name, k.Waiting.Since.Format(time.RFC3339), faultLine(k.Waiting.Fault)),
			})
		}
	}
	d := o.Head.Durable
	if len(all) > 0 || d == nil || o.Head.Committed >= d.Epoch || o.At.Sub(d.At) <= StaleAfter {
		return all
	}
	for _, k := range st.Sinks {
		if k.Committed < uint64(d.Epoch) {
			all = append(all, Finding{
				Kind: SinkBlocked, About: k.Name, Since: d.At,
				Text: fmt.Sprintf("sink %s has not committed epoch %d, which is durable since %s", k.Name, d.Epoch, o.At.Sub(d.At).Round(time.Second)),
			})
		}
	}
	return all
}

// namedWaits bounds the subtasks that a sentence names.
const namedWaits = 3

// waiting says which epochs do not come to an end, and whom they wait for.
func (o *Observation) waiting() []Finding {
	var all []Finding
	h := o.Head
	if h.Skipped > 0 {
		all = append(all, Finding{Kind: EpochsSkipped, About: h.Job, Text: fmt.Sprintf("%d epochs in a row were skipped", h.Skipped)})
	}
	f := h.InFlight
	if f == nil || o.At.Sub(f.Triggered) <= StaleAfter {
		return all
	}
	text := fmt.Sprintf("epoch %d is under way since %s", f.Epoch, o.At.Sub(f.Triggered).Round(time.Second))
	about := h.Job
	if waits := o.behindBarrier(); len(waits) > 0 {
		about = waits[0].String()
		var names []string
		for _, id := range waits[:min(len(waits), namedWaits)] {
			names = append(names, o.called(id))
		}
		text += "; it waits for " + strings.Join(names, ", ")
		if more := len(waits) - namedWaits; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
	}
	return append(all, Finding{Kind: EpochWaits, About: about, Text: text, Since: f.Triggered})
}

// called names a subtask with what it is and where it runs.
func (o *Observation) called(id plan.SubtaskID) string {
	text := id.String()
	if v, ok := o.Plan.Vertex(id.Vertex); ok {
		text += fmt.Sprintf(" (%s of %s", v.Role, v.Name)
		if at, ok := o.Plan.Placements[id]; ok {
			text += " on " + at.Node
		}
		text += ")"
	}
	return text
}

// silent says whose reports are old or missing, and which position rests although it should not.
func (o *Observation) silent(s *Source) []Finding {
	var all []Finding
	for _, r := range s.Readers {
		if r.Stale {
			all = append(all, Finding{
				Kind: ReportOld, About: r.Subtask, Since: o.At.Add(-r.Age),
				Text: fmt.Sprintf("the report of %s is %s old", r.Subtask, r.Age.Round(time.Second)),
			})
		}
	}
	if s.Summary.Missing > 0 && o.Head.Phase.Active() && o.At.Sub(o.Head.Updated) > StaleAfter {
		all = append(all, Finding{Kind: ReportMissing, About: s.Name, Text: fmt.Sprintf("%d of %d readers of %s do not report", s.Summary.Missing, s.Summary.Tasks, s.Name)})
	}
	all = append(all, o.waits(s)...)
	if s.Health.State == report.Stalled {
		all = append(all, Finding{Kind: SourceStalled, About: s.Name, Text: "source " + s.Name + ": " + s.Health.Reason})
	}
	return all
}

// waits says what a source's subtasks wait for at its server, each in its own words.
func (o *Observation) waits(s *Source) []Finding {
	var all []Finding
	add := func(subtask string, observed time.Time, waits []report.Wait) {
		for _, w := range waits {
			if observed.Sub(w.Since) <= StaleAfter { // both by the node's clock
				continue
			}
			all = append(all, Finding{
				Kind: SourceWaits, About: subtask, Since: w.Since, Text: fmt.Sprintf("%s waits for its source since %s: %s", subtask, w.Since.Format(time.RFC3339), w.What),
			})
		}
	}
	enumerator := plan.SubtaskID{Vertex: plan.EnumeratorOf(s.Name)}
	if e, ok := o.report(enumerator); ok && e.Enumerator != nil && e.Age <= StaleAfter {
		add(enumerator.String(), e.Observed, e.Enumerator.Waits)
	}
	for _, r := range s.Readers {
		if !r.Stale {
			add(r.Subtask, r.Observed, r.Waits)
		}
	}
	return all
}

// letters says which sinks set rows aside.
func (o *Observation) letters(st *Status) []Finding {
	var all []Finding
	for _, k := range st.Sinks {
		if n := o.Filling[k.Name]; n > 0 {
			all = append(all, Finding{
				Kind: LettersFill, About: k.Name, Remedy: "`weir dlq list " + st.Job + "` shows why",
				Text: fmt.Sprintf("sink %s has set %d rows aside within a minute, %d dead letters are there", k.Name, n, k.Dead),
			})
		}
	}
	return all
}

// notes is what keeps nothing from moving.
func (o *Observation) notes(st *Status) []Finding {
	all := o.runningOut(st)
	for i := range st.Sources {
		s := &st.Sources[i]
		if o.Head.Phase == job.Running && idle(s) {
			all = append(all, Finding{Kind: SourceIdle, Note: true, About: s.Name, Text: "source " + s.Name + " is idle: everything up to its head has been read"})
		}
	}
	for _, k := range st.Sinks {
		if k.Dead > 0 && o.Filling[k.Name] == 0 {
			all = append(all, Finding{
				Kind: LettersKept, Note: true, About: k.Name,
				Text: fmt.Sprintf("sink %s keeps %d dead letters: weir dlq list %s", k.Name, k.Dead, st.Job),
			})
		}
	}
	if n := len(o.Head.Restarts); n > 0 && o.Head.Phase.Active() {
		if last := o.Head.Restarts[n-1]; o.At.Sub(last.At) < recently {
			text := fmt.Sprintf("began again %s ago (%s) from epoch %d", o.At.Sub(last.At).Round(time.Second), strings.ToLower(string(last.Kind)), last.Durable)
			if r := o.Recovery; r != nil && r.Fence == o.Head.Fence {
				text += ": " + sentence(r.Reason.Code, r.Reason.Text)
			}
			all = append(all, Finding{Kind: RestartedNote, Note: true, About: o.Head.Job, Since: last.At, Text: text})
		}
	}
	return all
}

// faultLine is the one line of an error object.
func faultLine(raw json.RawMessage) string {
	var f struct{ Code, What, Why string }
	if json.Unmarshal(raw, &f) != nil {
		return "unknown"
	}
	return strings.TrimRight(f.Code+" "+f.What+": "+f.Why, ": ")
}
