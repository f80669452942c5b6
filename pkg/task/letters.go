package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/spec"
)

// letters are the dead letters of one sink, written by one attempt. It is owned by the committer's loop.
type letters struct {
	bus       Letters
	job, sink string
	own       fence.Token
	claim     uint64
}

// letters is nil when the sink has no dlq.
func (s *Subtask) letters(k spec.Sink) *letters {
	if !k.DLQ {
		return nil
	}
	return &letters{bus: s.cfg.Letters, job: s.identity.Job, sink: k.Name, own: s.identity.Fence}
}

// hold keeps older attempts from writing letters from now on.
func (l *letters) hold(ctx context.Context) error {
	var err error
	l.claim, err = l.bus.ClaimDLQ(ctx, l.job, l.sink, l.own)
	return l.explain(err)
}

// Stored implements sink.DeadLetters.
func (l *letters) Stored(ctx context.Context, e epoch.ID) ([]sink.LetterID, error) {
	subjects, err := l.bus.EpochLetters(ctx, l.job, l.sink, e)
	if err != nil {
		return nil, l.explain(err)
	}
	ids := make([]sink.LetterID, len(subjects))
	for i, s := range subjects {
		_, _, table, at, index, err := bus.ParseDLQSubject(s)
		if err != nil {
			return nil, err
		}
		ids[i] = sink.LetterID{Table: rows.TableID(table), Epoch: at, Index: index}
	}
	return ids, nil
}

// Put implements sink.DeadLetters.
func (l *letters) Put(ctx context.Context, d sink.Letter) error {
	data, err := json.Marshal(d)
	if err != nil {
		return fmt.Errorf("encode a dead letter of %s: %w", d.Table, err)
	}
	subject := bus.DLQSubject(l.job, l.sink, string(d.Table), d.Epoch, d.Index)
	err = l.bus.PutDeadLetter(ctx, subject, l.claim, bus.LetterHeader(string(d.Fault.Code), d.Op, d.Life), data)
	if errors.Is(err, bus.ErrConflict) {
		// Either a newer attempt has claimed, which hold finds, or another write was under way and this one may be repeated.
		if held := l.hold(ctx); held != nil {
			return held
		}
		return fault.Mark(fault.Transient, err)
	}
	if errors.Is(err, bus.ErrTooBig) {
		return fault.Wrap(err, fault.SinkDLQRow, "sinks."+l.sink+", table "+string(d.Table), fmt.Sprintf("the letter has %d bytes", len(data)), "job", l.job)
	}
	return l.explain(err)
}

func (l *letters) explain(err error) error {
	if errors.Is(err, bus.ErrFull) {
		return fault.Wrap(err, fault.SinkDLQFull, "sinks."+l.sink, "the stream takes no more",
			"job", l.job, "stream", bus.DLQStream(l.job))
	}
	return err
}
