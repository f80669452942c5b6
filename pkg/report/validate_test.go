package report_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"weir.dev/weir/pkg/position"
	"weir.dev/weir/pkg/report"
)

var moment = time.Date(2026, 11, 29, 8, 0, 0, 0, time.UTC)

func lsn(text string) position.Position {
	return position.Position{Type: position.PostgresLSN, Version: 1, Fields: map[string]string{"lsn": text}}
}

// reader and enumerator are reports that contradict nothing.
func reader() *report.Envelope {
	return &report.Envelope{Job: "shop", Subtask: "db-0", Fence: 2, Observed: moment, Reader: &report.Reader{
		Connector: "postgres", Lifecycle: report.Incremental, Consumed: report.ExactOf(lsn("0/10")), LastChange: report.ExactOf(moment),
	}}
}

func enumerator(completed, running int) *report.Envelope {
	e := &report.Enumerator{
		Connector: "postgres", Assignment: report.Assigning, Assigned: report.ExactOf(uint64(completed + running)),
		Completed: report.ExactOf(uint64(completed)), Running: report.ExactOf(uint64(running)),
		PreparedUnsent: report.ExactOf[uint64](0), TablesNotChunked: report.ExactOf[uint64](0),
	}
	for i := range min(running, report.MaxActive) {
		e.Active = append(e.Active, report.Split{ID: fmt.Sprintf("1#%04d", i), Table: "public.t"})
	}
	e.ActiveTruncated = running > report.MaxActive
	return &report.Envelope{Job: "shop", Subtask: "db_enum-0", Fence: 2, Observed: moment, Enumerator: e}
}

func TestAReportThatContradictsItselfIsRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		of     *report.Envelope
		change func(*report.Envelope)
		want   string
	}{
		"no attempt":             {reader(), func(e *report.Envelope) { e.Fence = 0 }, "no attempt"},
		"of nobody":              {reader(), func(e *report.Envelope) { e.Subtask = "" }, "of nobody"},
		"neither":                {reader(), func(e *report.Envelope) { e.Reader = nil }, "one of reader and enumerator"},
		"both":                   {reader(), func(e *report.Envelope) { e.Enumerator = enumerator(1, 1).Enumerator }, "one of reader and enumerator"},
		"unknown lifecycle":      {reader(), func(e *report.Envelope) { e.Reader.Lifecycle = "STALLED" }, "lifecycle"},
		"copier that follows":    {reader(), func(e *report.Envelope) { e.Reader.Copies = true }, "without the log"},
		"change of nothing":      {reader(), func(e *report.Envelope) { e.Reader.Consumed = report.Value[position.Position]{} }, "has changed"},
		"time of 1970":           {reader(), func(e *report.Envelope) { e.Reader.LastEvent = report.ExactOf(time.Time{}) }, "zero time"},
		"less than nothing kept": {reader(), func(e *report.Envelope) { e.Reader.RetainedBytes = report.ExactOf[int64](-1) }, "retained"},
		"head without time":      {reader(), func(e *report.Envelope) { e.Reader.Head = report.ExactOf(report.SourceHead{Position: lsn("0/1")}) }, "source head"},
		"restored from no epoch": {reader(), func(e *report.Envelope) { e.Restore = &report.Restore{} }, "no epoch"},
		"counts that do not add": {enumerator(2, 3), func(e *report.Envelope) { e.Enumerator.Assigned = report.ExactOf[uint64](6) }, "6 splits assigned"},
		"unknown assignment":     {enumerator(2, 3), func(e *report.Envelope) { e.Enumerator.Assignment = "DONE" }, "assignment"},
		"more named than running": {enumerator(2, 3), func(e *report.Envelope) {
			e.Enumerator.Running, e.Enumerator.Completed = report.ExactOf[uint64](2), report.ExactOf[uint64](3)
		}, "3 active splits, 2 running"},
		"tables with more than all": {enumerator(2, 3), func(e *report.Envelope) {
			e.Enumerator.Tables = []report.Table{{Name: "t", Lifecycle: report.Snapshot, Splits: &report.Splits{Completed: 2, Running: 4}}}
		}, "4 splits of tables are running"},
		"room without a bound": {reader(), func(e *report.Envelope) {
			e.Reader.Retention = &report.Retention{Room: report.BestEffortOf[int64](1)}
		}, "room without a bound"},
		"a rate that is exact": {reader(), func(e *report.Envelope) {
			e.Reader.Retention = &report.Retention{Growth: report.ExactOf[int64](1)}
		}, "never exact"},
		"kept for less than no time": {reader(), func(e *report.Envelope) { e.Reader.Retention = &report.Retention{Age: -1} }, "up to"},
		"a wait for nothing":         {reader(), func(e *report.Envelope) { e.Reader.Waits = []report.Wait{{Since: moment}} }, "a wait"},
		"a wait since ever":          {enumerator(1, 1), func(e *report.Envelope) { e.Enumerator.Waits = []report.Wait{{What: "the disk"}} }, "a wait"},
		"too many named": {enumerator(0, 150), func(e *report.Envelope) {
			e.Enumerator.Active = append(e.Enumerator.Active, report.Split{ID: "2#1", Table: "t"})
		}, "at most 100"},
		"cut off with room":        {enumerator(0, 3), func(e *report.Envelope) { e.Enumerator.ActiveTruncated = true }, "room"},
		"splits out of order":      {enumerator(0, 3), func(e *report.Envelope) { e.Enumerator.Active[2].ID = "1#0000" }, "in order"},
		"upper without lower mark": {enumerator(0, 3), func(e *report.Envelope) { e.Enumerator.Active[1].High = report.ExactOf("5") }, "upper watermark"},
		"a table in no lifecycle":  {enumerator(0, 3), func(e *report.Envelope) { e.Enumerator.Tables = []report.Table{{Name: "t"}} }, "table"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := tc.of.Validate(); err != nil {
				t.Fatalf("refused before it was spoilt: %v", err)
			}
			tc.change(tc.of)
			if err := tc.of.Validate(); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q", err, tc.want)
			}
		})
	}
}

