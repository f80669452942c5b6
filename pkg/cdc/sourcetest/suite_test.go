package sourcetest

import (
	"context"
	"slices"
	"testing"
	"time"
)

// A connector that does right passes.
func TestSuitePasses(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2) {
		Run(t, func(*testing.T) Harness { return harness(sound, seed) })
	}
}

// A connector that does wrong does not, whatever the wrong. Each fault is given to the case that it shows in.
func TestSuiteFindsFaults(t *testing.T) {
	t.Parallel()
	for f, name := range map[fault]string{
		marksByLog:     "crashes under writers",
		noFilter:       "drained in the snapshot",
		noReports:      "crashes under writers",
		noParts:        "crashes without a snapshot",
		tornChunks:     "crashes under writers",
		positionAhead:  "crashes without a snapshot",
		positionBehind: "wide transactions",
		movesByNew:     "crashes under writers",
		earlyEnd:       "drained in the snapshot",
	} {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			i := slices.IndexFunc(scenarios(), func(s scenario) bool { return s.name == name })
			for seed := range uint64(60) {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				h := harness(f, seed)
				h.Quiet = time.Second
				err := scenarios()[i].run(ctx, h)
				cancel()
				if err != nil {
					t.Logf("seed %d: %v", seed, err)
					return
				}
			}
			t.Error("the suite passes")
		})
	}
}
