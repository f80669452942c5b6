package progress

import (
	"maps"
	"testing"
	"time"
)

// Dead letters that were there at first did not come now; those that came are counted for a minute; what is discarded is no
// arrival.
func TestFillsCountWhatCame(t *testing.T) {
	t.Parallel()
	w := watcher{filling: make(map[filled]*fill)}
	at := time.Now()
	for _, step := range []struct {
		after time.Duration
		there uint64
		want  map[string]uint64
	}{
		{0, 40, map[string]uint64{}},
		{time.Second, 40, map[string]uint64{"w": 0}},
		{2 * time.Second, 45, map[string]uint64{"w": 5}},
		{30 * time.Second, 46, map[string]uint64{"w": 6}},
		{31 * time.Second, 3, map[string]uint64{"w": 6}},
		{65 * time.Second, 4, map[string]uint64{"w": 2}},
		{5 * time.Minute, 4, map[string]uint64{"w": 0}},
	} {
		got := w.fills("shop", map[string]uint64{"w": step.there}, at.Add(step.after))
		maps.DeleteFunc(got, func(_ string, n uint64) bool { return n == 0 })
		maps.DeleteFunc(step.want, func(_ string, n uint64) bool { return n == 0 })
		if !maps.Equal(got, step.want) {
			t.Errorf("after %s: %v, want %v", step.after, got, step.want)
		}
	}
}
