package sinktest

import (
	"flag"
	"fmt"
	"testing"
)

// Histories says how many random histories a test runs, and of what length. It is set on the command line.
type Histories struct {
	first        *uint64
	seeds, steps *int
}

// HistoryFlags defines the flags -seed, -seeds and -steps, with these defaults. It is called once, before flags are parsed.
func HistoryFlags(first uint64, seeds, steps int) Histories {
	return Histories{
		first: flag.Uint64("seed", first, "first seed of the random histories"),
		seeds: flag.Int("seeds", seeds, "how many random histories of each kind"),
		steps: flag.Int("steps", steps, "length of a random history"),
	}
}

// Run runs [Random] with each seed, beside each other, each with a fixture of its own.
func (h Histories) Run(t *testing.T, open func(t *testing.T) Fixture) {
	t.Helper()
	for n := range *h.seeds {
		seed := *h.first + uint64(n)
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			Random(t, open(t), seed, *h.steps)
		})
	}
}
