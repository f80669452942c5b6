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
		err := run(ctx, t.scratch.source, fmt.Sprintf(`INSERT INTO %s.customers (id, email, name, created_at, profile)
			SELECT 1000000000 + i, i || '@example.com', 'one of many', now(), jsonb_build_object('text', repeat('x', 200))
			FROM generate_series(1, 5000) i`, t.shop()))
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
	err := t.strike(fmt.Sprintf("the target's connections break, and new ones do, for %s", t.cfg.Outage), func() (string, error) {
		before := t.applied.Load()
		t.target.Refuse()
		if err := process.Pause(ctx, t.cfg.Outage); err != nil {
			return "", err
		}
		h := t.journal.now().head
		if h.Durable == nil || h.Committed >= h.Durable.Epoch {
			return "", errors.New("nothing waits for the target")
		}
		return fmt.Sprintf("epoch %d was durable, %d committed; %d transactions meanwhile", h.Durable.Epoch, h.Committed, t.applied.Load()-before), nil
	})
	t.target.Heal()
	if err != nil {
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
	err := t.strike("the line to the target is slow", func() (string, error) {
		t.target.Delay(300 * time.Millisecond)
		if err := process.Pause(ctx, 10*time.Second); err != nil {
			return "", err
		}
		s, _, err := t.journal.await(ctx, "sinks to be behind", from, func(h job.Head) bool {
			return h.Durable != nil && h.Committed+1 < h.Durable.Epoch
		})
		return fmt.Sprintf("epoch %d was durable when %d was committed", s.head.Durable.Epoch, s.head.Committed), err
	})
	t.target.Heal()
	if err != nil {
		return err
	}
	return t.recovered(ctx)
}
