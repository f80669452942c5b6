package epoch

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"weir.dev/weir/pkg/plan"
)

// ErrUnbalanced says that the two ends of a channel, or the two sides of a vertex, counted differently: rows were lost
// or doubled on the way and the epoch must not become durable.
var ErrUnbalanced = errors.New("epoch does not balance")

// ErrIncomplete says that an ack lacks a part that the plan requires.
var ErrIncomplete = errors.New("epoch is incomplete")

// Cut is what the leader knows about an epoch besides the acks.
type Cut struct {
	Epoch     ID
	Kind      Kind
	Term      uint64
	Triggered time.Time
	Completed time.Time
}

// Build describes an epoch: it checks that every subtask of the plan that must answer has answered for this epoch and
// fence, that both ends of every channel and both sides of every vertex agree, and links the manifest to prev, the
// newest durable one (nil for the first of a life) with its reference. The same facts give the same manifest.
// Errors are ErrIncomplete or ErrUnbalanced, with the place and both values.
func Build(d *plan.Deployment, cut Cut, prev *Manifest, prevRef Ref, acks map[plan.SubtaskID]Ack) (*Manifest, error) {
	ackers := d.Ackers()
	for _, s := range ackers {
		switch a, ok := acks[s]; {
		case !ok:
			return nil, fmt.Errorf("%w: no ack of %s", ErrIncomplete, s)
		case a.Fence != d.Fence || a.Epoch != cut.Epoch || a.Subtask != s:
			return nil, fmt.Errorf("%w: ack of %s is for fence %d, epoch %d, subtask %s", ErrIncomplete, s, a.Fence, a.Epoch, a.Subtask)
		}
	}
	m := &Manifest{
		Version: ManifestVersion, Job: d.Job, Life: d.Life, Epoch: cut.Epoch, Kind: cut.Kind,
		Fence: d.Fence, Term: cut.Term, Plan: d.Fingerprint, Prev: prevRef,
		Triggered: cut.Triggered, Completed: cut.Completed,
		Subtasks: make(map[plan.SubtaskID]SubtaskState, len(ackers)),
	}
	for _, s := range ackers {
		a := acks[s]
		m.Subtasks[s] = SubtaskState{State: a.State, Position: a.Position, Nanos: a.Nanos}
		m.Torn = m.Torn || a.Torn
	}
	var err error
	if m.Channels, err = channels(d, prev, acks); err != nil {
		return nil, err
	}
	if err := balance(d, acks); err != nil {
		return nil, err
	}
	m.Sinks = sinks(d, prev, prevRef, acks)
	m.Attempt = attemptTables(d, acks)
	m.Tables = lifeTables(m, prev)
	return m, nil
}

// channels compares the ends of every channel and takes the difference to the previous manifest of the fence. The way
// back from readers to their enumerator is outside tallies.
func channels(d *plan.Deployment, prev *Manifest, acks map[plan.SubtaskID]Ack) (map[plan.Channel]ChannelTally, error) {
	all := make(map[plan.Channel]ChannelTally)
	for _, e := range d.Edges {
		if e.Feedback {
			continue
		}
		for _, c := range d.Channels(e) {
			sent, ok := acks[c.From].Out[c]
			if !ok {
				return nil, fmt.Errorf("%w: %s tells no tally of channel %s", ErrIncomplete, c.From, c)
			}
			got, ok := acks[c.To].In[c]
			if !ok {
				return nil, fmt.Errorf("%w: %s tells no tally of channel %s", ErrIncomplete, c.To, c)
			}
			if sent != got {
				return nil, fmt.Errorf("%w: channel %s: sent %d messages, %d rows, sum %016x; received %d messages, %d rows, sum %016x",
					ErrUnbalanced, c, sent.Messages, sent.Rows, sent.Hash, got.Messages, got.Rows, got.Hash)
			}
			t := ChannelTally{Total: sent, Delta: sent}
			if prev != nil && prev.Fence == d.Fence {
				before := prev.Channels[c].Total
				if sent.Messages < before.Messages || sent.Rows < before.Rows {
					return nil, fmt.Errorf("%w: channel %s: %d messages, %d rows, fewer than the %d and %d of epoch %d",
						ErrUnbalanced, c, sent.Messages, sent.Rows, before.Messages, before.Rows, prev.Epoch)
				}
				t.Delta = sent.Since(before)
			}
			all[c] = t
		}
	}
	return all, nil
}

