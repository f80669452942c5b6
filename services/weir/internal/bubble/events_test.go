package bubble

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/contract"
	"weir.dev/weir/pkg/envelope"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/meshtest"
	"weir.dev/weir/pkg/node"
	"weir.dev/weir/pkg/plan"
)

// ⚑ Whatever happens to a job is on the event stream, in its order and in the form of its schema: every kind and every phase of
// the schema is provoked here and read back.
func TestEverythingThatHappensIsAnEvent(t *testing.T) {
	inBubble(t, func(m *mesh) {
		faults := meshtest.NewFaults(meshtest.FaultPlan{Seed: 1, DeclineAck: 1})
		declined := func(n node.Mesh) node.Mesh {
			n.Facts = faults.Facts(n.Facts)
			return n
		}
		kill := m.coordinator("c1")
		m.node("n1", declined, "source", "sink")
		heard := m.listen()
		m.submit(shop)
		m.await("skipped epochs", func(h *job.Head) bool { return h.Skipped >= 3 })
		faults.Stop()
		h := m.await(committed(1))

		// A lost attempt, and a word of it that comes late.
		if err := m.conn.DeleteData(m.ctx, h.Job, h.Fence); err != nil {
			t.Fatal(err)
		}
		zombie := job.InputFact{Fence: h.Fence, Subtask: plan.SubtaskID{Vertex: "gen"}}
		m.await("a new attempt", func(n *job.Head) bool { return n.Fence > h.Fence && n.Phase == job.Running })
		body, err := json.Marshal(zombie)
		if err == nil {
			err = m.conn.PutFact(m.ctx, bus.AckSubject(h.Job, h.Fence, string(envelope.Input), zombie.Subtask), nil, body)
		}
		if err != nil {
			t.Fatal(err)
		}

		kill()
		m.coordinator("c2")
		m.await("the head of another leader", func(n *job.Head) bool { return n.Term > h.Term })
		m.target.Refuse("gen.t1")
		m.await("the failure", func(h *job.Head) bool { return h.Phase == job.Failed })
		m.target.Refuse("")
		m.ask(func(i job.Intent) job.Intent { return i.Resumed("r3", time.Now()) })
		m.await(committed(uint64(h.Committed) + 1))

		m.ask(func(i job.Intent) job.Intent { return i.Savepointed("before", "r8", time.Now()) })
		m.await("a savepoint", func(h *job.Head) bool { return len(h.Savepoints) == 1 })
		m.ask(func(i job.Intent) job.Intent { return i.Unsavepointed("before", "r9", time.Now()) })
		m.await("no savepoint", func(h *job.Head) bool { return len(h.Savepoints) == 0 })

		until := func(p job.Phase) { m.await(string(p), func(h *job.Head) bool { return h.Phase == p }) }
		m.ask(func(i job.Intent) job.Intent { return i.Suspended("r4", time.Now()) })
		until(job.Suspended)
		m.ask(func(i job.Intent) job.Intent { return i.Resumed("r5", time.Now()) })
		until(job.Running)
		m.drain()

		// Another life, which the target refuses because of the one before.
		m.submit(shop)
		until(job.Failed)
		m.ask(func(i job.Intent) job.Intent { return i.Cancelled("r6", time.Now()) })
		until(job.Cancelled)
		m.ask(func(i job.Intent) job.Intent { return i.Removed("r7", time.Now()) })
		until(job.Deleted)
		judgeEvents(t, heard(), m.spec.Name)
	})
}

// listen records events as they come; the function that it returns ends it. In virtual time they cannot be read later: the
// server's own clock of ages runs outside of the bubble, and takes away what is of the bubble's year.
func (m *mesh) listen() (heard func() []bus.Entry) {
	w := m.conn.WatchEvents(m.ctx, "*", time.Time{})
	all := make(chan []bus.Entry, 1)
	m.work.Go(func() {
		var es []bus.Entry
		for u := range w.Updates() {
			if u.Kind == bus.Put {
				es = append(es, u.Entry)
			}
		}
		all <- es
	})
	return func() []bus.Entry {
		<-time.After(time.Second) // the last of them is written behind the head that the test has waited for
		w.Close()
		return <-all
	}
}

// judgeEvents holds events against the schema and against what has been done to the job.
func judgeEvents(t *testing.T, all []bus.Entry, name string) {
	t.Helper()
	schemas, err := contract.Load(schemaDir)
	if err != nil {
		t.Fatal(err)
	}
	open := kindsOfEvents(t)
	var phases []job.Phase
	var last job.Notice
	for _, e := range all {
		if err := schemas.Validate("event", e.Value); err != nil {
			t.Errorf("%s: %v\n%s", e.Key, err, e.Value)
		}
		var n job.Notice
		if err := json.Unmarshal(e.Value, &n); err != nil {
			t.Fatal(err)
		}
		if e.Key != bus.EventSubject(name, string(n.Kind)) || n.Job != name || n.Reason.Code == "" {
			t.Errorf("%s holds %+v", e.Key, n)
		}
		if n.At.Before(last.At) || n.Term < last.Term {
			t.Errorf("%+v comes behind %+v", n, last)
		}
		last = n
		open = slices.DeleteFunc(open, func(k job.NoticeKind) bool { return k == n.Kind })
		switch n.Kind {
		case job.NoticeRecovery, job.NoticeState:
			if len(phases) == 0 || phases[len(phases)-1] != n.Phase {
				phases = append(phases, n.Phase)
			}
		case job.NoticeRefused:
			if n.Reason.Code != string(fault.JobFenced) || n.Reason.Subtask == nil {
				t.Errorf("refused without saying whom: %+v", n)
			}
		case job.NoticeSkipped, job.NoticeSavepoint, job.NoticeAlarm:
			if n.Epoch == 0 || n.Reason.Text == "" {
				t.Errorf("told without what and why: %+v", n)
			}
		case job.NoticeTakeover:
		}
	}
	if len(open) > 0 {
		t.Errorf("never on the bus: %v", open)
	}
	want := []job.Phase{
		job.Created, job.Starting, job.Running, job.Starting, job.Running, job.Failed,
		job.Starting, job.Running, job.Suspending, job.Suspended, job.Starting, job.Running, job.Draining, job.Finished,
		job.Created, job.Starting, job.Failed, job.Cancelled, job.Deleted,
	}
	if !slices.Equal(phases, want) {
		t.Errorf("phases %v, want %v", phases, want)
	}
	for _, p := range phasesOfJobs(t) {
		if !slices.Contains(phases, p) {
			t.Errorf("%s is never on the bus", p)
		}
	}
}

// phasesOfJobs lists the phases that the schema names.
func phasesOfJobs(t *testing.T) []job.Phase {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(schemaDir, "common.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var s struct {
		Defs struct {
			Phase struct{ Enum []job.Phase }
		} `json:"$defs"`
	}
	if err := json.Unmarshal(b, &s); err != nil || len(s.Defs.Phase.Enum) == 0 {
		t.Fatalf("phases of the schema: %v, %v", s, err)
	}
	return s.Defs.Phase.Enum
}

var schemaDir = filepath.Join("..", "..", "..", "..", "schemas")

// kindsOfEvents lists the kinds that the schema names.
func kindsOfEvents(t *testing.T) []job.NoticeKind {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(schemaDir, "event.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var s struct {
		Properties struct {
			Kind struct{ Enum []job.NoticeKind }
		}
	}
	if err := json.Unmarshal(b, &s); err != nil || len(s.Properties.Kind.Enum) == 0 {
		t.Fatalf("kinds of the schema: %v, %v", s, err)
	}
	return s.Properties.Kind.Enum
}
