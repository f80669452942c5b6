package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"weir.dev/weir/pkg/envelope"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/telemetry"
)

// Pauses between attempts of a commit that fails for a while.
const (
	retrySoon = 100 * time.Millisecond
	retryLate = 30 * time.Second
)

// committer is the state of a committer's loop.
type committer struct {
	s      *Subtask
	c      sink.Committer
	ledger epoch.Ref
	// blank says that the sink keeps no ledger; floor is the epoch up to which everything was committed before.
	blank bool
	floor epoch.ID
	// done is the newest durable epoch whose chain has been committed.
	done epoch.ID
}

// commit is the loop of a committer: claim the ledger, say READY, and make durable epochs visible one by one.
func (s *Subtask) commit(ctx context.Context) error {
	cfg, err := s.sinkConfig()
	if err != nil {
		return err
	}
	dead := s.letters(cfg.Sink)
	if dead != nil {
		cfg.Letters = dead
	}
	k := &committer{s: s}
	var row job.LedgerRow
	err = k.persist(ctx, 0, func(ctx context.Context) error {
		if k.c == nil {
			c, err := s.cfg.Sink.OpenCommitter(ctx, cfg)
			if err != nil {
				return fmt.Errorf("open committer: %w", err)
			}
			k.c = c
		}
		row, err = k.c.Claim(ctx)
		if err != nil {
			return fmt.Errorf("claim ledger: %w", err)
		}
		// After the ledger: what an older attempt writes until now, it has not committed, and this one finds.
		if dead != nil {
			return dead.hold(ctx)
		}
		return nil
	})
	if k.c != nil {
		defer s.release("committer", k.c)
	}
	if err != nil {
		return err
	}
	k.ledger, k.blank = row.Ref, row.Life == ""
	if k.blank {
		s.ready(nil)
	} else {
		s.ready(&row)
	}
	for {
		if _, err := s.look(); err != nil {
			return err
		}
		s.spans.flying(&s.orders.Head)
		if k.done == 0 {
			k.floor = s.orders.Head.Committed
		}
		if d := s.orders.Durable; d != nil && d.Epoch > k.done {
			if err := k.advance(ctx, d.Ref); err != nil {
				return err
			}
			continue
		}
		if err := s.wait(ctx, 0); err != nil {
			return err
		}
	}
}

// advance commits everything between the ledger and a durable epoch and tells the coordinator.
func (k *committer) advance(ctx context.Context, durable epoch.Ref) error {
	s, heard := k.s, time.Now()
	todo, err := k.find(ctx, durable)
	if err != nil {
		return err
	}
	for _, c := range todo {
		if err := k.apply(ctx, c); err != nil {
			return err
		}
	}
	k.done = durable.Epoch
	s.told = durable.Epoch
	s.cfg.Board.Open(envelope.Committed, durable.Epoch, job.CommittedFact{
		Fence: s.identity.Fence, Subtask: s.cfg.Subtask, Epoch: durable.Epoch, Took: max(1, time.Since(heard)),
	})
	return nil
}

// find walks the chain back from a durable epoch to the ledger's row.
func (k *committer) find(ctx context.Context, durable epoch.Ref) ([]sink.Commit, error) {
	ch := chain{sink: k.s.vertex.Name, ledger: k.ledger, blank: k.blank, floor: max(k.floor, k.done)}
	ref, more := ch.next(durable)
	for more {
		var m *epoch.Manifest
		err := k.persist(ctx, k.done, func(ctx context.Context) (err error) {
			m, err = k.s.cfg.Records.Manifest(ctx, k.s.identity.Job, ref)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("read manifest of epoch %s: %w", ref.Epoch, err)
		}
		if ref, more, err = ch.add(ref, m); err != nil {
			return nil, err
		}
	}
	return ch.todo, nil
}

// apply commits one epoch, however long it takes.
func (k *committer) apply(ctx context.Context, c sink.Commit) (err error) {
	s := k.s
	ctx, span := s.spans.start(s.spans.of(ctx, c.Ref.Epoch), "commit", c.Ref.Epoch)
	defer func() { finish(span, err) }()
	return k.persist(ctx, k.done, func(ctx context.Context) error {
		if err := s.permitted(ctx, c.Ref.Epoch); err != nil {
			return err
		}
		res, err := k.c.Commit(ctx, c)
		if err != nil {
			return fmt.Errorf("commit epoch %s: %w", c.Ref.Epoch, err)
		}
		if res.Applied {
			s.counters.Commits.Add(1)
			s.counters.Rows.Add(res.Rows)
			s.counters.Dead.Add(res.Dead)
		}
		k.ledger = c.Ref
		return nil
	})
}

// permitted reads the head record afresh: the committer may apply epoch e only while the record of its own fence names a
// durable epoch at or after it (T5).
func (s *Subtask) permitted(ctx context.Context, e epoch.ID) error {
	h, err := s.cfg.Records.Head(ctx, s.identity.Job)
	if err != nil {
		return fault.Mark(fault.Transient, fmt.Errorf("read head before commit of epoch %s: %w", e, err))
	}
	switch {
	case h == nil:
		return fenced(s.identity.Fence, 0)
	case h.Fence != s.identity.Fence || h.Life != s.identity.Life:
		return fenced(s.identity.Fence, h.Fence)
	case h.Durable == nil || h.Durable.Epoch < e:
		return fmt.Errorf("I5: epoch %s is to be committed and the head record does not name it as durable", e)
	}
	return nil
}

// persist repeats an operation for as long as it fails for a while; attempt and fence stay. The trouble is told, with the
// time since when. committed is the epoch that has been applied before.
func (k *committer) persist(ctx context.Context, committed epoch.ID, op func(context.Context) error) error {
	s := k.s
	pause, since := retrySoon, time.Time{}
	for {
		err := op(ctx)
		if err == nil {
			if !since.IsZero() {
				s.waiting.Store(nil)
				s.cfg.Board.Close(envelope.Committed)
			}
			return nil
		}
		if ctx.Err() != nil || fault.ClassOf(err) != fault.Transient {
			return err
		}
		if since.IsZero() {
			since = time.Now().UTC()
			s.cfg.Logger.WarnContext(ctx, "commit is being retried", telemetry.KeyError, err)
		}
		s.waiting.Store(&Wait{Code: fault.CodeOf(err), Since: since})
		s.counters.Retries.Add(1)
		s.meters.retry(ctx)
		s.trouble(committed, err, since)
		if err := sleep(ctx, pause); err != nil {
			return err
		}
		pause = min(2*pause, retryLate)
	}
}

func (s *Subtask) trouble(committed epoch.ID, err error, since time.Time) {
	body, merr := json.Marshal(fault.Of(err))
	if merr != nil {
		body, _ = json.Marshal(errors.Join(err, merr).Error())
	}
	s.told = 0
	s.cfg.Board.Open(envelope.Committed, committed, job.CommittedFact{
		Fence: s.identity.Fence, Subtask: s.cfg.Subtask, Epoch: committed, Waiting: &job.Trouble{Fault: body, Since: since},
	})
}