// balance compares rows per table: across each vertex (what came in went out, was dropped or is dead) and, where inputs are
// aligned, between a vertex and those that feed it.
func balance(d *plan.Deployment, acks map[plan.SubtaskID]Ack) error {
	sums := make(map[plan.VertexID]map[string]Counts, len(d.Vertices))
	for _, v := range d.Vertices {
		sum := make(map[string]Counts)
		for i := range v.Parallelism {
			for table, n := range acks[plan.SubtaskID{Vertex: v.ID, Index: i}].Tables {
				sum[table] = sum[table].plus(n)
			}
		}
		sums[v.ID] = sum
	}
	for _, v := range d.Vertices {
		if v.Role != plan.Transform && v.Role != plan.Writer {
			continue
		}
		fed := make(map[string]uint64)
		for _, e := range d.Edges {
			if e.To == v.ID && !e.Feedback {
				for table, n := range sums[e.From] {
					fed[table] += n.Out
				}
			}
		}
		for _, table := range slices.Sorted(maps.Keys(sums[v.ID])) {
			n := sums[v.ID][table]
			if n.In != n.Out+n.Dropped+n.Dead {
				return fmt.Errorf("%w: %s took %d rows of %s; %d went on, %d were dropped, %d are dead",
					ErrUnbalanced, v.ID, n.In, table, n.Out, n.Dropped, n.Dead)
			}
			// Without alignment a writer has more at its cut than lies before the barriers of some channels.
			if n.In != fed[table] && d.Guarantee != plan.AtLeastOnce {
				return fmt.Errorf("%w: %s took %d rows of %s, %d were sent", ErrUnbalanced, v.ID, n.In, table, fed[table])
			}
			delete(fed, table)
		}
		for _, table := range slices.Sorted(maps.Keys(fed)) {
			if fed[table] != 0 && d.Guarantee != plan.AtLeastOnce {
				return fmt.Errorf("%w: %s took 0 rows of %s, %d were sent", ErrUnbalanced, v.ID, table, fed[table])
			}
		}
	}
	return nil
}

// sinks lists what each sink is to commit, writers in order and each writer's pieces as staged, and the manifest its
// ledger must be at.
//
// A writer names what it has staged until it knows the epoch that covers it to be durable; the barrier of the next epoch
// may reach it before that news does. What it staged before it passed the barrier of a durable epoch of this attempt is
// in that epoch's manifest, or in one before, and must not be named twice.
func sinks(d *plan.Deployment, prev *Manifest, prevRef Ref, acks map[plan.SubtaskID]Ack) map[string]SinkState {
	all := make(map[string]SinkState)
	for _, v := range d.Vertices {
		if v.Role != plan.Writer {
			continue
		}
		s := SinkState{Prev: prev.LedgerOf(v.Name, prevRef)}
		for i := range v.Parallelism {
			for _, p := range acks[plan.SubtaskID{Vertex: v.ID, Index: i}].Staged {
				if prev == nil || prev.Fence != d.Fence || p.Epoch > prev.Epoch {
					s.Staged = append(s.Staged, p)
				}
			}
		}
		all[v.Name] = s
	}
	return all
}

// LedgerOf is what the sink's ledger holds once this manifest, whose reference is ref, has been committed there: ref
// itself when the manifest stages something for the sink, else what the ledger held before. A nil manifest is the one
// before the first.
func (m *Manifest) LedgerOf(sink string, ref Ref) Ref {
	if m == nil {
		return Ref{}
	}
	s := m.Sinks[sink]
	if len(s.Staged) > 0 {
		return ref
	}
	return s.Prev
}

// attemptTables sums rows per table: In is what left the sources, the rest what became of it at the sinks.
func attemptTables(d *plan.Deployment, acks map[plan.SubtaskID]Ack) map[string]Counts {
	sum := make(map[string]Counts)
	for _, v := range d.Vertices {
		for i := range v.Parallelism {
			for table, n := range acks[plan.SubtaskID{Vertex: v.ID, Index: i}].Tables {
				switch v.Role {
				case plan.Reader:
					sum[table] = sum[table].plus(Counts{In: n.Out})
				case plan.Writer:
					sum[table] = sum[table].plus(Counts{Out: n.Out, Dropped: n.Dropped, Dead: n.Dead})
				case plan.Transform:
					sum[table] = sum[table].plus(Counts{Dropped: n.Dropped, Dead: n.Dead})
				case plan.Enumerator, plan.Committer:
				}
			}
		}
	}
	if len(sum) == 0 {
		return nil
	}
	return sum
}

// lifeTables adds what the attempt has done since the previous manifest to that manifest's totals.
func lifeTables(m, prev *Manifest) map[string]Counts {
	if prev == nil {
		return maps.Clone(m.Attempt)
	}
	sum := maps.Clone(prev.Tables)
	if sum == nil {
		sum = make(map[string]Counts)
	}
	for table, n := range m.Attempt {
		if prev.Fence == m.Fence {
			n = n.minus(prev.Attempt[table])
		}
		sum[table] = sum[table].plus(n)
	}
	if len(sum) == 0 {
		return nil
	}
	return sum
}

func (c Counts) plus(o Counts) Counts {
	return Counts{In: c.In + o.In, Out: c.Out + o.Out, Dropped: c.Dropped + o.Dropped, Dead: c.Dead + o.Dead}
}

func (c Counts) minus(o Counts) Counts {
	return Counts{In: c.In - o.In, Out: c.Out - o.Out, Dropped: c.Dropped - o.Dropped, Dead: c.Dead - o.Dead}
}
