package control

import (
	"strings"
	"testing"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/job"
)

func TestAnAuditMissesNothing(t *testing.T) {
	t.Parallel()
	h := &job.Head{Durable: &job.Durable{Ref: epoch.Ref{Epoch: 4, Digest: "d4"}}}
	if found := audit(h, nil, nil); len(found) != 1 || found[0].Epoch != 4 {
		t.Errorf("a durable manifest that cannot be read: %v", found)
	}
	if found := audit(&job.Head{}, nil, nil); len(found) != 0 {
		t.Errorf("a job without epochs: %v", found)
	}
}

func TestAReasonIsAnErrorAgain(t *testing.T) {
	t.Parallel()
	err := reasonFault(&job.Head{Job: "shop", Reason: job.Reason{Code: string(fault.PGSlotMissing), Text: "gone", Remedy: "look"}})
	if e := fault.Of(err); e.Code != fault.PGSlotMissing || e.Where != "shop" || e.Why != "gone" || e.Remedy != "look" {
		t.Errorf("%+v", e)
	}
}

func TestEveryPhaseSaysWhatItAllows(t *testing.T) {
	t.Parallel()
	for _, p := range []job.Phase{
		job.Created, job.Starting, job.Running, job.Draining, job.Suspending, job.Finished, job.Suspended, job.Cancelled, job.Failed, job.Deleted,
	} {
		got := commands(p)
		if over(p) != strings.Contains(got, "submit") {
			t.Errorf("%s allows %q", p, got)
		}
		if (p == job.Failed || p == job.Suspended) != strings.Contains(got, "resume") {
			t.Errorf("%s allows %q", p, got)
		}
	}
}
