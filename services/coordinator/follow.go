package coordinator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/envelope"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/registry"
	"weir.dev/weir/pkg/telemetry"
	"weir.dev/weir/services/coordinator/internal/exec"
)

// followIntents follows what users want.
func (l *leader) followIntents(ctx context.Context) {
	w := l.reg.WatchIntents(ctx)
	defer w.Close()
	for u := range w.Updates() {
		if u.Kind != bus.Put {
			continue
		}
		name, _, ok := registry.JobOf(u.Entry.Key)
		i, err := registry.DecodeIntent(u.Entry)
		if err != nil || !ok || i.Job != name {
			l.log.ErrorContext(ctx, "intent cannot be read", "key", u.Entry.Key, "error", fmt.Sprint(err))
			continue
		}
		l.post(ctx, func(ctx context.Context) {
			if s := l.seat(ctx, name); s.state.Intent != nil && *s.state.Intent == i {
				return // told before; a watch that starts again tells everything
			}
			l.step(ctx, name, func(m job.Moment) job.Event {
				return job.IntentRead{Moment: m, Intent: i, Life: randomID()}
			})
		})
	}
}

// followFacts follows what subtasks say. Every open fact is repeated by its owner, so nothing is lost with a watch.
func (l *leader) followFacts(ctx context.Context) {
	w := l.conn.WatchFacts(ctx, "*")
	defer w.Close()
	for u := range w.Updates() {
		if u.Kind != bus.Put {
			continue
		}
		x, err := decodeFact(u.Entry)
		if err != nil {
			l.metrics.refuse(ctx, x.job)
			l.log.WarnContext(ctx, "fact cannot be read", "subject", u.Entry.Key, telemetry.KeyError, telemetry.ErrorValue(err))
			continue
		}
		l.post(ctx, func(ctx context.Context) { l.hear(ctx, u.Entry.Key, x) })
	}
}

// hear takes a fact in. One of an older attempt is a zombie's: it is counted, and people are told once.
func (l *leader) hear(ctx context.Context, subject string, x fact) {
	s := l.seat(ctx, x.job)
	h := s.state.Head
	if h == nil || x.fence >= h.Fence {
		l.feed(ctx, x.job, s, x.event)
		return
	}
	l.metrics.refuse(ctx, x.job)
	if s.refused[subject] {
		return
	}
	if s.refused == nil {
		s.refused = make(map[string]bool)
	}
	s.refused[subject] = true
	l.announce(ctx, job.Notice{
		Kind: job.NoticeRefused, Job: x.job, Life: h.Life, Phase: h.Phase, Term: l.term, Fence: x.fence, At: time.Now().UTC(),
		Reason: job.Reason{Code: string(fault.JobFenced), Subtask: &x.subtask, Text: x.kind + " of an older attempt"},
	})
}

// fact is what a subtask says, with what its subject says about it.
type fact struct {
	job     string
	fence   fence.Token
	kind    string
	subtask plan.SubtaskID
	event   exec.Answer
}

// decodeFact reads a fact and checks that it says of itself what its subject says.
func decodeFact(e bus.Entry) (fact, error) {
	name, f, kind, subtask, err := bus.ParseAckSubject(e.Key)
	if err != nil {
		return fact{}, err
	}
	all := fact{job: name, fence: f, kind: kind, subtask: subtask}
	var event exec.Answer
	var same bool
	switch kind {
	case string(envelope.Ready):
		var x job.ReadyFact
		err = json.Unmarshal(e.Value, &x)
		same = x.Fence == f && x.Subtask == subtask
		event = func(m job.Moment) job.Event { return job.ReadySeen{Moment: m, Fact: x} }
	case string(envelope.Ack):
		var x job.AckFact
		err = json.Unmarshal(e.Value, &x)
		same = x.Fence == f && x.Subtask == subtask
		event = func(m job.Moment) job.Event { return job.AckSeen{Moment: m, Fact: x} }
	case string(envelope.Committed):
		var x job.CommittedFact
		err = json.Unmarshal(e.Value, &x)
		same = x.Fence == f && x.Subtask == subtask
		event = func(m job.Moment) job.Event { return job.CommitSeen{Moment: m, Fact: x} }
	case string(envelope.Input):
		var x job.InputFact
		err = json.Unmarshal(e.Value, &x)
		same = x.Fence == f && x.Subtask == subtask
		event = func(m job.Moment) job.Event { return job.InputSeen{Moment: m, Fact: x} }
	case string(envelope.Drained):
		var x job.DrainedFact
		err = json.Unmarshal(e.Value, &x)
		same = x.Fence == f && x.Subtask == subtask
		event = func(m job.Moment) job.Event { return job.DrainedSeen{Moment: m, Fact: x} }
	case string(envelope.Failed):
		var x job.FailedFact
		err = json.Unmarshal(e.Value, &x)
		same = x.Fence == f && x.Subtask == subtask
		event = func(m job.Moment) job.Event { return job.FailureSeen{Moment: m, Fact: x} }
	case job.ReleasedKind:
		var x job.ReleasedFact
		err = json.Unmarshal(e.Value, &x)
		same = x.Fence == f
		event = func(m job.Moment) job.Event { return job.ReleaseSeen{Moment: m, Fact: x} }
	default:
		return all, fmt.Errorf("unknown kind %q", kind)
	}
	if err != nil {
		return all, err
	}
	if !same {
		return all, errors.New("it contradicts its subject")
	}
	all.event = event
	return all, nil
}
