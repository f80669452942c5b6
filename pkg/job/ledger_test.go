package job

import (
	"fmt"
	"testing"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/plan"
)

// ⚑ A claimed ledger row is judged before anything is committed: it must be on the chain of manifests.
func TestLedgerIsJudgedAgainstTheChain(t *testing.T) {
	t.Parallel()
	ref := func(e epoch.ID) epoch.Ref { return epoch.Ref{Epoch: e, Digest: fmt.Sprintf("digest-%d", e)} }
	staged := []epoch.Staged{{Epoch: 1}}
	// Epochs 4 and 7 staged rows, 5 and 8 none; 5 is committed, 8 durable.
	chain := []epoch.Link{
		{Ref: ref(5), Manifest: &epoch.Manifest{Epoch: 5, Sinks: map[string]epoch.SinkState{"out": {Prev: ref(4)}}}},
		{Ref: ref(7), Manifest: &epoch.Manifest{Epoch: 7, Sinks: map[string]epoch.SinkState{"out": {Prev: ref(4), Staged: staged}}}},
		{Ref: ref(8), Manifest: &epoch.Manifest{Epoch: 8, Sinks: map[string]epoch.SinkState{"out": {Prev: ref(7)}}}},
	}
	d := &plan.Deployment{Partitioned: smallPlan()}
	for _, tt := range []struct {
		name      string
		committed epoch.ID
		chain     []epoch.Link
		row       *LedgerRow
		want      fault.Code
	}{
		{name: "at the durable epoch's entry", committed: 5, chain: chain, row: &LedgerRow{Life: "l", Ref: ref(7)}},
		{name: "one back", committed: 5, chain: chain, row: &LedgerRow{Life: "l", Ref: ref(4)}},
		{name: "no ledger", committed: 5, chain: chain},
		{name: "ahead", committed: 5, chain: chain, row: &LedgerRow{Life: "l", Ref: ref(9)}, want: fault.JobLedgerAhead},
		{name: "another branch", committed: 5, chain: chain, row: &LedgerRow{Life: "l", Ref: epoch.Ref{Epoch: 7, Digest: "other"}}, want: fault.JobLedgerDiverged},
		{name: "behind what is committed", committed: 8, chain: chain[2:], row: &LedgerRow{Life: "l", Ref: ref(4)}, want: fault.JobLedgerDiverged},
		{name: "an epoch that staged nothing", committed: 5, chain: chain, row: &LedgerRow{Life: "l", Ref: ref(5)}, want: fault.JobLedgerDiverged},
		{name: "empty though committed", committed: 5, chain: chain, row: &LedgerRow{Life: "l"}, want: fault.JobLedgerDiverged},
		{name: "another life", committed: 5, chain: chain, row: &LedgerRow{Life: "x", Ref: ref(7)}, want: fault.JobLedgerForeign},
		{name: "first attempt", row: &LedgerRow{}},
		{name: "first attempt, ledger kept", row: &LedgerRow{Life: "l", Ref: ref(3)}, want: fault.JobLedgerAhead},
		{name: "nothing committed yet", chain: chain[1:], row: &LedgerRow{Life: "l"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := &Head{Job: "shop", Life: "l", Committed: tt.committed}
			claimed, bad := judge(h, d, tt.chain, map[plan.SubtaskID]ReadyFact{idCommit: {Ledger: tt.row}})
			var got fault.Code
			if bad != nil {
				got = fault.Code(bad.Code)
			}
			if got != tt.want {
				t.Errorf("judged %q (%+v), want %q", got, bad, tt.want)
			}
			if tt.row != nil && claimed["out"] != *tt.row {
				t.Errorf("claimed %+v", claimed)
			}
		})
	}
}
