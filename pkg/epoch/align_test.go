package epoch

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// arrival is one input of a script: a message (barrier 0) or a barrier on a channel.
type arrival struct {
	channel int
	barrier ID
	name    string
}

// event is what the owner saw, as text: deliveries, cuts and abandoned epochs in order.
func run(channels int, after ID, script []arrival) (events []string, drops uint64) {
	a := NewAlign[string](channels, after)
	for _, in := range script {
		if in.barrier == 0 {
			if a.Message(in.channel, in.name) {
				events = append(events, in.name)
			}
			continue
		}
		out := a.Barrier(in.channel, in.barrier)
		if out.Abandoned != 0 {
			events = append(events, fmt.Sprintf("abandon %d", out.Abandoned))
		}
		if out.Aligned != 0 {
			events = append(events, fmt.Sprintf("cut %d", out.Aligned))
		}
		events = append(events, out.Released...)
	}
	return events, a.Drops()
}

// second is the other implementation, written as a definition instead of a machine. With G the highest barrier that has
// arrived anywhere, a message waits exactly when G precedes it on its channel and is still missing on another one.
func second(channels int, after ID, script []arrival) (events []string, drops uint64) {
	delivered := map[string]bool{}
	has := func(upTo, channel int, n ID) bool {
		for _, in := range script[:upTo] {
			if in.channel == channel && in.barrier == n {
				return true
			}
		}
		return false
	}
	everywhere := func(upTo int, n ID) bool {
		for c := range channels {
			if !has(upTo, c, n) {
				return false
			}
		}
		return true
	}
	top := func(upTo int) ID {
		g := after
		for _, in := range script[:upTo] {
			g = max(g, in.barrier)
		}
		return g
	}
	for t := 1; t <= len(script); t++ {
		in, g, before := script[t-1], top(t), top(t-1)
		if b := in.barrier; b != 0 {
			switch {
			case b < g || b <= after || has(t-1, in.channel, b):
				drops++
				continue
			case g > before && before > after && !everywhere(t-1, before):
				events = append(events, fmt.Sprintf("abandon %d", before))
			}
			if everywhere(t, g) {
				events = append(events, fmt.Sprintf("cut %d", g))
			}
		}
		for c := range channels {
			for at, m := range script[:t] {
				if m.channel != c || m.barrier != 0 || delivered[m.name] {
					continue
				}
				if has(at, c, g) && g > after && !everywhere(t, g) {
					break
				}
				delivered[m.name] = true
				events = append(events, m.name)
			}
		}
	}
	return events, drops
}

func TestAlignAgreesWithItsDefinition(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		channels := rapid.IntRange(1, 4).Draw(t, "channels")
		after := ID(rapid.IntRange(0, 2).Draw(t, "after"))
		n := rapid.IntRange(0, 40).Draw(t, "length")
		script := make([]arrival, n)
		for i := range script {
			script[i] = arrival{
				channel: rapid.IntRange(0, channels-1).Draw(t, "channel"),
				name:    fmt.Sprintf("m%d", i),
			}
			if rapid.IntRange(0, 2).Draw(t, "what") == 0 {
				script[i].barrier = ID(rapid.IntRange(1, 6).Draw(t, "barrier"))
			}
		}
		got, gotDrops := run(channels, after, script)
		want, wantDrops := second(channels, after, script)
		if !slices.Equal(got, want) || gotDrops != wantDrops {
			t.Fatalf("script %v\n got %v, %d drops\nwant %v, %d drops", script, got, gotDrops, want, wantDrops)
		}
	})
}

func TestAlign(t *testing.T) {
	t.Parallel()
	m := func(c int, name string) arrival { return arrival{channel: c, name: name} }
	b := func(c int, n ID) arrival { return arrival{channel: c, barrier: n} }
	for name, tc := range map[string]struct {
		script []arrival
		want   []string
		drops  uint64
	}{
		"waits for the other channel": {
			[]arrival{m(0, "a"), b(0, 5), m(0, "b"), m(1, "c"), b(1, 5), m(1, "d")},
			[]string{"a", "c", "cut 5", "b", "d"},
			0,
		},
		// ⚑ a sender that never saw 5 cannot stop the flow.
		"newer barrier ends an older alignment": {
			[]arrival{b(0, 5), m(0, "a"), m(1, "b"), b(1, 6), m(1, "c"), m(0, "d"), b(0, 6)},
			[]string{"b", "abandon 5", "a", "d", "cut 6", "c"},
			0,
		},
		"newer barrier behind held messages": {
			[]arrival{b(0, 5), m(0, "a"), b(0, 6), m(0, "b"), b(1, 5), m(1, "c"), b(1, 6)},
			[]string{"abandon 5", "a", "c", "cut 6", "b"},
			1,
		},
		"repeated and late barriers change nothing": {
			[]arrival{b(0, 5), b(0, 5), b(1, 5), b(1, 5), b(0, 4), m(0, "a")},
			[]string{"cut 5", "a"},
			3,
		},
	} {
		if got, drops := run(2, 0, tc.script); !slices.Equal(got, tc.want) || drops != tc.drops {
			t.Errorf("%s: got %v, %d drops; want %v, %d", name, got, drops, tc.want, tc.drops)
		}
	}
}
