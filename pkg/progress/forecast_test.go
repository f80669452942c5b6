package progress

import (
	"strings"
	"testing"
	"time"

	"weir.dev/weir/pkg/position"
	"weir.dev/weir/pkg/report"
)

func TestForecast(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0).UTC()
	about := report.BestEffortOf[int64]
	head := report.BestEffortOf(report.SourceHead{At: now})
	ahead, level := Behind{Value: report.BestEffortOf[uint64](5)}, Behind{Value: report.BestEffortOf[uint64](0)}
	for name, c := range map[string]struct {
		r      report.Reader
		behind Behind
		want   Outlook
		in     time.Duration
		text   string
	}{
		"nothing is said":       {report.Reader{}, ahead, OutlookUnknown, 0, "unavailable"},
		"no bound":              {report.Reader{Retention: &report.Retention{}}, ahead, Unbounded, 0, "without a bound"},
		"not watched long":      {report.Reader{Retention: &report.Retention{Bytes: 100, Room: about(90)}}, ahead, OutlookUnknown, 0, ""},
		"it shrinks":            {report.Reader{Retention: &report.Retention{Bytes: 100, Room: about(90), Growth: about(-1)}}, ahead, NotForeseen, 0, "not lost"},
		"it grows":              {report.Reader{Retention: &report.Retention{Bytes: 9000, Room: about(7200), Growth: about(2)}}, ahead, RunsOut, time.Hour, "~60 min"},
		"so slowly":             {report.Reader{Retention: &report.Retention{Bytes: 1 << 40, Room: about(1 << 40), Growth: about(1)}}, ahead, NotForeseen, 0, ""},
		"no room is said":       {report.Reader{RetainedBytes: about(40), Retention: &report.Retention{Bytes: 100, Growth: about(1)}}, ahead, RunsOut, time.Minute, ""},
		"neither room nor kept": {report.Reader{Retention: &report.Retention{Bytes: 100, Growth: about(1)}}, ahead, OutlookUnknown, 0, ""},
		"beyond its bound":      {report.Reader{Retention: &report.Retention{Bytes: 100, Room: about(-5)}}, ahead, RunsOut, 0, "~0 s"},
		"by age, level":         {report.Reader{Head: head, Retention: &report.Retention{Age: time.Hour}}, level, NotForeseen, 0, ""},
		"by age, behind":        {report.Reader{Head: head, LastEvent: report.ExactOf(now.Add(-45 * time.Minute)), Retention: &report.Retention{Age: time.Hour}}, ahead, RunsOut, 15 * time.Minute, "at least"},
		"by age, too old":       {report.Reader{Head: head, LastEvent: report.ExactOf(now.Add(-2 * time.Hour)), Retention: &report.Retention{Age: time.Hour}}, ahead, RunsOut, 0, "at least"},
		"by age, no event":      {report.Reader{Head: head, Retention: &report.Retention{Age: time.Hour}}, ahead, OutlookUnknown, 0, ""},
	} {
		got := forecast(&c.r, c.behind)
		in, ok := got.In.Get()
		if got.Outlook != c.want || in != c.in || ok != (c.want == RunsOut) || !strings.Contains(got.Text(), c.text) {
			t.Errorf("%s: %+v, %q", name, got, got.Text())
		}
		if ok && got.In.Accuracy() != report.BestEffort {
			t.Errorf("%s: a forecast is %s", name, got.In.Accuracy())
		}
	}
}

// What runs out soon is a note with its evidence: it keeps nothing from moving yet.
func TestLogThatRunsOutIsSaid(t *testing.T) {
	t.Parallel()
	o := Observation{At: time.Unix(1_700_000_000, 0)}
	said := func(r report.Reader) []Finding {
		out := Reader{Reader: r, Forecast: forecast(&r, Behind{Value: report.BestEffortOf[uint64](5), Unit: position.Bytes})}
		return o.runningOut(&Status{Sources: []Source{{Name: "db", Type: "postgres", Readers: []Reader{out}}}})
	}
	const gib = 1 << 30
	keeps := report.Retention{Bytes: 20 * gib, Room: report.BestEffortOf[int64](8 * gib), Growth: report.BestEffortOf[int64](gib / 1200)}
	all := said(report.Reader{RetainedBytes: report.BestEffortOf[int64](12 * gib), Retention: &keeps})
	if want := "source db keeps 12.0 GiB of log, at most 20.0 GiB: at this rate it is lost in about 2 h"; len(all) != 1 || all[0].Text != want || !all[0].Note || all[0].Kind != LogRunsOut {
		t.Errorf("%+v", all)
	}
	keeps.Growth = report.BestEffortOf[int64](10)
	if all := said(report.Reader{Retention: &keeps}); len(all) != 0 {
		t.Errorf("years ahead: %+v", all)
	}
}
