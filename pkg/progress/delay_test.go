package progress_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/progress"
	"weir.dev/weir/pkg/report"
)

// What of an epoch went by where is in the manifest and the committers' facts; what they do not say has no value.
func TestEpochDelayIsComputedAgain(t *testing.T) {
	t.Parallel()
	base := running(t)
	rapid.Check(t, func(t *rapid.T) {
		o := base
		span := rapid.Int64Range(0, int64(time.Minute))
		took := time.Duration(span.Draw(t, "took"))
		m := &epoch.Manifest{Epoch: 7, Triggered: now, Completed: now.Add(took), Subtasks: map[plan.SubtaskID]epoch.SubtaskState{}}
		slowest := map[string]int64{}
		for i, phase := range rapid.SliceOf(rapid.SampledFrom([]string{"snapshot", "stage", "align"})).Draw(t, "phases") {
			n := span.Draw(t, "nanos")
			m.Subtasks[id("db", i)] = epoch.SubtaskState{Nanos: map[string]int64{phase: n}}
			slowest[phase] = max(slowest[phase], n)
		}
		o.Committed, o.Commits = m, map[plan.SubtaskID]job.CommittedFact{}
		commit, told := int64(0), 0
		for _, sink := range []string{"warehouse", "lake"} {
			f := job.CommittedFact{Epoch: epoch.ID(rapid.IntRange(6, 7).Draw(t, "epoch")), Took: time.Duration(rapid.Int64Range(0, 9e9).Draw(t, "commit"))}
			o.Commits[id(sink+"_commit", 0)] = f
			if f.Epoch == 7 && f.Took > 0 {
				told++
				commit = max(commit, int64(f.Took))
			}
		}
		d := progress.Build(o).Epoch.Delay
		want := func(what string, v report.Value[time.Duration], there bool, n int64) {
			t.Helper()
			got, ok := v.Get()
			if ok != there || ok && (int64(got) != n || v.Accuracy() != report.Exact) {
				t.Fatalf("%s is %s (%s), want %s, %t", what, got, v.Accuracy(), time.Duration(n), there)
			}
		}
		_, snapshot := slowest["snapshot"]
		_, stage := slowest["stage"]
		want("took", d.Took, true, int64(took))
		want("snapshot", d.Snapshot, snapshot, slowest["snapshot"])
		want("stage", d.Stage, stage, slowest["stage"])
		want("commit", d.Commit, told == 2, commit)
		if bus, ok := d.Bus.Get(); !ok || d.Bus.Accuracy() != report.BestEffort || bus < 0 || bus > took {
			t.Fatalf("bus %s of %s (%s)", bus, took, d.Bus.Accuracy())
		}
	})
	base.Committed = nil
	if d := progress.Build(base).Epoch.Delay; d != nil {
		t.Errorf("before the first: %+v", d)
	}
}

// A beat that is back and one on its way are two facts; what nobody waits for is not pending, whatever its age.
func TestRoundTripIsOfTheBeat(t *testing.T) {
	t.Parallel()
	o := running(t)
	look := func() progress.Reader { return progress.Build(o).Sources[0].Readers[0] }
	if r := look(); r.RoundTrip.Accuracy() != report.Unavailable || r.Pending.Accuracy() != report.Unavailable {
		t.Errorf("before the first: %+v, %+v", r.RoundTrip, r.Pending)
	}
	beat := report.Beat{Began: now.Add(-20 * time.Second), Read: 2e6, Waited: 300e6, Landed: 40e6, Epoch: 7}
	change(&o, func(r *report.Reader) {
		r.Beat, r.UnderWay = report.ExactOf(beat), &report.Way{Began: now.Add(-14 * time.Second), Leg: report.Landing}
	})
	r := look()
	whole, _ := r.RoundTrip.Get()
	pending, _ := r.Pending.Get()
	if whole != 342*time.Millisecond || pending != 14*time.Second || r.Pending.Accuracy() != report.Exact {
		t.Errorf("%s, %s pending", whole, pending)
	}
	change(&o, func(r *report.Reader) {
		beat.Quiet = true
		r.Beat, r.UnderWay = report.ExactOf(beat), &report.Way{Began: now.Add(-14 * time.Second), Leg: report.Waiting, Quiet: true}
	})
	r = look()
	if whole, _ := r.RoundTrip.Get(); whole != 42*time.Millisecond || r.Pending.Accuracy() != report.Unavailable {
		t.Errorf("quiet: %s, pending %+v", whole, r.Pending)
	}
	change(&o, func(r *report.Reader) { *r = copier("") })
	change(&o, func(r *report.Reader) { r.Beat = report.UnsupportedOf[report.Beat]() })
	if r := look(); r.RoundTrip.Accuracy() != report.Unsupported {
		t.Errorf("a reader without the log: %+v", r.RoundTrip)
	}
}
