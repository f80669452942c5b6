package progress_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/position"
	"weir.dev/weir/pkg/progress"
	"weir.dev/weir/pkg/report"
)

func TestLifecycleHidesNoDisagreement(t *testing.T) {
	t.Parallel()
	follow := func(l report.Lifecycle) report.Envelope {
		r := at(1, 1)
		r.Lifecycle = l
		return of(r)
	}
	for name, tc := range map[string]struct {
		first, second report.Envelope
		want          report.Lifecycle
		mixed         bool
	}{
		"agreed":                    {follow(report.CatchUp), follow(report.CatchUp), report.CatchUp, false},
		"mixed":                     {follow(report.CatchUp), follow(report.Incremental), report.Unknown, true},
		"one knows nothing":         {follow(report.Unknown), follow(report.Incremental), report.Unknown, true},
		"a copier has no say":       {follow(report.Incremental), of(copier("")), report.Incremental, false},
		"not while it copies, too":  {follow(report.CatchUp), of(copier("1#2")), report.CatchUp, false},
		"nothing but copiers known": {of(copier("")), of(copier("")), report.Unknown, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := running(t)
			put(&o, "db-0", tc.first, 0)
			put(&o, "db-1", tc.second, 0)
			if s := progress.Build(o).Sources[0]; s.Lifecycle != tc.want || s.Mixed != tc.mixed {
				t.Errorf("%s, mixed %t", s.Lifecycle, s.Mixed)
			}
			delete(o.Reports, "db-1")
			if s := progress.Build(o).Sources[0]; s.Lifecycle != report.Unknown || s.Summary.Missing != 1 {
				t.Errorf("one is missing: %s, %+v", s.Lifecycle, s.Summary)
			}
		})
	}
}

// A slow node delays its own reports and no other's.
func TestASlowNodeDelaysItsOwnReports(t *testing.T) {
	t.Parallel()
	o := running(t)
	put(&o, "db-1", of(copier("1#2")), 6*time.Second)
	s := progress.Build(o)
	db := s.Sources[0]
	if got := db.Summary; got.Tasks != 2 || got.Fresh != 1 || got.Stale != 1 || got.Missing != 0 {
		t.Errorf("%+v", got)
	}
	if db.Readers[0].Stale || !db.Readers[1].Stale || db.Readers[0].Age != 0 {
		t.Error("the wrong report is old")
	}
	if split, ok := db.Readers[1].ActiveSplit.Get(); !ok || split != "1#2" || db.Readers[1].ActiveSplit.Accuracy() != report.Exact {
		t.Error("age has changed what was reported")
	}
	if s.Sources[1].Summary.Stale != 0 || s.Sources[1].Health.State != report.Healthy {
		t.Errorf("the other source: %+v", s.Sources[1].Health)
	}
}

// STIP-30 validation 4 and 5: the position goes on past checkpoint N; N completes, N+1 is given up, N stays what it was.
func TestCandidateDurableCompletedAreApart(t *testing.T) {
	t.Parallel()
	o := running(t)
	me := id("db", 0)
	manifest := func(n epoch.ID, at uint64) *epoch.Manifest {
		return &epoch.Manifest{Epoch: n, Subtasks: map[plan.SubtaskID]epoch.SubtaskState{me: {Position: lsn(at)}}}
	}
	want := func(when string, consumed, candidate, durable, completed uint64) {
		t.Helper()
		r := progress.Build(o).Sources[0].Readers[0]
		for what, v := range map[string]struct {
			got  report.Value[position.Position]
			want uint64
		}{"consumed": {r.Consumed, consumed}, "candidate": {r.Candidate, candidate}, "durable": {r.Durable, durable}, "completed": {r.Completed, completed}} {
			p, ok := v.got.Get()
			if ok != (v.want != 0) || ok && !p.Equal(lsn(v.want)) {
				t.Errorf("%s: %s is %v (%s), want %d", when, what, p, v.got.Accuracy(), v.want)
			}
		}
	}
	o.Durable, o.Committed = nil, nil
	put(&o, "db-0", of(at(100, 200)), 0)
	want("before the first", 100, 0, 0, 0)

	o.Head.InFlight = &job.InFlight{Epoch: 7, Triggered: now}
	want("barrier not passed", 100, 0, 0, 0)
	o.Acks[me] = epoch.Ack{Fence: 3, Subtask: me, Epoch: 7, Position: lsn(100)}
	put(&o, "db-0", of(at(140, 200)), 0)
	want("passed, and on", 140, 100, 0, 0)

	o.Head.InFlight, o.Durable = nil, manifest(7, 100)
	want("durable, not committed", 140, 0, 100, 0)
	o.Committed = o.Durable
	want("committed", 140, 0, 100, 100)

	o.Head.InFlight = &job.InFlight{Epoch: 8, Triggered: now}
	o.Acks[me] = epoch.Ack{Fence: 3, Subtask: me, Epoch: 8, Position: lsn(150)}
	put(&o, "db-0", of(at(160, 200)), 0)
	want("the next is under way", 160, 150, 100, 100)
	o.Head.InFlight, o.Head.Skipped = nil, 1
	want("and is given up", 160, 0, 100, 100)

	o.Head.InFlight = &job.InFlight{Epoch: 9, Triggered: now}
	o.Acks[me] = epoch.Ack{Fence: 2, Subtask: me, Epoch: 9, Position: lsn(10)}
	want("an ack of another attempt", 160, 0, 100, 100)
	o.Acks[me] = epoch.Ack{Fence: 3, Subtask: me, Epoch: 9, Declined: "no"}
	want("an ack that has no part", 160, 0, 100, 100)
}

