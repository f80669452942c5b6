package control

import (
	"context"
	"fmt"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/spec"
)

// ReadLedger reads one sink's ledger log, oldest first. ok is false when the sink keeps none that can be read from here;
// why then says so.
type ReadLedger func(ctx context.Context, jobName, life string, s spec.Sink) (log []epoch.LedgerEntry, ok bool, why string, err error)

// Audit is what `weir epochs verify` found.
type Audit struct {
	Job string `json:"job"`
	// Manifests is how many were checked, First and Last which.
	Manifests int      `json:"manifests"`
	First     epoch.ID `json:"first"`
	Last      epoch.ID `json:"last"`
	// Ledgers tells for each sink how many rows of its ledger were checked, or why none.
	Ledgers  map[string]string `json:"ledgers"`
	Findings []epoch.Finding   `json:"findings"`
}

// Verify checks the chain of manifests that is kept, their balance, and every sink's ledger against it. It is
// [fault.CLIVerifyFailed] when something does not hold; the audit is returned in any case.
func (c *Client) Verify(ctx context.Context, name string, ledger ReadLedger) (Audit, error) {
	h, j, err := c.current(ctx, name)
	if err != nil {
		return Audit{}, err
	}
	a := Audit{Job: name, Ledgers: make(map[string]string), Findings: []epoch.Finding{}}
	ledgers := make(map[string][]epoch.LedgerEntry)
	// Ledgers first: a manifest that comes meanwhile is then only one the ledger does not have yet.
	for _, s := range j.Sinks {
		log, ok, why, err := ledger(ctx, name, h.Life, s)
		switch {
		case err != nil:
			return a, fmt.Errorf("read the ledger of sink %s: %w", s.Name, err)
		case !ok:
			a.Ledgers[s.Name] = "not checked: " + why
		default:
			a.Ledgers[s.Name] = fmt.Sprintf("%d commits checked", len(log))
			ledgers[s.Name] = log
		}
	}
	if h, err = c.Head(ctx, name); err != nil {
		return a, err
	}
	links, err := c.History(ctx, h)
	if err != nil {
		return a, fmt.Errorf("read the manifests of %s: %w", name, err)
	}
	a.Manifests = len(links)
	if len(links) > 0 {
		a.First, a.Last = links[0].Ref.Epoch, links[len(links)-1].Ref.Epoch
	}
	a.Findings = append(a.Findings, audit(h, links, ledgers)...)
	if len(a.Findings) > 0 {
		return a, fault.New(fault.CLIVerifyFailed, name, fmt.Sprintf("%d findings, first: %s", len(a.Findings), a.Findings[0]), "job", name, "epoch", a.Findings[0].Epoch.String())
	}
	return a, nil
}

// audit is the pure part of Verify.
func audit(h *job.Head, links []epoch.Link, ledgers map[string][]epoch.LedgerEntry) []epoch.Finding {
	found := epoch.Chain(links)
	if h.Durable != nil && (len(links) == 0 || links[len(links)-1].Ref != h.Durable.Ref) {
		found = append(found, epoch.Finding{Epoch: h.Durable.Epoch, Where: "head", What: "the durable manifest cannot be read"})
	}
	for name, log := range ledgers {
		found = append(found, epoch.Ledger(name, links, log)...)
	}
	return found
}
