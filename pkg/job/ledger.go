package job

import (
	"encoding/json"
	"fmt"
	"slices"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/plan"
)

// judge compares the ledger rows that the committers have claimed with the chain of manifests. A ledger may be at any
// manifest from the committed one to the durable one, by the last of them that staged something for its sink; the rest
// is then committed again from the chain. A ledger that is ahead, foreign, behind or on another branch means that the
// bus or the target was restored from a copy, or that somebody else writes there: the job stops and tells both values.
// Rows are returned by sink.
func judge(h *Head, d *plan.Deployment, chain []epoch.Link, ready map[plan.SubtaskID]ReadyFact) (map[string]LedgerRow, *Reason) {
	claimed := make(map[string]LedgerRow)
	for _, v := range d.Vertices {
		if v.Role != plan.Committer {
			continue
		}
		id := plan.SubtaskID{Vertex: v.ID}
		row := ready[id].Ledger
		if row == nil {
			continue // a sink that keeps no ledger
		}
		claimed[v.Name] = *row
		allowed := entries(h, v.Name, chain)
		newest := allowed[len(allowed)-1]
		var code fault.Code
		switch {
		case row.Life != "" && row.Life != h.Life:
			code = fault.JobLedgerForeign
		case slices.Contains(allowed, row.Ref):
			continue
		case row.Ref.Epoch > newest.Epoch:
			code = fault.JobLedgerAhead
		default:
			code = fault.JobLedgerDiverged
		}
		e := fault.New(code, "sinks."+v.Name, fmt.Sprintf("the target's ledger is at epoch %s of life %q, the bus expects epoch %s of life %q",
			refText(row.Ref), row.Life, refText(newest), h.Life), "job", h.Job)
		r := faultReason(e)
		r.Subtask = &id
		return claimed, &r
	}
	return claimed, nil
}

// entries lists what a sink's ledger may hold, oldest first.
func entries(h *Head, sink string, chain []epoch.Link) []epoch.Ref {
	var all []epoch.Ref
	if h.Committed == 0 {
		all = append(all, epoch.Ref{})
	}
	for _, l := range chain {
		if l.Ref.Epoch >= h.Committed {
			all = append(all, l.Manifest.LedgerOf(sink, l.Ref))
		}
	}
	return slices.Compact(all)
}

func refText(r epoch.Ref) string {
	if r.IsZero() {
		return "0"
	}
	return fmt.Sprintf("%d (%s)", r.Epoch, r.Digest[:min(12, len(r.Digest))])
}

// faultText is what a subtask that waits says, for people.
func faultText(t Trouble) string {
	var e fault.Error
	if err := json.Unmarshal(t.Fault, &e); err != nil {
		return "the reason cannot be read: " + err.Error()
	}
	return e.Error()
}
