package core

import (
	"strings"
	"testing"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
)

func TestRefusal(t *testing.T) {
	t.Parallel()
	who := Claimant{Where: "sinks.wh", Ledger: "weir_ledger in schema out", Job: "shop", Life: "l1", Fence: 4}
	row := Row{Life: "l2", Fence: 5, Ref: epoch.Ref{Epoch: 7}}
	for _, tt := range []struct {
		verdict Verdict
		found   Row
		code    fault.Code
		says    string
	}{
		{Apply, row, "", ""},
		{Done, row, "", ""},
		{Fenced, row, fault.SinkFenced, "fence 5, this attempt 4"},
		{Foreign, row, fault.JobLedgerForeign, "has life l2, this job l1"},
		{Diverged, row, fault.JobLedgerDiverged, "holds epoch 7"},
		{Diverged, Row{}, fault.JobLedgerDiverged, "holds no epoch"},
	} {
		err := who.Refusal(tt.verdict, tt.found, epoch.Ref{Epoch: 9}, epoch.Ref{Epoch: 8})
		if (err == nil) != (tt.code == "") || err != nil && (fault.CodeOf(err) != tt.code || !strings.Contains(err.Error(), who.Ledger+" ") ||
			!strings.Contains(err.Error(), tt.says)) {
			t.Errorf("%s of %+v: %v", tt.verdict, tt.found, err)
		}
	}
}