// The fence decides, then the sequence; a new attempt may begin at zero, and time says nothing.
func TestOrderOfReports(t *testing.T) {
	t.Parallel()
	at := func(fence, sequence uint64) *report.Envelope {
		return &report.Envelope{Fence: fence, Sequence: sequence}
	}
	for _, tc := range []struct {
		newer, older *report.Envelope
		want         bool
	}{
		{at(2, 41), at(2, 40), true},
		{at(2, 40), at(2, 41), false},
		{at(2, 41), at(2, 41), false},
		{at(3, 0), at(2, 41), true},
		{at(2, 99), at(3, 0), false},
	} {
		tc.older.Observed = moment.Add(time.Hour)
		if got := tc.newer.Newer(tc.older); got != tc.want {
			t.Errorf("%d/%d newer than %d/%d: %t", tc.newer.Fence, tc.newer.Sequence, tc.older.Fence, tc.older.Sequence, got)
		}
	}
}

// While a table is not cut, nobody knows how many splits there will be.
func TestNoTotalIsInvented(t *testing.T) {
	t.Parallel()
	e := enumerator(4, 2).Enumerator
	e.PreparedUnsent = report.ExactOf[uint64](3)
	if n, ok := e.Total().Get(); !ok || n != 9 || e.Total().Accuracy() != report.Exact {
		t.Errorf("everything is cut: %d %s", n, e.Total().Accuracy())
	}
	e.TablesNotChunked = report.ExactOf[uint64](1)
	if e.Total().Accuracy() != report.Unavailable {
		t.Errorf("a table is not cut: %s", e.Total().Accuracy())
	}
	e.TablesNotChunked = report.UnsupportedOf[uint64]()
	if e.Total().Accuracy() != report.Unsupported {
		t.Errorf("nobody counts tables: %s", e.Total().Accuracy())
	}
	if a := (&report.Enumerator{Assignment: report.NotApplicable}).Total().Accuracy(); a != report.Unsupported {
		t.Errorf("nothing is copied: %s", a)
	}
}

