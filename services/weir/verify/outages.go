package verify

import (
	"context"
	"errors"
	"fmt"
	"time"

	"weir.dev/weir/pkg/job"
	"weir.dev/weir/services/weir/verify/process"
)

func outages() []class {
	return []class{
		{name: "data-stream-deleted", trigger: "rows of an epoch are on their way", mode: byItself, run: dataStreamDeleted},
		{name: "bus-killed", trigger: "at a random phase of an epoch, under load", mode: byItself, run: busKilled},
		{
			name: "source-connection-cut", trigger: "in the middle of a transaction of 5,000 rows", mode: byItself,
			databases: true, run: sourceConnectionCut,
		},
		{
			name: "target-unreachable", trigger: "for as long as --outage says, under load", mode: byItself,
			databases: true, run: targetUnreachable,
		},
		{name: "slow-sink", trigger: "for 10 s each piece of what sinks send is 300 ms late", mode: byItself, databases: true, run: slowSink},
	}
}

// dataStreamDeleted takes away what carries the rows of the present attempt.
func dataStreamDeleted(ctx context.Context, t *trial) error {
	if err := t.aim(ctx); err != nil {
		return err
	}
	fence := t.journal.now().head.Fence
	err := t.strike(fmt.Sprintf("the stream that carries the rows of attempt %s is deleted", fence), func() (string, error) {
		state, err := t.conn.DataState(ctx, t.id, fence)
		if err != nil {
			return "", err
		}
		if err := t.conn.DeleteData(ctx, t.id, fence); err != nil {
			return "", err
		}
		return fmt.Sprintf("the server has deleted it; it was %+v", state), nil
	})
	if err != nil {
		return err
	}
	return t.recovered(ctx)
}

// busKilled kills the NATS server and starts it again on what its disk has.
func busKilled(ctx context.Context, t *trial) error {
	if err := t.aim(ctx); err != nil {
		return err
	}
	server := &node{Process: t.bus, name: "bus"}
	if err := t.kill(ctx, "the NATS server", server); err != nil {
		return err
	}
	if err := process.Pause(ctx, time.Duration(t.rng.Int64N(int64(2*time.Second)))); err != nil {
		return err
	}
	if err := t.bus.Start(ctx); err != nil {
		return err
	}
	return t.recovered(ctx)
}

// sourceConnectionCut breaks the connection on which the log arrives when a part of a big transaction has.
func sourceConnectionCut(ctx context.Context, t *trial) error {
	if err := t.aim(ctx); err != nil {
		return err
	}
	err := t.strike("the source's connection breaks within a transaction of 5,000 rows", func() (string, error) {
		const part = 256 << 10
		made := t.source.Cuts()
		t.source.CutReplies(part)
		err := t.src.bulk(ctx)
		if err != nil {
			return "", err
		}
		err = t.until(ctx, "the cut", func(context.Context) error {
			if t.source.Cuts() == made {
				return errors.New("less than that has arrived")
			}
			return nil
		})
		return fmt.Sprintf("1 connection cut when it had brought %d KiB", part>>10), err
	})
	if err != nil {
		return err
	}
	return t.recovered(ctx)
}

// targetUnreachable takes the target away. Epochs become durable for a while, and then wait.
func targetUnreachable(ctx context.Context, t *trial) error {
	if err := t.aim(ctx); err != nil {
		return err
	}
	what, back, err := t.dst.away(ctx, t)
	if err != nil {
		return err
	}
	err = t.strike(fmt.Sprintf("%s, for %s", what, t.cfg.Outage), func() (string, error) {
		before := t.applied.Load()
		if err := process.Pause(ctx, t.cfg.Outage); err != nil {
			return "", err
		}
		h := t.journal.now().head
		if h.Durable == nil || h.Committed >= h.Durable.Epoch {
			return "", errors.New("nothing waits for the target")
		}
		return fmt.Sprintf("epoch %d was durable, %d committed; %d transactions meanwhile", h.Durable.Epoch, h.Committed, t.applied.Load()-before), nil
	})
	if err := errors.Join(err, back()); err != nil {
		return err
	}
	return t.recovered(ctx)
}

// slowSink makes the target's line slow: sinks fall behind, and nothing but time is lost.
func slowSink(ctx context.Context, t *trial) error {
	if err := t.aim(ctx); err != nil {
		return err
	}
	from := t.journal.length()
	what, back, err := t.dst.slow(ctx, t)
	if err != nil {
		return err
	}
	err = t.strike(what, func() (string, error) {
		if err := process.Pause(ctx, 10*time.Second); err != nil {
			return "", err
		}
		s, _, err := t.journal.await(ctx, "sinks to be behind", from, func(h job.Head) bool {
			return h.Durable != nil && h.Committed+1 < h.Durable.Epoch
		})
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("epoch %d was durable when %d was committed", s.head.Durable.Epoch, s.head.Committed), nil
	})
	if err := errors.Join(err, back()); err != nil {
		return err
	}
	return t.recovered(ctx)
}
