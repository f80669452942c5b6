package bubble

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/report"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/pkg/source/generator"
)

// holder is a source with something outside the bus.
type holder struct {
	generator.Connector
	mu       sync.Mutex
	refusals int
	released []source.Identity
}

func (h *holder) Release(_ context.Context, cfg source.Config) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.refusals > 0 {
		h.refusals--
		return errors.New("the slot is in use")
	}
	h.released = append(h.released, cfg.Identity)
	return nil
}

// What a life made outside the bus is dropped when the job is at rest for good; a refusal is told and tried again.
func TestExternalResourcesAreReleased(t *testing.T) {
	inBubble(t, func(m *mesh) {
		h := &holder{refusals: 1}
		m.source = h
		m.coordinator("c1")
		m.node("n1", nil, "source", "sink")
		m.submit(shop)
		life := m.await(committed(2)).Life
		m.ask(func(i job.Intent) job.Intent { return i.Cancelled("r3", time.Now()) })
		m.await("the release", func(h *job.Head) bool {
			return h.Phase == job.Cancelled && h.Release != nil && h.Release.Done
		})
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.refusals != 0 || len(h.released) != 1 || h.released[0].Life != life || h.released[0].Job != "shop" {
			t.Errorf("%d refusals left, released %+v, life %s", h.refusals, h.released, life)
		}
	})
}

// The latest reports of all halves of all sources are on the bus, of the present attempt.
func TestReports(t *testing.T) {
	inBubble(t, func(m *mesh) {
		m.coordinator("c1")
		m.node("n1", nil, "source")
		m.node("n2", nil, "sink")
		m.submit(shop)
		h := m.await(committed(10))
		entries, err := m.conn.Reports(m.ctx)
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]report.Envelope{}
		for _, e := range entries {
			b, err := report.ParseBatch(e.Value)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range b.Reports {
				found[r.Subtask] = r
			}
		}
		for _, want := range []string{"gen_enum-0", "gen-0", "gen-1"} {
			if r, ok := found[want]; !ok || r.Fence != uint64(h.Fence) || (r.Reader == nil) == (r.Enumerator == nil) {
				t.Errorf("report of %s: %+v", want, r)
			}
		}
		if len(found) != 3 {
			t.Errorf("%d reports, want those of one enumerator and two readers", len(found))
		}
	})
}
