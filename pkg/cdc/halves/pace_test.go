package halves

import (
	"testing"
	"time"
)

// A pace is of the last seconds: it follows what goes faster, and what rests has none, without being told anything.
func TestPaceIsOfTheLastSeconds(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)
	var p Pace
	if _, ok := p.Rate(at).Get(); ok {
		t.Error("a rate of nothing")
	}
	n := uint64(0)
	for i := range 300 { // ten times a second, first 100 and then 1000 in each
		now := at.Add(time.Duration(i) * 100 * time.Millisecond)
		p = p.See(now, n)
		if _, ok := p.Rate(now).Get(); ok != (i >= 10) {
			t.Fatalf("a rate after %d looks: %t", i+1, ok)
		}
		if i < 150 {
			n += 10
		} else {
			n += 100
		}
	}
	end := at.Add(29_900 * time.Millisecond) // the last look
	if got, _ := p.Rate(end).Get(); got != 1000 {
		t.Errorf("%d a second, want 1000", got)
	}
	if got, _ := p.Rate(end.Add(5 * time.Second)).Get(); got >= 1000 || got == 0 {
		t.Errorf("%d a second behind a rest of 5 s", got)
	}
	if got, ok := p.Rate(end.Add(time.Minute)).Get(); !ok || got != 0 {
		t.Errorf("%d a second behind a rest of a minute", got)
	}
	if len(p.seen) > 12 {
		t.Errorf("%d counts are kept", len(p.seen))
	}

	// Copied anew: what was counted before is of another copy.
	p = p.See(end.Add(time.Second), 5)
	if _, ok := p.Rate(end.Add(1500 * time.Millisecond)).Get(); ok {
		t.Error("a rate of a copy that has just begun")
	}
	p = p.See(end.Add(3*time.Second), 25)
	if got, _ := p.Rate(end.Add(3 * time.Second)).Get(); got != 10 {
		t.Errorf("%d a second of a new copy, want 10", got)
	}
}
