package bubble

import (
	"testing"
	"time"

	"weir.dev/weir/pkg/job"
)

const (
	shop = beforeRows + afterRows
	// few is a job whose source stops before a test has waited for long.
	few = beforeRows + ", rows: 3000" + afterRows

	beforeRows = `
apiVersion: weir/v1
job: shop
epoch: {interval: 200ms}
sources:
  gen: {type: generator, rate: 300`
	afterRows = `, tables: 2, columns: 5, keys: 50, deletes: 20, transaction_rows: 3, readers: 2}
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
