package bench

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"weir.dev/weir/itest/harness"
)

// memory writes rows at the source while the product moves them, and takes the peak of its resident memory up to the
// first million and over the whole.
func (s *stand) memory(r *Report) {
	s.Helper()
	database := s.database()
	first, last := s.Rows+1, s.Rows+s.MemoryRows
	p := s.start("1s", "", database, upsert())
	p.running()
	pid := p.Members[0].PID()

	ctx, cancel := context.WithCancel(s.Context())
	defer cancel()
	var mu sync.Mutex
	var peak float64
	var watch sync.WaitGroup
	watch.Go(func() {
		for harness.Pause(ctx, 50*time.Millisecond) == nil {
			rss := residentMiB(pid)
			mu.Lock()
			peak = max(peak, rss)
			mu.Unlock()
		}
	})
	peakNow := func() float64 {
		mu.Lock()
		defer mu.Unlock()
		return peak
	}
	var load sync.WaitGroup
	load.Go(func() {
		if err := s.source.Exec(ctx, "postgres", fmt.Sprintf("CALL bench.fill(%d, %d)", first, last)); err != nil && ctx.Err() == nil {
			s.Error(err)
		}
	})
	part := min(s.Rows, s.MemoryRows)
	p.committed(part)
	early := peakNow()
	load.Wait()
	p.committed(s.MemoryRows)
	whole := peakNow()
	cancel()
	watch.Wait()
	p.stop()
	r.addMemory(part, s.MemoryRows, early, whole)
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
