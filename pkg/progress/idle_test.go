package progress_test

import (
	"slices"
	"testing"
	"time"

	"weir.dev/weir/pkg/progress"
	"weir.dev/weir/pkg/report"
)

// A reader that keeps up with a load is at the head that it saw, and its source is not idle for that.
func TestKeepingUpIsNotIdle(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		row  time.Duration // since the last one
		idle bool
	}{{time.Second, false}, {time.Minute, true}} {
		o := running(t)
		change(&o, func(r *report.Reader) { r.LastEvent = report.ExactOf(now.Add(-tc.row)) })
		got := slices.ContainsFunc(progress.Build(o).Findings, func(f progress.Finding) bool { return f.Kind == progress.SourceIdle && f.About == "db" })
		if got != tc.idle {
			t.Errorf("a row %s ago: idle is %t", tc.row, got)
		}
	}
}
