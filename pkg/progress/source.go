package progress

import (
	"cmp"
	"slices"
	"strings"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/position"
	"weir.dev/weir/pkg/report"
	"weir.dev/weir/pkg/spec"
)

// source aggregates what the tasks of one source report. st has the sinks already.
func (o *Observation) source(src spec.Source, st *Status) Source {
	out := Source{Name: src.Name, Type: src.Type, Lifecycle: report.Unknown, Readers: []Reader{}, Tables: []Table{}}
	out.Summary.Tasks = src.Config.Parallelism()
	if e, ok := o.report(plan.SubtaskID{Vertex: plan.EnumeratorOf(src.Name)}); ok && e.Enumerator != nil {
		out.Enumerator, out.EnumeratorAge = e.Enumerator, e.Age
		out.Summary.Total = e.Enumerator.Total()
	}
	for i := range out.Summary.Tasks {
		id := plan.SubtaskID{Vertex: plan.VertexID(src.Name), Index: i}
		r, ok := o.report(id)
		if !ok || r.Reader == nil {
			out.Summary.Missing++
			continue
		}
		reader := o.reader(id, r, out.Enumerator)
		out.Readers = append(out.Readers, reader)
		if reader.Stale {
			out.Summary.Stale++
		} else {
			out.Summary.Fresh++
		}
	}
	out.Lifecycle, out.Mixed = lifecycle(&out)
	out.Summary.Rows = rowsOf(&out)
	out.Tables = tablesOf(&out)
	out.Recovery = o.recovery(&out)
	out.Health = o.health(&out, st)
	return out
}

// report is the newest of a subtask; P5: of a job at rest none is shown.
func (o *Observation) report(id plan.SubtaskID) (Sample, bool) {
	r, ok := o.Reports[id.String()]
	return r, ok && !o.Head.Phase.AtRest() && r.Fence == uint64(o.Head.Fence)
}

func (o *Observation) reader(id plan.SubtaskID, r Sample, e *report.Enumerator) Reader {
	out := Reader{
		Reader: *r.Reader, Subtask: id.String(), Node: r.Node, Age: r.Age, Stale: r.Age > StaleAfter,
		Sequence: r.Sequence, Observed: r.Observed, Restore: r.Restore,
		Durable: cutOf(o.Durable, id), Completed: cutOf(o.Committed, id), Candidate: o.candidate(id),
		Behind: behind(r.Reader),
	}
	out.RoundTrip, out.Pending = roundTrip(r.Reader, r.Observed)
	if !out.Copies {
		out.Forecast = forecast(r.Reader, out.Behind)
	}
	if split, ok := r.Reader.ActiveSplit.Get(); ok && e != nil {
		// The two reports are of two moments: a split that the enumerator does not name has no table here.
		if i := slices.IndexFunc(e.Active, func(s report.Split) bool { return s.ID == split }); i >= 0 {
			out.ActiveTable = e.Active[i].Table
		}
	}
	return out
}

// cutOf is a subtask's position in a manifest.
func cutOf(m *epoch.Manifest, id plan.SubtaskID) report.Value[position.Position] {
	if m == nil {
		return report.Value[position.Position]{}
	}
	s, ok := m.Subtasks[id]
	if !ok || s.Position.IsZero() {
		return report.Value[position.Position]{}
	}
	return report.ExactOf(s.Position)
}

// candidate is a subtask's cut of the epoch in flight. When the epoch is skipped there is none any more, and what is
// completed stays what it was.
func (o *Observation) candidate(id plan.SubtaskID) report.Value[position.Position] {
	f, a := o.Head.InFlight, o.Acks[id]
	if f == nil || a.Fence != o.Head.Fence || a.Epoch != f.Epoch || a.Declined != "" || a.Position.IsZero() {
		return report.Value[position.Position]{}
	}
	return report.ExactOf(a.Position)
}

