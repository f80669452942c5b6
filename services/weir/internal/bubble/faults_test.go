package bubble

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/meshtest"
	"weir.dev/weir/pkg/node"
)

// Whatever the bus loses, repeats, reorders or delays, of rows and of facts: the target is exact.
func TestLossyMesh(t *testing.T) {
	for seed := range uint64(24) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			faults := meshtest.NewFaults(meshtest.FaultPlan{
				Seed: seed, Budget: 30, Drop: 0.004, Repeat: 0.01, Swap: 0.004, Delay: 0.02, MaxDelay: 700 * time.Millisecond,
				RefusePublish: 0.001, LoseFact: map[string]float64{"*": 0.1}, LateFact: map[string]float64{"*": 0.1},
			})
			between := func(m node.Mesh) node.Mesh {
				m.Bus, m.Facts = faults.Bus(m.Bus), faults.Facts(m.Facts)
				return m
			}
			inBubble(t, func(m *mesh) {
				m.coordinator("c1")
				m.node("n1", between, "source", "sink")
				m.node("n2", between, "source", "sink")
				m.submit(shop)
				stop := m.watchTarget()
				m.await(committed(10))
				faults.Stop()
				faults.Wait()
				m.drain()
				stop()
			})
			if len(faults.Fired()) < 3 {
				t.Errorf("faults: %v", faults.Fired())
			}
		})
	}
}

// ⚑ Watches only make it faster: a node whose watch never says anything does everything by reading again.
func TestSilentWatches(t *testing.T) {
	silent := func(m node.Mesh) node.Mesh {
		m.Heads = deaf{m.Heads}
		return m
	}
	inBubble(t, func(m *mesh) {
		m.coordinator("c1")
		m.node("n1", silent, "source", "sink")
		m.submit(shop)
		m.await(committed(5))
		m.drain()
	})
}

// deaf is a watch that never says anything.
type deaf struct{ known }

// known has another name than the method Heads, so that it can be embedded.
type known interface{ node.Heads }

func (deaf) Watch(context.Context) (<-chan bus.Update, func()) { return nil, func() {} }

// ⚑ The loss of the data stream is noticed, is not taken for being fenced, and costs nothing but a new attempt.
func TestDataStreamIsLost(t *testing.T) {
	for name, lose := range map[string]func(m *mesh, h *job.Head) error{
		"deleted": func(m *mesh, h *job.Head) error { return m.conn.DeleteData(m.ctx, h.Job, h.Fence) },
		"emptied": func(m *mesh, h *job.Head) error {
			if err := m.conn.DeleteData(m.ctx, h.Job, h.Fence); err != nil {
				return err
			}
			return m.conn.CreateData(m.ctx, bus.DataConfig{Job: h.Job, Fence: h.Fence, MaxMsgsPerSubject: 72})
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(m *mesh) {
				m.coordinator("c1")
				m.node("n1", nil, "source", "sink")
				m.submit(shop)
				h := m.await(committed(3))
				if err := lose(m, h); err != nil {
					t.Fatal(err)
				}
				lost := time.Now()
				m.await("a new attempt", func(n *job.Head) bool { return n.Fence > h.Fence && n.Committed > h.Committed })
				t.Logf("committed again after %s", time.Since(lost))
				m.drain()
			})
		})
	}
}

// N1: a node that cannot reach the bus for longer than its lease has stopped its subtasks when it is back, and comes
// back as another incarnation.
func TestNodeIsCutOff(t *testing.T) {
	for name, cut := range map[string]func(l *meshtest.Link){
		"requests held": func(l *meshtest.Link) { l.HoldRequests() },
		"replies held":  func(l *meshtest.Link) { l.HoldReplies() },
		"both held":     func(l *meshtest.Link) { l.HoldRequests(); l.HoldReplies() },
		"reconnects":    func(l *meshtest.Link) { l.Cut() },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(m *mesh) {
				m.coordinator("c1")
				link := meshtest.NewLink(m.srv)
				m.nodeOn(link, "n1", nil, "source", "sink")
				m.submit(shop)
				stop := m.watchTarget()
				h := m.await(committed(3))
				cut(link)
				<-time.After(10 * time.Second)
				link.Release()
				m.await("a new attempt", func(n *job.Head) bool { return n.Committed > h.Committed+3 })
				m.drain()
				stop()
			})
		})
	}
}

// A target that violates a constraint fails the job with the code; after the repair it goes on from its durable epoch.
func TestConstraintFailsTheJobUntilItIsResumed(t *testing.T) {
	inBubble(t, func(m *mesh) {
		m.coordinator("c1")
		m.node("n1", nil, "source", "sink")
		m.submit(shop)
		m.await(committed(3))
		m.target.Refuse("gen.t1")
		h := m.await("the failure", func(h *job.Head) bool { return h.Phase == job.Failed })
		if fault.Code(h.Reason.Code) != fault.SinkConstraint {
			t.Errorf("failed with %+v", h.Reason)
		}
		m.target.Refuse("")
		m.ask(func(i job.Intent) job.Intent { return i.Resumed("r3", time.Now()) })
		m.await("a run", func(n *job.Head) bool { return n.Phase == job.Running && n.Committed > h.Committed })
		m.drain()
	})
}

// A sink that is down for an hour stops nothing else: same attempt, and exact afterwards. That the source has come to its
// end meanwhile sets no deadline.
func TestSinkIsDownForAnHour(t *testing.T) {
	inBubble(t, func(m *mesh) {
		m.coordinator("c1")
		m.node("n1", nil, "source", "sink")
		m.submit(bounded)
		h := m.await(committed(3))
		if err := m.health.Err(); err != nil {
			t.Errorf("not ready while all is well: %v", err)
		}
		m.target.SetDown(true)
		<-time.After(time.Hour)
		// Readiness is red when replication is dead, not only the process.
		if err := m.health.Err(); err == nil || !strings.Contains(err.Error(), string(fault.SinkUnreachable)) {
			t.Errorf("an hour without target: readiness is %v", err)
		}
		m.target.SetDown(false)
		n := m.await("the end", func(n *job.Head) bool { return n.Phase == job.Finished })
		if n.Fence != h.Fence {
			t.Errorf("attempt %d became %d: %+v", h.Fence, n.Fence, n.Reason)
		}
		<-time.After(2 * time.Second)
		if err := m.health.Err(); err != nil {
			t.Errorf("not ready although the target is back: %v", err)
		}
		m.judge(n)
	})
}

// Coordinators die at any moment; the attempt goes on.
func TestLeadersDie(t *testing.T) {
	inBubble(t, func(m *mesh) {
		kill := m.coordinator("c1")
		m.node("n1", nil, "source", "sink")
		m.submit(shop)
		stop := m.watchTarget()
		h := m.await(committed(3))
		for i := range 5 {
			<-time.After(time.Duration(37*i) * time.Millisecond)
			next := m.coordinator(fmt.Sprint("c", i+2))
			kill()
			kill = next
			h2 := m.await("progress", func(n *job.Head) bool { return n.Committed > h.Committed+2 })
			if h2.Fence != h.Fence {
				t.Errorf("leader %d restarted the attempt: %+v", i, h2.Reason)
			}
			h = h2
		}
		m.drain()
		stop()
	})
}