// STIP-30 validation 6: what was restored is told by the engine, and where a first attempt begins is no restored position.
func TestRestoreIsToldNotConcluded(t *testing.T) {
	t.Parallel()
	o := running(t)
	task := func() progress.CDCTask {
		s := progress.Build(o)
		return progress.CDCOf(&s).Sources[0].Tasks[0]
	}
	state := func() progress.Recovery { return progress.Build(o).Sources[0].Recovery }
	if got := state(); got != (progress.Recovery{State: report.Steady}) {
		t.Errorf("a first attempt: %+v", got)
	}
	if k := task(); k.RestoredPosition != nil || k.StartupPosition == nil {
		t.Errorf("a first attempt was restored from %+v, began at %+v", k.RestoredPosition, k.StartupPosition)
	}
	o.Head.Plan.Restore = &job.Durable{Ref: epoch.Ref{Epoch: 6}, Fence: 2}
	o.Head.Durable.Fence = 2
	o.Head.Phase = job.Starting
	if got := state(); got != (progress.Recovery{State: report.Restoring, Epoch: 6}) {
		t.Errorf("before it runs: %+v", got)
	}
	o.Head.Phase = job.Running
	e := of(at(100, 100))
	e.Restore = &report.Restore{Epoch: 6, Position: report.ExactOf(lsn(60))}
	put(&o, "db-0", e, 0)
	if got := state(); got != (progress.Recovery{State: report.Restored, Epoch: 6}) {
		t.Errorf("it runs: %+v", got)
	}
	if k := task(); k.RestoredPosition == nil || k.RestoredPosition.Values["lsn"] != "0/3C" || k.FirstPositionAfterRestore != nil {
		t.Errorf("before the first row: %+v, %+v", k.RestoredPosition, k.FirstPositionAfterRestore)
	}
	e.Restore = &report.Restore{Epoch: 6, Position: report.ExactOf(lsn(60)), First: report.ExactOf(lsn(70))}
	put(&o, "db-0", e, 0)
	if k := task(); k.FirstPositionAfterRestore == nil || k.FirstPositionAfterRestore.Values["lsn"] != "0/46" {
		t.Errorf("behind the first row: %+v", k.FirstPositionAfterRestore)
	}
	o.Head.Durable.Fence = 3
	if got := state(); got != (progress.Recovery{State: report.Steady, Epoch: 6}) {
		t.Errorf("an epoch of its own is durable: %+v", got)
	}
	delete(o.Reports, "db-1")
	o.Head.Durable.Fence = 2
	if got := state(); got.State != report.Restoring {
		t.Errorf("a reader is missing: %+v", got)
	}
}