// behind is how far a source's head was ahead of what its reader has emitted. The head is seen beside the flow, so that it is
// never exact.
func behind(r *report.Reader) Behind {
	head, ok := r.Head.Get()
	if !ok {
		if r.Head.Accuracy() == report.Unsupported {
			return Behind{Value: report.UnsupportedOf[uint64]()}
		}
		return Behind{}
	}
	at, ok := r.Consumed.Get()
	if !ok {
		return Behind{}
	}
	n, unit, ok := position.Distance(at, head.Position)
	if !ok {
		return Behind{Value: report.UnsupportedOf[uint64]()}
	}
	return Behind{Value: report.BestEffortOf(n), Unit: unit}
}

// lifecycle is what the readers of the log agree on.
func lifecycle(s *Source) (l report.Lifecycle, mixed bool) {
	if s.Summary.Missing > 0 {
		return report.Unknown, false
	}
	for i, r := range followers(s) {
		if i > 0 && r.Lifecycle != l {
			return report.Unknown, true
		}
		l = r.Lifecycle
	}
	if l == "" {
		l = report.Unknown
	}
	return l, false
}

// followers are the readers that have the log, or any log at all.
func followers(s *Source) []Reader {
	return slices.DeleteFunc(slices.Clone(s.Readers), func(r Reader) bool { return r.Copies })
}

// rowsOf adds up what the readers of the attempt have emitted, in the accuracy of the least of them.
func rowsOf(s *Source) report.Value[uint64] {
	if s.Summary.Missing > 0 || len(s.Readers) == 0 {
		return report.Value[uint64]{}
	}
	sum := report.ExactOf[uint64](0)
	for _, r := range s.Readers {
		sum = plus(sum, r.Rows)
	}
	return sum
}

func plus(a, b report.Value[uint64]) report.Value[uint64] {
	x, ok1 := a.Get()
	y, ok2 := b.Get()
	switch {
	case !ok1:
		return a
	case !ok2:
		return b
	case a.Accuracy() == report.Exact && b.Accuracy() == report.Exact:
		return report.ExactOf(x + y)
	}
	return report.BestEffortOf(x + y)
}

// tablesOf puts together what readers have emitted of a table and what the enumerator knows of it.
func tablesOf(s *Source) []Table {
	all := make(map[string]Table)
	for _, r := range s.Readers {
		for _, t := range r.Tables {
			if old, ok := all[t.Name]; ok {
				t.Rows, t.Note = plus(old.Rows, t.Rows), cmp.Or(t.Note, old.Note)
				if r.Copies {
					t.Lifecycle = old.Lifecycle
				}
			}
			all[t.Name] = Table{Table: t}
		}
	}
	if s.Enumerator != nil {
		for _, t := range s.Enumerator.Tables {
			one := all[t.Name]
			one.Name, one.Lifecycle, one.Note, one.Copied, one.Splits, one.Rate = t.Name, t.Lifecycle, cmp.Or(t.Note, one.Note), t.Rows, t.Splits, t.Rate
			all[t.Name] = one
		}
	}
	tables := make([]Table, 0, len(all))
	for _, t := range all {
		tables = append(tables, t)
	}
	slices.SortFunc(tables, func(a, b Table) int { return strings.Compare(a.Name, b.Name) })
	return tables
}

// recovery says how the attempt came to where it is, by the head's own words: the plan names what it was restored from.
func (o *Observation) recovery(s *Source) Recovery {
	h := o.Head
	if h.Plan == nil || h.Phase.AtRest() {
		return Recovery{State: report.RecoveryUnknown}
	}
	from := h.Plan.Restore
	if from == nil {
		return Recovery{State: report.Steady}
	}
	r := Recovery{State: report.Steady, Epoch: uint64(from.Epoch)}
	switch {
	case h.Durable != nil && h.Durable.Fence == h.Fence:
	case !h.Phase.Active() || s.Summary.Missing > 0:
		r.State = report.Restoring
	default:
		r.State = report.Restored
	}
	return r
}
