package coordinator

import (
	"testing"
	"time"
)

func TestViewOfLeadership(t *testing.T) {
	t.Parallel()
	const patience = 9 * time.Second
	now := time.Unix(100, 0)
	var v view
	expect := func(when string, at time.Time, ready bool) {
		t.Helper()
		if err := v.check(at, patience); (err == nil) != ready {
			t.Errorf("%s: %v", when, err)
		}
	}
	expect("at the start", now, false)
	v.led(now)
	expect("another one leads", now.Add(patience), true)
	expect("the leader has not been seen for long", now.Add(patience+time.Second), false)
	v.lead(true)
	expect("this one leads", now.Add(time.Hour), true)
	v.lead(false)
	expect("this one led", now.Add(time.Hour), false)
}
