package halves

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/report"
)

// A beat is told when it is back, by the legs that it went; one at a time is on its way.
func TestBeatGoesThereAndBack(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)
	after := func(ms int) time.Time { return began.Add(time.Duration(ms) * time.Millisecond) }
	var b Beats[int]
	want := func(when string, leg report.Leg, quiet bool) {
		t.Helper()
		var r report.Reader
		b.Report(&r)
		if _, back := r.Beat.Get(); back || r.UnderWay == nil || r.UnderWay.Leg != leg || r.UnderWay.Quiet != quiet || !r.UnderWay.Began.Equal(began) {
			t.Errorf("%s: %+v", when, r.UnderWay)
		}
	}
	b.Emit()
	b.Pass(began, func(int) bool { return true }) // nothing is on its way
	b.Cut(began, 4)
	b.Confirm(began, 4)
	b.See(began, 100)
	b.See(after(1), 200)
	end := 0
	b.Pass(after(1), func(of int) bool { end = of; return false })
	if end != 100 {
		t.Fatalf("end %d", end)
	}
	want("not read", report.Reading, false)
	b.Cut(after(2), 5) // without the mark
	b.Confirm(after(3), 5)
	b.Emit()
	b.Pass(after(4), func(int) bool { return true })
	want("read", report.Waiting, false)
	b.Confirm(after(5), 5)
	b.Cut(after(14), 6)
	b.Cut(after(15), 7) // 6 is given up: the beat goes on from its barrier
	want("in an epoch", report.Landing, false)
	b.Confirm(after(16), 5)
	want("an older one is committed", report.Landing, false)
	b.Confirm(after(34), 7)
	var r report.Reader
	b.Report(&r)
	got, _ := r.Beat.Get()
	if want := (report.Beat{Began: began, Read: 4e6, Waited: 10e6, Landed: 20e6, Epoch: 7}); got != want || r.UnderWay != nil || r.Beat.Accuracy() != report.Exact {
		t.Errorf("%+v, want %+v; %+v", got, want, r.UnderWay)
	}
	if got.Whole() != 34*time.Millisecond || !got.Back().Equal(after(34)) {
		t.Errorf("%s, back at %s", got.Whole(), got.Back())
	}
}

// What waits for an epoch that nothing has asked for is no delay.
func TestQuietBeatWaitsForNobody(t *testing.T) {
	t.Parallel()
	began := time.Now()
	var b Beats[int]
	b.See(began, 1)
	b.Pass(began, func(int) bool { return true })
	var r report.Reader
	b.Report(&r)
	if r.UnderWay == nil || !r.UnderWay.Quiet {
		t.Errorf("%+v", r.UnderWay)
	}
	b.Cut(began.Add(time.Minute), 3) // of a row that came behind the mark
	b.Confirm(began.Add(time.Minute+time.Second), 3)
	b.Report(&r)
	if got, _ := r.Beat.Get(); !got.Quiet || got.Whole() != time.Second || got.Waited != time.Minute {
		t.Errorf("%+v", got)
	}
}

// Whatever happens in whatever order: what is reported contradicts nothing, and a beat that is back has been in an epoch that had
// its mark.
func TestBeatsContradictNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		now := time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)
		var b Beats[int]
		head, at, last, cut := 0, 0, epoch.ID(0), map[epoch.ID]int{}
		marks := map[time.Time]int{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(time.Millisecond)
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0:
				head++
			case 1:
				b.See(now, head)
				if _, ok := marks[now]; !ok {
					marks[now] = head
				}
			case 2:
				at = rapid.IntRange(at, head).Draw(t, "at")
			case 3:
				last++
				cut[last] = at
				b.Cut(now, last)
			case 4:
				if last > 0 {
					b.Confirm(now, last)
				}
			}
			if rapid.Bool().Draw(t, "rows") {
				b.Emit()
			}
			b.Pass(now, func(mark int) bool { return at >= mark })
			r := report.Reader{Connector: "c", Lifecycle: report.Incremental}
			b.Report(&r)
			e := report.Envelope{Job: "j", Subtask: "s-0", Fence: 1, Reader: &r}
			if err := e.Validate(); err != nil {
				t.Fatal(err)
			}
			if got, ok := r.Beat.Get(); ok && (cut[epoch.ID(got.Epoch)] < marks[got.Began] || got.Back().After(now)) {
				t.Fatalf("%+v is back at %s; its epoch is cut at %d, its mark is %d", got, now, cut[epoch.ID(got.Epoch)], marks[got.Began])
			}
		}
	})
}
