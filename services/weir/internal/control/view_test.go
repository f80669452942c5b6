package control

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/report"
)

func TestTheSlowestReaderCounts(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		readers []report.Lifecycle
		want    report.Lifecycle
	}{
		{[]report.Lifecycle{report.Incremental}, report.Incremental},
		{[]report.Lifecycle{report.Incremental, report.CatchUp}, report.CatchUp},
		{[]report.Lifecycle{report.CatchUp, report.Snapshot, report.Incremental}, report.Snapshot},
		{[]report.Lifecycle{report.Snapshot, report.Unknown}, report.Unknown},
		{[]report.Lifecycle{report.Incremental, "NEWER"}, report.Unknown},
	} {
		var readers []Reader
		for _, l := range tc.readers {
			readers = append(readers, Reader{Reader: report.Reader{Lifecycle: l}})
		}
		if got := slowest(readers); got != tc.want {
			t.Errorf("%v: %s, want %s", tc.readers, got, tc.want)
		}
	}
}

func TestWhyNamesWhatDoesNotMove(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 29, 8, 0, 0, 0, time.UTC)
	down, err := json.Marshal(fault.New(fault.SinkUnreachable, "sinks.w", "connection refused"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		head job.Head
		seen Status
		want []string
	}{
		{"all is well", job.Head{Phase: job.Running}, Status{}, nil},
		{
			"failed",
			job.Head{Phase: job.Failed, Reason: job.Reason{Code: "WEIR-PG-010", Text: "slot gone", Remedy: "find out"}},
			Status{},
			[]string{"failed: WEIR-PG-010 slot gone", "remedy: find out"},
		},
		{"at rest", job.Head{Phase: job.Finished, Skipped: 9}, Status{}, nil},
		{
			"target down",
			job.Head{Phase: job.Running},
			Status{Sinks: []Sink{{Name: "w", Waiting: &job.Trouble{Fault: down, Since: now}}}},
			[]string{"sink w takes no commits since 2026-11-29T08:00:00Z: WEIR-SINK-001 cannot reach the target: connection refused"},
		},
		{"skipped", job.Head{Phase: job.Running, Skipped: 3}, Status{}, []string{"3 epochs in a row were skipped"}},
		{
			"slow epoch",
			job.Head{Phase: job.Running, InFlight: &job.InFlight{Epoch: 7, Triggered: now.Add(-time.Minute)}},
			Status{},
			[]string{"epoch 7 is under way since 1m0s"},
		},
		{
			"silent node",
			job.Head{Phase: job.Running},
			Status{Sources: []Source{{Readers: []Reader{{Subtask: "db-0", Age: time.Minute}}}}},
			[]string{"the report of db-0 is 1m0s old"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := why(&tc.head, tc.seen, now); !slices.Equal(got, tc.want) {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

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
