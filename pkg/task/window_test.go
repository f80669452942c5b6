package task

import (
	"testing"

	"pgregory.net/rapid"

	"weir.dev/weir/pkg/plan"
)

// However sender, stream and receiver interleave, what is unconsumed never exceeds the window, and a window whose
// messages are all consumed and counted has room again.
func TestWindowBoundsWhatIsUnconsumed(t *testing.T) {
	t.Parallel()
	limit := plan.Window{Bytes: 100, Messages: 8}
	rapid.Check(t, func(t *rapid.T) {
		w := NewWindow(limit)
		var sizes []int64      // all messages sent, in order
		var acked, done uint64 // stored by the stream, consumed by the receiver
		unconsumed := func() (n int, bytes int64) {
			for _, s := range sizes[done:] {
				n, bytes = n+1, bytes+s
			}
			return n, bytes
		}
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				size := rapid.Int64Range(1, 40).Draw(t, "size")
				if w.Room(size) {
					sizes = append(sizes, size)
					w.Sent(uint64(len(sizes)), size)
				}
			case 1:
				acked = rapid.Uint64Range(acked, uint64(len(sizes))).Draw(t, "acked")
			case 2:
				done = rapid.Uint64Range(done, acked).Draw(t, "done")
			case 3:
				stored := w.Stored(acked)
				// The stream may have stored more than the sender knows.
				really := rapid.Uint64Range(acked, uint64(len(sizes))).Draw(t, "really")
				acked = really
				w.Left(stored, really-done)
			}
			if n, bytes := unconsumed(); n > limit.Messages || bytes > limit.Bytes {
				t.Fatalf("%d messages, %d bytes unconsumed", n, bytes)
			}
		}
		acked, done = uint64(len(sizes)), uint64(len(sizes))
		w.Left(w.Stored(acked), 0)
		if !w.Room(limit.Bytes) {
			t.Fatal("no room when everything is consumed")
		}
	})
}

func TestWindowAsksEverSlowerWhileNothingMoves(t *testing.T) {
	t.Parallel()
	w := NewWindow(plan.Window{Bytes: 10, Messages: 8})
	w.Sent(1, 5)
	if !w.Half() || w.Room(6) || !w.Room(5) {
		t.Error("half full window misjudged")
	}
	last := askSoon
	for range 10 {
		d := w.Left(1, 1)
		if d < last || d > askLate {
			t.Fatalf("asks after %s, before it was %s", d, last)
		}
		last = d
	}
	if last != askLate || w.Left(1, 0) != askSoon {
		t.Errorf("slowest pause is %s", last)
	}
}
