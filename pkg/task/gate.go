package task

import (
	"fmt"

	"weir.dev/weir/pkg/envelope"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/plan"
)

// Admission is what a subtask does with a message.
type Admission uint8

const (
	// Accept: it is the next message of its channel.
	Accept Admission = iota + 1
	// Older: a zombie's message. Acknowledge, count, forget.
	Older
	// Newer: it belongs to an attempt this subtask does not know. Do not acknowledge; read the head record again.
	Newer
	// Repeat: the same message once more. Acknowledge, count, forget.
	Repeat
)

// remembered is how many messages of a channel a repeat is recognised in: more than any window holds.
const remembered = 128

// Gate lets in what belongs to this attempt, in order and once. It is a passive value: it decides and counts, the loop
// acts.
type Gate struct {
	own    fence.Token
	inputs map[string]*input
	order  []*input
}

// input is the receiving end of one channel.
type input struct {
	channel  plan.Channel
	feedback bool
	// index numbers the data inputs for epoch.Align; feedback inputs have none.
	index  int
	meter  *epoch.Meter
	next   uint64
	recent [remembered]uint64
	// cut is the tally when the barrier of epoch arrived.
	epoch epoch.ID
	cut   epoch.Tally
}

// NewGate makes the gate of a subtask. subject names the bus subject of a channel.
func NewGate(own fence.Token, data, feedback []plan.Channel, subject func(plan.Channel) string) *Gate {
	g := &Gate{own: own, inputs: make(map[string]*input, len(data)+len(feedback))}
	add := func(c plan.Channel, back bool) {
		in := &input{channel: c, feedback: back, index: len(g.order), meter: epoch.NewMeter(c), next: 1}
		g.inputs[subject(c)] = in
		if !back {
			g.order = append(g.order, in)
		}
	}
	for _, c := range data {
		add(c, false)
	}
	for _, c := range feedback {
		add(c, true)
	}
	return g
}

// Passage is a message that was judged.
type Passage struct {
	Admission Admission
	Envelope  envelope.Envelope
	Channel   plan.Channel
	// Feedback marks the way back from readers to their enumerator.
	Feedback bool
	// Input numbers the data channel, from 0.
	Input int
}

// Admit judges a message. An error ends the attempt: a number is missing, a repeat differs from what was there, or the
// message cannot be read.
func (g *Gate) Admit(subject string, header map[string][]string, data []byte) (Passage, error) {
	e, err := envelope.Parse(header, data)
	if err != nil {
		return Passage{}, fault.Wrap(err, fault.BusCodec, subject, err.Error())
	}
	p := Passage{Envelope: e}
	switch fence.Judge(g.own, e.Fence) {
	case fence.Older:
		p.Admission = Older
		return p, nil
	case fence.Newer:
		p.Admission = Newer
		return p, nil
	case fence.Same:
	}
	in, ok := g.inputs[subject]
	if !ok || !e.Kind.OnChannel() {
		return p, fault.New(fault.BusCodec, subject, fmt.Sprintf("a %s message does not belong here", e.Kind))
	}
	p.Channel, p.Feedback, p.Input = in.channel, in.feedback, in.index
	body := e.Payload
	if e.Ref != "" {
		body = []byte(e.Ref)
	}
	digest := in.meter.Digest(e.Seq, string(e.Kind), e.Table, body)
	switch {
	case e.Seq > in.next:
		return p, lost(in.channel, fmt.Sprintf("message %d is missing, %d has come", in.next, e.Seq))
	case e.Seq < in.next:
		if in.next-e.Seq > remembered || in.recent[e.Seq%remembered] != digest {
			return p, lost(in.channel, fmt.Sprintf("message %d came again with another content or too late", e.Seq))
		}
		p.Admission = Repeat
		return p, nil
	}
	if e.Kind == envelope.Barrier && e.Epoch > in.epoch {
		in.epoch, in.cut = e.Epoch, in.meter.Total()
	}
	in.meter.Count(digest, e.RowCount)
	in.recent[e.Seq%remembered] = digest
	in.next++
	p.Admission = Accept
	return p, nil
}

func lost(c plan.Channel, why string) error {
	return fault.New(fault.JobDataLost, "channel "+c.String(), why)
}

// Cut is the tally of every data channel at the barrier of an epoch; a channel whose newest barrier is another one is
// left out.
func (g *Gate) Cut(n epoch.ID) map[plan.Channel]epoch.Tally {
	cut := make(map[plan.Channel]epoch.Tally, len(g.order))
	for _, in := range g.order {
		if in.epoch == n {
			cut[in.channel] = in.cut
		}
	}
	return cut
}
