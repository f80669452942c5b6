package job

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/position"
)

// observe lets a process take in a version of the head and do everything it wants.
func (w *world) observe(i, version int) {
	p := &w.procs[i]
	p.version = version
	h := w.heads[version-1]
	pl := w.place(i)
	for range 8 {
		todo := Want(&h, Self{Node: pl.Node, Incarnation: pl.Incarnation}, p.held)
		if len(todo) == 0 {
			return
		}
		for _, a := range todo {
			w.act(i, &h, a)
		}
	}
	panic("process does not come to rest")
}

func (w *world) act(i int, h *Head, a Action) {
	p := &w.procs[i]
	switch a := a.(type) {
	case Stop:
		p.held, p.hosts = Held{Releasing: p.held.Releasing}, nil
	case ReadPlan:
		p.held.Fence, p.held.Plan = h.Fence, w.plans[a.Ref.Key]
	case Start:
		p.held.Started, p.hosts = true, a.Subtasks
		p.rows, p.barriers, p.staged, p.position = 0, 0, nil, 0
		if a.Restore != nil {
			p.restored, p.passed = a.Restore.Epoch, a.Restore.Epoch
			p.position, _ = strconv.Atoi(w.links[a.Restore.Ref].Subtasks[idReader].Position.Fields["n"])
		}
		for _, id := range a.Subtasks {
			r := ReadyFact{Fence: a.Fence, Subtask: id, Incarnation: w.place(i).Incarnation}
			if id == idCommit {
				if w.target.row.Fence > a.Fence {
					w.target.refused++
					continue
				}
				w.target.row.Life, w.target.row.Fence = h.Life, a.Fence
				row := w.target.row
				r.Ledger = &row
			}
			w.say("ready "+id.String(), ReadySeen{Fact: r})
		}
	case Emit:
		p.held.Emitting = true
	case Drain:
		p.held.Draining = true
		if i == 0 {
			w.say("drained "+idReader.String(), DrainedSeen{Fact: DrainedFact{Fence: a.Fence, Subtask: idReader}})
		}
	case Barrier:
		p.held.Barrier = a.Epoch
		if i == 0 {
			w.inject(p, a)
		}
	case CommitUpTo:
		p.held.Durable = a.Durable.Epoch
		p.staged = slices.DeleteFunc(p.staged, func(s stagedP) bool { return s.Epoch <= a.Durable.Epoch })
		if slices.Contains(p.hosts, idCommit) {
			w.commit(a)
		}
	case Confirm:
		p.held.Committed = a.Epoch
	case DropExternal:
		p.held.Releasing = a.Request
		w.say("released", ReleaseSeen{Fact: ReleasedFact{Fence: a.Fence, Node: w.place(i).Node, Request: a.Request}})
	}
}

// inject is the source's side of an epoch: the cut is exclusive, the row before the barrier belongs to the epoch.
func (w *world) inject(p *proc, a Barrier) {
	from := p.position
	if !p.held.Draining {
		p.position++
		p.rows++
	}
	te, td := epoch.Tally{Messages: uint64(p.barriers)}, epoch.Tally{Messages: uint64(p.rows), Rows: uint64(p.rows)}
	w.say("ack "+idEnum.String(), AckSeen{Fact: AckFact{
		Fence: a.Fence, Subtask: idEnum, Epoch: a.Epoch, Out: map[plan.Channel]epoch.Tally{chEnum: te},
	}})
	w.say("ack "+idReader.String(), AckSeen{Fact: AckFact{
		Fence: a.Fence, Subtask: idReader, Epoch: a.Epoch,
		Position: position.New(position.Generator, map[string]string{"n": fmt.Sprint(p.position)}),
		In:       map[plan.Channel]epoch.Tally{chEnum: te}, Out: map[plan.Channel]epoch.Tally{chData: td},
	}})
	w.channel = append(w.channel, parcel{fence: a.Fence, epoch: a.Epoch, from: from, to: p.position, rows: p.rows})
	p.barriers++
}

// receive is the sink's side: stage, then ack what no durable epoch is known to cover.
func (w *world) receive(decline bool) {
	x := w.channel[0]
	w.channel = w.channel[1:]
	at := slices.IndexFunc(w.procs[:], func(p proc) bool {
		return !p.dead && p.held.Fence == x.fence && slices.Contains(p.hosts, idWriter)
	})
	if at < 0 {
		return
	}
	p := &w.procs[at]
	if x.to > x.from {
		p.staged = append(p.staged, stagedP{Epoch: p.passed + 1, From: x.from, To: x.to})
	}
	p.rows += x.to - x.from
	p.passed = x.epoch
	ack := AckFact{
		Fence: x.fence, Subtask: idWriter, Epoch: x.epoch,
		In: map[plan.Channel]epoch.Tally{chData: {Messages: uint64(p.rows), Rows: uint64(p.rows)}},
	}
	if w.lost {
		// Rows were lost on the way: the writer has counted fewer.
		ack.In[chData] = epoch.Tally{}
	}
	if decline {
		ack.Declined = "told to"
	}
	for _, s := range p.staged {
		b, err := json.Marshal(s)
		if err != nil {
			panic(err)
		}
		ack.Staged = append(ack.Staged, epoch.Staged{Epoch: s.Epoch, Subtask: idWriter, Data: b, Rows: uint64(s.To - s.From)})
	}
	w.say("ack "+idWriter.String(), AckSeen{Fact: ack})
}

// commit applies every epoch on the chain after the ledger's, in order, each in one step with the ledger.
func (w *world) commit(a CommitUpTo) {
	t := &w.target
	for _, l := range w.chain(a.Durable.Ref, 0) {
		s := l.Manifest.Sinks["out"]
		switch {
		case t.row.Fence != a.Fence:
			t.refused++
			return
		case l.Ref.Epoch <= t.row.Ref.Epoch, len(s.Staged) == 0:
			continue
		case s.Prev != t.row.Ref:
			panic(fmt.Sprintf("ledger at %d, manifest %d has prev %d", t.row.Ref.Epoch, l.Ref.Epoch, s.Prev.Epoch))
		}
		for _, piece := range s.Staged {
			var r stagedP
			if err := json.Unmarshal(piece.Data, &r); err != nil {
				panic(err)
			}
			for n := r.From; n < r.To; n++ {
				t.rows = append(t.rows, n)
			}
		}
		t.row.Ref = l.Ref
	}
	w.say("committed "+idCommit.String(), CommitSeen{Fact: CommittedFact{Fence: a.Fence, Subtask: idCommit, Epoch: a.Durable.Epoch}})
}
