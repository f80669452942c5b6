package halves

import (
	"testing"
	"time"

	"weir.dev/weir/pkg/report"
)

func TestGrowthIsTheSlopeOverSteps(t *testing.T) {
	t.Parallel()
	begin := time.Unix(1_000_000, 0)
	var g Growth
	see := func(second int, bytes int64) { g.See(begin.Add(time.Duration(second)*time.Second), bytes) }
	see(0, 5000)
	see(10, 6000)
	if r := g.Rate(); r.Accuracy() != report.Unavailable {
		t.Errorf("after ten seconds: %v", r)
	}
	for s := 20; s <= 60; s += 10 {
		see(s, 5000+int64(s)*100)
		see(s+1, 1<<40) // too near to count
	}
	if n, ok := g.Rate().Get(); !ok || n != 100 {
		t.Errorf("a straight line: %d", n)
	}

	// What an epoch gives back each minute is no growth over ten.
	g = Growth{}
	for s := 0; s <= 600; s += 5 {
		see(s, 1<<20+int64(s%60)*1000)
	}
	if n, ok := g.Rate().Get(); !ok || n < -20 || n > 20 {
		t.Errorf("saw teeth grow by %d", n)
	}
	// A log that begins to grow is seen although it rested before, once the rest is out of sight.
	for s := 605; s <= 1300; s += 5 {
		see(s, 1<<20+int64(s-600)*1000)
	}
	if n, ok := g.Rate().Get(); !ok || n < 990 || n > 1010 {
		t.Errorf("grows by %d", n)
	}
	if len(g.seen) > 130 {
		t.Errorf("%d samples are kept", len(g.seen))
	}
}
