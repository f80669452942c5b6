package coordinator

import (
	"testing"
	"time"

	"weir.dev/weir/pkg/bus"
)

// A stream that moves is looked at each time, one that rests ever less, and at once again when it has moved.
func TestStreamsThatRestAreLookedAtLess(t *testing.T) {
	t.Parallel()
	const every = time.Second
	var w streamWatch
	now := time.Unix(100, 0)
	state := bus.DataState{Created: now, LastSeq: 7}
	looks := func(span time.Duration, each func()) (n int) {
		for end := now.Add(span); now.Before(end); now = now.Add(every) {
			if !w.due(now, every) {
				continue
			}
			n++
			w.looked = now
			if each != nil {
				each()
			}
			if why := w.judge(state); why != "" {
				t.Fatal(why)
			}
		}
		return n
	}
	if n := looks(10*every, func() { state.LastSeq++ }); n != 10 {
		t.Errorf("%d looks at a stream that moves, in 10 ticks", n)
	}
	if n := looks(160*every, nil); n < 7 || n > 11 {
		t.Errorf("%d looks at a stream that rests, in 160 ticks", n)
	}
	state.LastSeq++
	looks(32*every, nil) // one of them has seen it move
	if n := looks(2*every, nil); n == 0 {
		t.Error("a stream that has moved is not looked at again")
	}
	state.LastSeq = 3
	if w.judge(state) == "" {
		t.Error("a stream that went back is taken for whole")
	}
}
