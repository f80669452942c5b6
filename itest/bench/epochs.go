package bench

import (
	"context"
	"fmt"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/registry"
)

// idleEpochs asks a job with nothing to do for epochs, one after the other, and measures each from the leader's trigger
// to the moment at which the server has stored the head record that names it durable.
func (s *stand) idleEpochs(r *Report) {
	s.Helper()
	p := s.start("1s", "", "postgres", blackhole())
	p.committed(0)
	took := p.idle(s.Epochs)
	p.stop()
	r.addDuration("idle epoch, trigger to durable", took, 4*time.Millisecond, 0)
}

// idle asks for n epochs, one after the other, and returns how long each took.
func (p *product) idle(n int) []time.Duration {
	s := p.s
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), 2*time.Minute)
	defer cancel()
	w := p.WatchHead(ctx, p.job)
	defer w.Close()
	triggered := make(map[uint64]time.Time)
	var took []time.Duration
	asked := 0
	ask := func() {
		asked++
		id := fmt.Sprintf("bench-%d", asked)
		_, err := p.Records.Ask(ctx, p.job, func(i job.Intent) (job.Intent, error) { return i.Epoch(id, time.Now()), nil })
		if err != nil {
			s.Fatal(err)
		}
	}
	ask()
	for u := range w.Updates() {
		if u.Kind != bus.Put {
			continue
		}
		v, err := registry.DecodeHead(u.Entry)
		if err != nil {
			s.Fatal(err)
		}
		h := v.Head
		if h.InFlight != nil {
			triggered[uint64(h.InFlight.Epoch)] = h.InFlight.Triggered
		}
		if h.Durable == nil || h.InFlight != nil {
			continue
		}
		began, ok := triggered[uint64(h.Durable.Epoch)]
		if !ok || began.IsZero() {
			continue
		}
		delete(triggered, uint64(h.Durable.Epoch))
		took = append(took, u.Entry.Time.Sub(began))
		if len(took) == n {
			break
		}
		ask()
	}
	if len(took) < n {
		s.Fatalf("%d of %d idle epochs were seen", len(took), n)
	}
	return took
}
