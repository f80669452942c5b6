package progress_test

import (
	"reflect"
	"testing"
	"time"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/progress"
)

// Recoveries are listed newest first and bounded; a reason is said of the one that it is about.
func TestRecoveries(t *testing.T) {
	t.Parallel()
	o := running(t)
	for i := range 30 {
		o.Head.Restarts = append(o.Head.Restarts, job.Restart{At: now.Add(time.Duration(i-30) * time.Second), Kind: job.RestartLoss, Durable: epoch.ID(i)})
	}
	o.Recovery = &job.Notice{Fence: o.Head.Fence, Reason: job.Reason{Code: "WEIR-PG-024", Text: "the connection broke"}}
	got := progress.DetailOf(o).Recoveries
	want := progress.RecoveryLine{At: now.Add(-time.Second), Kind: job.RestartLoss, From: 29, Reason: "WEIR-PG-024 the connection broke"}
	if len(got) != 20 || got[0] != want || got[1].Reason != "" || got[19].From != 10 {
		t.Errorf("%d: %+v", len(got), got)
	}
	o.Recovery.Fence--
	if got := progress.DetailOf(o).Recoveries[0]; got.Reason != "" {
		t.Errorf("a reason of before is said of %+v", got)
	}
	o.Head.Restarts = nil
	if got := progress.DetailOf(o).Recoveries; !reflect.ValueOf(got).IsNil() {
		t.Errorf("%+v", got)
	}
}
