package control

import (
	"strings"
	"testing"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/position"
	"weir.dev/weir/pkg/spec"
)

func TestAdoption(t *testing.T) {
	t.Parallel()
	j, err := spec.Parse([]byte(`apiVersion: weir/v1
job: shop
sources:
  db: {type: postgres, url: "${A}", tables: ["public.*"]}
sinks:
  copy: {from: [db], type: postgres, url: "${B}", schema: copy}
  hole: {from: [db], type: blackhole, mode: changelog}
  log: {from: [db], type: postgres, url: "${B}", schema: log, mode: changelog}
`), "job.yaml")
	if err != nil {
		t.Fatal(err)
	}
	lsn := func(text string) map[string]position.Position {
		return map[string]position.Position{"db-0": position.New(position.PostgresLSN, map[string]string{"lsn": text})}
	}
	row := func(e epoch.ID) epoch.Ref { return epoch.Ref{Epoch: e, Digest: "d"} }
	for _, tt := range []struct {
		name  string
		trust bool
		head  func(h *job.Head)
		at    func(at map[string]LedgerAt)
		why   string
	}{
		{name: "ahead"},
		{name: "another life", head: func(h *job.Head) { h.Life, h.Durable = "l2", nil }},
		{name: "refused at the source", trust: true, head: func(h *job.Head) { h.Durable.Ref, h.Adopted = row(10), &job.Adopted{As: row(10)} }},
		{name: "refused, not trusted", head: func(h *job.Head) { h.Durable.Ref, h.Adopted = row(10), &job.Adopted{As: row(10)} }, why: "the bus knows"},
		{name: "gone on since", trust: true, head: func(h *job.Head) { h.Durable.Ref, h.Adopted = row(11), &job.Adopted{As: row(10)} }, why: "the bus knows"},
		{name: "not ahead", head: func(h *job.Head) { h.Durable.Ref = row(9) }, why: "the bus knows"},
		{name: "other rows", at: func(at map[string]LedgerAt) { at["log"] = LedgerAt{"l1", 7, row(8), lsn("0/10"), false} }, why: "not the same rows"},
		{name: "other lives", at: func(at map[string]LedgerAt) { at["log"] = LedgerAt{"l3", 7, row(9), lsn("0/20"), false} }, why: "life l3"},
		{name: "empty ledger", at: func(at map[string]LedgerAt) { at["log"] = LedgerAt{} }, why: "holds no epoch"},
		{name: "copied then", at: func(at map[string]LedgerAt) {
			for _, k := range []string{"copy", "log"} {
				at[k] = LedgerAt{"l1", 7, row(9), nil, false}
			}
		}, why: "still being copied"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := &job.Head{Job: "shop", Life: "l1", Phase: job.Failed, Fence: 5, NextEpoch: 8, Durable: &job.Durable{Ref: row(7)}}
			at := map[string]LedgerAt{
				"copy": {"l1", 6, row(9), lsn("0/20"), false}, "log": {"l1", 7, row(9), lsn("0/20"), false}, "hole": {None: true},
			}
			if tt.head != nil {
				tt.head(h)
			}
			if tt.at != nil {
				tt.at(at)
			}
			o, err := adoption(h, j, at, tt.trust)
			if tt.why != "" {
				if fault.CodeOf(err) != fault.CLIAdopt || !strings.Contains(err.Error(), tt.why) {
					t.Errorf("got %v, want one with %q", err, tt.why)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if o.Life != "l1" || o.Fence != 7 || o.Rows["copy"] != row(9) || len(o.Rows) != 3 || !o.Rows["hole"].IsZero() ||
				o.Positions[plan.SubtaskID{Vertex: "db"}].Fields["lsn"] != "0/20" || o.Trust != tt.trust || (h.Durable != nil && o.Over != h.Durable.Ref) {
				t.Errorf("got %+v", o)
			}
		})
	}
}
