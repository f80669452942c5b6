package cdc

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"
)

// historySteps is the length of a history before it comes to rest.
const historySteps = 1000

// history plays one history of drawn steps.
func history(pick func(int) int, m mutant) (*world, error) {
	w, err := newWorld(pick, m)
	if err != nil {
		return w, err
	}
	return w, w.run(1 + pick(historySteps))
}

func seeded(seed uint64) func(int) int {
	return rand.New(rand.NewPCG(seed, 0)).IntN
}

// I1-I6: each row exactly once, as read or as change, whatever the order of transactions, visibility, chunks, messages,
// epochs and crashes.
func TestEachRowOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		if _, err := history(func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "") }, sound); err != nil {
			t.Fatal(err)
		}
	})
}

// The same for 10,000 histories, which is too many to draw by rapid. Their figures show that what is hard did happen.
func TestTenThousandHistories(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	stats := make(map[string]int)
	var next atomic.Uint64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for seed := next.Add(1); seed <= 10_000; seed = next.Add(1) {
				w, err := history(seeded(seed), sound)
				if err != nil {
					t.Errorf("seed %d: %v", seed, err)
					return
				}
				mu.Lock()
				for k, v := range w.stats {
					stats[k] += v
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for what, least := range map[string]int{
		"crashes": 10_000, "pauses": 1000, "located": 500, "again": 100, "changes": 100_000, "resumed": 100,
		fmt.Sprint("verdict ", Drop): 10_000, fmt.Sprint("verdict ", Emit): 10_000,
	} {
		if stats[what] < least {
			t.Errorf("%s: only %d in all histories", what, stats[what])
		}
	}
	t.Log(stats)
}

// The property can fail: every planted fault shows within a few hundred histories.
func TestPlantedFaultsShow(t *testing.T) {
	t.Parallel()
	for _, m := range []mutant{
		flippedMark, logOrder, earlyPass, noSettle, noCover, wholeMove, lostReports, exclusiveBound, noBackfill, truncatedAlike,
		droppedTail, forgottenOrdinal, unnamedSpools,
	} {
		t.Run(string(m), func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(5000) {
				if _, err := history(seeded(seed), m); err != nil {
					t.Logf("seed %d: %v", seed, err)
					return
				}
			}
			t.Error("no history shows it")
		})
	}
}
