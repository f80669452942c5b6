package bench

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"weir.dev/weir/itest/harness"
)

// memory writes rows at the source while the product moves them, and watches its resident memory: the median while the
// first million is moved and behind it, and the peak of the whole. Peaks of two spans do not compare, since the longer one
// has more chances; a median that grows is a leak.
func (s *stand) memory(r *Report) {
	s.Helper()
	part := min(s.Rows, s.MemoryRows)
	early, whole := s.resident(part, s.database(), upsert())
	r.addMemory(part, s.MemoryRows, median(early), median(whole[len(early)-1:]), slices.Max(whole))
}

// resident moves MemoryRows into a sink, and returns the resident memory in MiB, looked at all along: until the first part of the rows
// was committed, and until all were.
func (s *stand) resident(part int, database, sink string) (early, whole []float64) {
	s.Helper()
	first, last := s.Rows+1, s.Rows+s.MemoryRows
	p := s.start("1s", "", database, sink)
	p.running()
	pid := p.Members[0].PID()

	ctx, cancel := context.WithCancel(s.Context())
	defer cancel()
	var mu sync.Mutex
	var sizes []float64
	var watch sync.WaitGroup
	watch.Go(func() {
		for harness.Pause(ctx, 50*time.Millisecond) == nil {
			rss := residentMiB(pid)
			if rss == 0 {
				continue
			}
			mu.Lock()
			sizes = append(sizes, rss)
			mu.Unlock()
		}
	})
	taken := func() []float64 {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(sizes)
	}
	var load sync.WaitGroup
	load.Go(func() {
		if err := s.source.Exec(ctx, "postgres", fmt.Sprintf("CALL bench.fill(%d, %d)", first, last)); err != nil && ctx.Err() == nil {
			s.Error(err)
		}
	})
	p.committed(part)
	early = taken()
	load.Wait()
	p.committed(s.MemoryRows)
	whole = taken()
	cancel()
	watch.Wait()
	p.stop()
	return early, whole
}

// residentMiB is a process's resident memory, see proc(5); 0 when it is gone.
func residentMiB(pid int) float64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, ok := bytes.Cut(status, []byte("VmRSS:"))
	if !ok {
		return 0
	}
	kib, err := strconv.ParseFloat(string(bytes.Fields(rest)[0]), 64)
	if err != nil {
		return 0
	}
	return kib / 1024
}
