package coordinator

import (
	"context"
	"encoding/json"
	"fmt"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/envelope"
	"weir.dev/weir/pkg/job"
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
		name, event, err := decodeFact(u.Entry)
		if err != nil {
			l.metrics.refuse(ctx, name)
			l.log.WarnContext(ctx, "fact cannot be read", "subject", u.Entry.Key, telemetry.Err(err))
			continue
		}
		l.tell(ctx, name, event)
	}
}

// decodeFact reads a fact and checks that it says of itself what its subject says.
func decodeFact(e bus.Entry) (name string, event exec.Answer, err error) {
	name, f, kind, subtask, err := bus.ParseAckSubject(e.Key)
	if err != nil {
		return "", nil, err
	}
	same := true
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
		return name, nil, fmt.Errorf("unknown kind %q", kind)
	}
	if err != nil {
		return name, nil, err
	}
	if !same {
		return name, nil, fmt.Errorf("it contradicts its subject")
	}
	return name, event, nil
}
