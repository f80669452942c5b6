package bubble

import (
	"testing"
	"time"

	"weir.dev/weir/pkg/job"
)

const (
	shop = beforeRate + "rate: 300" + afterRate
	// slow is for tests that wait for long, bounded comes to its end by itself.
	slow    = beforeRate + "rate: 30" + afterRate
	bounded = beforeRate + "rate: 300, rows: 3000" + afterRate

	beforeRate = `
apiVersion: weir/v1
job: shop
epoch: {interval: 200ms}
sources:
  gen: {type: generator, `
	afterRate = `, tables: 2, columns: 5, keys: 50, deletes: 20, transaction_rows: 3, readers: 2}
sinks:
  out: {from: [gen], type: blackhole, mode: changelog, writers: 2}
`
)

func committed(n uint64) (string, func(*job.Head) bool) {
	return "committed epochs", func(h *job.Head) bool { return h.Phase == job.Running && uint64(h.Committed) >= n }
}

func TestJobLivesFromSubmitToDrain(t *testing.T) {
	inBubble(t, func(m *mesh) {
		m.coordinator("c1")
		m.node("n1", nil, "source")
		m.node("n2", nil, "sink")
		m.submit(shop)
		stop := m.watchTarget()
		m.await(committed(5))
		m.drain()
		stop()
	})
}

// A source that comes to its end ends the job by itself, with everything committed; an attempt that was lost at the end
// does not keep it from that.
func TestABoundedSourceFinishesTheJob(t *testing.T) {
	for name, disturb := range map[string]func(m *mesh){
		"undisturbed": func(*mesh) {},
		"attempt lost": func(m *mesh) {
			m.await(committed(3))
			m.target.SetDown(true)
			h := m.await("the end of the source", func(h *job.Head) bool { return h.Phase == job.Draining })
			if !h.Drain.Deadline.IsZero() {
				m.t.Errorf("the end of the source has a deadline: %+v", h.Drain)
			}
			if err := m.conn.DeleteData(m.ctx, h.Job, h.Fence); err != nil {
				m.t.Fatal(err)
			}
			m.await("a new attempt", func(n *job.Head) bool { return n.Fence > h.Fence })
			m.target.SetDown(false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(m *mesh) {
				m.coordinator("c1")
				m.node("n1", nil, "source", "sink")
				m.submit(bounded)
				stop := m.watchTarget()
				began := time.Now()
				disturb(m)
				m.judge(m.await("the end", func(h *job.Head) bool { return h.Phase == job.Finished }))
				if took := time.Since(began); took > time.Minute {
					t.Errorf("3000 rows at 300 a second, finished after %s", took)
				}
				if n := len(m.target.Changes()); n != 3000 {
					t.Errorf("%d changes at the target", n)
				}
				stop()
			})
		})
	}
}

func TestNodesDie(t *testing.T) {
	inBubble(t, func(m *mesh) {
		m.coordinator("c1")
		kill := map[string]func(){}
		for _, n := range []string{"n1", "n2", "n3"} {
			kill[n] = m.node(n, nil, "source", "sink")
		}
		m.submit(shop)
		stop := m.watchTarget()
		m.await(committed(3))
		for _, n := range []string{"n1", "n2", "n3"} {
			kill[n]()
			h := m.await(committed(1))
			<-time.After(300 * time.Millisecond)
			m.node(n, nil, "source", "sink")
			m.await(committed(uint64(h.Committed) + 3))
		}
		m.drain()
		stop()
	})
}
