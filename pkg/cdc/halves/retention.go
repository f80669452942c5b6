package halves

import (
	"time"

	"weir.dev/weir/pkg/report"
)

// How long the log that is kept is watched for its rate: epochs give it back in steps, over which the rate goes.
const (
	growthSpan  = 10 * time.Minute
	growthLeast = 30 * time.Second
	growthStep  = 5 * time.Second
)

// Growth is by how much the log that a source keeps grows. The zero Growth is ready.
type Growth struct{ seen []kept }

type kept struct {
	at    time.Time
	bytes int64
}

// See takes how many bytes were kept at a moment. Moments that are too near to the last one are left out.
func (g *Growth) See(at time.Time, bytes int64) {
	if n := len(g.seen); n > 0 && at.Sub(g.seen[n-1].at) < growthStep {
		return
	}
	first := 0
	for first < len(g.seen) && at.Sub(g.seen[first].at) > growthSpan {
		first++
	}
	g.seen = append(g.seen[first:len(g.seen):len(g.seen)], kept{at, bytes})
}

// Rate is the slope of the straight line nearest to what was seen, in bytes per second; no value until it was watched for a
// while.
func (g *Growth) Rate() report.Value[int64] {
	n := len(g.seen)
	if n < 3 || g.seen[n-1].at.Sub(g.seen[0].at) < growthLeast {
		return report.Value[int64]{}
	}
	var sx, sy, sxx, sxy float64
	for _, k := range g.seen {
		x, y := k.at.Sub(g.seen[0].at).Seconds(), float64(k.bytes-g.seen[0].bytes)
		sx, sy, sxx, sxy = sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	f := float64(n)
	return report.BestEffortOf(int64((f*sxy - sx*sy) / (f*sxx - sx*sx)))
}