func TestTablesArePutTogether(t *testing.T) {
	t.Parallel()
	o := running(t)
	log, copied := at(1, 1), copier("1#2")
	log.Tables = []report.Table{{Name: "public.a", Lifecycle: report.CatchUp, Rows: report.ExactOf[uint64](3)}}
	copied.Tables = []report.Table{{Name: "public.a", Lifecycle: report.Snapshot, Rows: report.ExactOf[uint64](40)}, {Name: "public.b", Lifecycle: report.Snapshot, Rows: report.BestEffortOf[uint64](5)}}
	put(&o, "db-0", of(log), 0)
	put(&o, "db-1", of(copied), 0)
	put(&o, "db_enum-0", report.Envelope{Enumerator: &report.Enumerator{Connector: "postgres", Assignment: report.Assigning, Tables: []report.Table{
		{Name: "public.a", Lifecycle: report.CatchUp, Rows: report.ExactOf[uint64](40)}, {Name: "public.c", Lifecycle: report.Unknown, Note: "no key"},
	}}}, 0)
	var got string
	for _, x := range progress.Build(o).Sources[0].Tables {
		rows, _ := x.Rows.Get()
		copied, _ := x.Copied.Get()
		got += fmt.Sprintf("%s %s %d %s copied %d %s %s; ", x.Name, x.Lifecycle, rows, x.Rows.Accuracy(), copied, x.Copied.Accuracy(), x.Note)
	}
	want := "public.a CATCH_UP 43 EXACT copied 40 EXACT ; public.b SNAPSHOT 5 BEST_EFFORT copied 0 UNAVAILABLE ; public.c UNKNOWN 0 UNAVAILABLE copied 0 UNAVAILABLE no key; "
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// P1: whatever is shown EXACT is what the head, the manifests and the reports say; what they do not say is shown as nothing.
func TestWhatIsExactCanBeComputedAgain(t *testing.T) {
	t.Parallel()
	base := running(t)
	count := rapid.Custom(func(t *rapid.T) report.Value[uint64] {
		n := rapid.Uint64Range(0, 50).Draw(t, "n")
		return rapid.SampledFrom([]report.Value[uint64]{report.ExactOf(n), report.ExactOf(n), report.BestEffortOf(n), report.UnsupportedOf[uint64](), {}}).Draw(t, "value")
	})
	rapid.Check(t, func(t *rapid.T) {
		o := base
		head := *base.Head
		o.Head, o.Reports, o.Acks = &head, map[string]progress.Sample{}, map[plan.SubtaskID]epoch.Ack{}
		head.Phase = rapid.SampledFrom([]job.Phase{job.Running, job.Starting, job.Draining, job.Finished, job.Failed}).Draw(t, "phase")
		cut := rapid.Uint64Range(1, 99).Draw(t, "cut")
		if rapid.Bool().Draw(t, "durable") {
			o.Durable = &epoch.Manifest{Subtasks: map[plan.SubtaskID]epoch.SubtaskState{id("db", 0): {Position: lsn(cut)}}}
		}
		if rapid.Bool().Draw(t, "in flight") {
			head.InFlight = &job.InFlight{Epoch: 8, Triggered: now}
		}
		ack := epoch.Ack{Fence: 3, Epoch: epoch.ID(rapid.IntRange(7, 9).Draw(t, "acked")), Position: lsn(cut + 1)}
		o.Acks[id("db", 0)] = ack
		var rows [2]report.Value[uint64]
		var there [2]bool
		for i := range rows {
			rows[i], there[i] = count.Draw(t, "rows"), rapid.IntRange(0, 3).Draw(t, "there") > 0
			if there[i] {
				r := at(cut+2, cut+5)
				r.Rows = rows[i]
				put(&o, id("db", i).String(), of(r), time.Duration(rapid.IntRange(0, 9).Draw(t, "age"))*time.Second)
			}
		}
		e := report.Enumerator{
			Connector: "postgres", Assignment: rapid.SampledFrom([]report.Assignment{report.Discovering, report.Assigning, report.AllAssigned, report.NotApplicable}).Draw(t, "assignment"),
			Assigned: count.Draw(t, "assigned"), PreparedUnsent: count.Draw(t, "prepared"), TablesNotChunked: count.Draw(t, "open"),
		}
		put(&o, "db_enum-0", report.Envelope{Enumerator: &e}, 0)

		st := progress.Build(o)
		s := st.Sources[0]
		rest := head.Phase.AtRest()
		if rest && (len(s.Readers) > 0 || s.Enumerator != nil || len(s.Tables) > 0) {
			t.Fatal("a job at rest shows reports") // P5
		}
		if got := s.Summary; got.Tasks != 2 || got.Fresh+got.Stale+got.Missing != got.Tasks {
			t.Fatalf("tasks do not add up: %+v", got)
		}
		if n, ok := s.Summary.Rows.Get(); ok && s.Summary.Rows.Accuracy() == report.Exact {
			var want uint64
			for i := range rows {
				v, has := rows[i].Get()
				if !there[i] || !has || rows[i].Accuracy() != report.Exact || rest {
					t.Fatalf("%d rows are EXACT, of which reader %d does not say so", n, i)
				}
				want += v
			}
			if n != want {
				t.Fatalf("%d rows, want %d", n, want)
			}
		}
		if n, ok := s.Summary.Total.Get(); ok {
			assigned, _ := e.Assigned.Get()
			prepared, _ := e.PreparedUnsent.Get()
			open, _ := e.TablesNotChunked.Get()
			exact := e.Assigned.Accuracy() == report.Exact && e.PreparedUnsent.Accuracy() == report.Exact && e.TablesNotChunked.Accuracy() == report.Exact
			if rest || !exact || open > 0 || n != assigned+prepared || e.Assignment == report.Discovering || e.Assignment == report.NotApplicable {
				t.Fatalf("a total of %d of %+v", n, e) // P6
			}
		}
		for _, r := range s.Readers {
			first := r.Subtask == "db-0"
			if p, ok := r.Durable.Get(); ok != (first && o.Durable != nil) || ok && !p.Equal(lsn(cut)) {
				t.Fatalf("durable %v", p)
			}
			if p, ok := r.Candidate.Get(); ok != (first && head.InFlight != nil && ack.Epoch == 8) || ok && !p.Equal(lsn(cut+1)) {
				t.Fatalf("candidate %v", p)
			}
			if _, ok := r.Completed.Get(); ok {
				t.Fatal("completed without a committed manifest")
			}
			if n, ok := r.Behind.Value.Get(); !ok || n != 3 || r.Behind.Value.Accuracy() != report.BestEffort {
				t.Fatalf("behind %d %s", n, r.Behind.Value.Accuracy())
			}
			if want := o.Reports[r.Subtask].Reader.Rows; r.Rows != want {
				t.Fatalf("rows %v, reported %v", r.Rows, want)
			}
		}
		for i := range st.Sources {
			if err := st.Sources[i].State().Validate(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
