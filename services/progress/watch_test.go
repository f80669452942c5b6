package progress

import (
	"maps"
	"testing"
	"time"
)

// Dead letters that were there at first did not come now; those that came are counted for a minute, the first ones of a sink
// too; what is discarded is no arrival.
func TestFillsCountWhatCame(t *testing.T) {
	t.Parallel()
	w := watcher{filling: make(map[filled]*fill)}
	at := time.Now()
	for _, step := range []struct {
		after time.Duration
		there uint64 // at w
		first uint64 // at v
		want  map[string]uint64
	}{
		{0, 40, 0, map[string]uint64{}},
		{time.Second, 40, 0, map[string]uint64{"w": 0}},
		{2 * time.Second, 45, 20, map[string]uint64{"w": 5, "v": 20}},
		{30 * time.Second, 46, 20, map[string]uint64{"w": 6, "v": 20}},
		{31 * time.Second, 3, 20, map[string]uint64{"w": 6, "v": 20}},
		{65 * time.Second, 4, 20, map[string]uint64{"w": 2}},
		{5 * time.Minute, 4, 20, map[string]uint64{"w": 0}},
	} {
		letters := map[string]uint64{"w": step.there, "v": step.first}
		maps.DeleteFunc(letters, func(_ string, n uint64) bool { return n == 0 }) // as they are counted
		got := w.fills("shop", []string{"v", "w"}, letters, at.Add(step.after))
		maps.DeleteFunc(got, func(_ string, n uint64) bool { return n == 0 })
		maps.DeleteFunc(step.want, func(_ string, n uint64) bool { return n == 0 })
		if !maps.Equal(got, step.want) {
			t.Errorf("after %s: %v, want %v", step.after, got, step.want)
		}
	}
}