// STIP-30 validation 13: every combination of the three words is judged; those that no run can be in are refused.
func TestCombinationsOfStates(t *testing.T) {
	t.Parallel()
	good := 0
	for _, l := range []report.Lifecycle{report.Snapshot, report.CatchUp, report.Incremental, report.Unknown} {
		for _, r := range []report.Recovery{report.Restoring, report.Restored, report.Steady, report.RecoveryUnknown} {
			for _, h := range []report.Health{report.Healthy, report.StaleReport, report.NoProgress, report.Stalled, report.HealthUnknown} {
				for _, by := range []report.HealthSource{report.Framework, report.Connector} {
					for _, e := range []uint64{0, 7} {
						s := report.State{Lifecycle: l, Recovery: r, RestoredEpoch: e, Health: h, Evidence: by, Reason: "seen"}
						want := (h == report.Stalled) == (by == report.Connector) &&
							(e > 0 || r == report.Steady || r == report.RecoveryUnknown) && (e == 0 || r != report.RecoveryUnknown) &&
							(r != report.Restoring || h != report.NoProgress && h != report.Stalled) &&
							(h != report.Stalled || l != report.Unknown)
						if err := s.Validate(); (err == nil) != want {
							t.Errorf("%+v: %v", s, err)
						}
						if want {
							good++
						}
					}
				}
			}
		}
	}
	if good == 0 {
		t.Error("everything is refused")
	}
	for _, s := range []report.State{
		{},
		{Lifecycle: report.Incremental, Recovery: report.Steady, Health: report.NoProgress, Evidence: report.Framework},
		{Lifecycle: "DONE", Recovery: report.Steady, Health: report.Healthy, Evidence: report.Framework},
		{Lifecycle: report.Unknown, Recovery: "LOST", Health: report.Healthy, Evidence: report.Framework},
		{Lifecycle: report.Unknown, Recovery: report.Steady, Health: "FINE", Evidence: report.Framework},
	} {
		if s.Validate() == nil {
			t.Errorf("taken: %+v", s)
		}
	}
}

// STIP-30 validation 13: whatever may be reported comes back as it was, accuracies included.
func TestReportsComeBack(t *testing.T) {
	t.Parallel()
	count := rapid.Custom(func(t *rapid.T) report.Value[uint64] {
		n := rapid.Uint64().Draw(t, "n")
		return rapid.SampledFrom([]report.Value[uint64]{
			report.ExactOf(n), report.BestEffortOf(n), report.UnsupportedOf[uint64](), {},
		}).Draw(t, "count")
	})
	text := rapid.Custom(func(t *rapid.T) report.Value[string] {
		s := rapid.String().Draw(t, "s")
		return rapid.SampledFrom([]report.Value[string]{report.ExactOf(s), report.BestEffortOf(s), report.UnsupportedOf[string](), {}}).Draw(t, "text")
	})
	rapid.Check(t, func(t *rapid.T) {
		e := reader()
		e.Sequence = rapid.Uint64().Draw(t, "sequence")
		e.Reader.Rows, e.Reader.ActiveSplit = count.Draw(t, "rows"), text.Draw(t, "split")
		if rapid.Bool().Draw(t, "restored") {
			e.Restore = &report.Restore{Epoch: 1 + rapid.Uint64Range(0, 99).Draw(t, "epoch"), First: report.ExactOf(lsn("0/1F"))}
		}
		if rapid.Bool().Draw(t, "enumerator") {
			e = enumerator(rapid.IntRange(0, 9).Draw(t, "completed"), rapid.IntRange(0, 120).Draw(t, "running"))
			e.Enumerator.HandedOut = count.Draw(t, "handed")
		}
		if err := e.Validate(); err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(report.Batch{Version: report.BatchVersion, Node: "n", Incarnation: "i", At: moment, Reports: []report.Envelope{*e}})
		if err != nil {
			t.Fatal(err)
		}
		back, err := report.ParseBatch(b)
		if err != nil {
			t.Fatal(err)
		}
		want, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		got, err := json.Marshal(back.Reports[0])
		if err != nil || string(got) != string(want) || back.Reports[0].Validate() != nil {
			t.Fatalf("%s comes back as %s, %v", want, got, err)
		}
		if !reflect.DeepEqual(back.Reports[0].Restore == nil, e.Restore == nil) {
			t.Fatal("the restore context is lost")
		}
	})
}
