package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/services/weir/verify/process"
)

func crashes() []class {
	return []class{
		{
			name: "coordinator-each-state", trigger: "an epoch has been triggered; it is durable and not committed; none is under way",
			mode: byItself, run: coordinatorEachState,
		},
		{name: "crash-before-manifest", trigger: "sinks have staged an epoch whose manifest is not written", mode: byItself, run: crashBeforeManifest},
		{
			name: "crash-manifest-to-durable", trigger: "an epoch's manifest is stored, and the leader cannot say that it is durable", mode: byItself,
			relayed: true, run: crashManifestToDurable,
		},
		{name: "crash-durable-to-commit", trigger: "an epoch is durable and not committed", mode: byItself, run: crashDurableToCommit},
		{
			name: "lost-commit-reply", trigger: "the target has COMMIT, its reply is lost; three times", mode: byItself,
			databases: true, run: lostCommitReply,
		},
		{
			name: "partial-fan-out", trigger: "one of two sinks has committed an epoch", mode: byItself, run: partialFanOut,
			unfit: func(p pair) string {
				if p.to == iceberg {
					return "one sink makes both tables, in one transaction of the catalog"
				}
				return ""
			},
		},
	}
}

// coordinatorEachState kills the leader in each state of an epoch that it can be in for longer than a write takes.
func coordinatorEachState(ctx context.Context, t *trial) error {
	_, _, err := t.journal.await(ctx, "an epoch under way", t.journal.length(), func(h job.Head) bool { return h.InFlight != nil })
	if err != nil {
		return err
	}
	if err := t.killLeader(ctx); err != nil {
		return err
	}
	var n *node
	err = t.whileHeld(ctx, func() error {
		h, err := t.uncommitted(ctx)
		if err != nil {
			return err
		}
		if n, err = t.strikeLeader(ctx); err != nil {
			return err
		}
		// Epochs need not go on before the target does.
		_, _, err = t.journal.await(ctx, "another leader", t.journal.length(), func(now job.Head) bool { return now.Term > h.Term })
		return err
	})
	if err != nil {
		return err
	}
	if err := t.ledOn(ctx, n); err != nil {
		return err
	}
	// A slow target may never have all of them.
	_, _, err = t.journal.await(ctx, "a moment without an epoch", t.journal.length(), func(h job.Head) bool { return h.InFlight == nil })
	if err != nil {
		return err
	}
	return t.killLeader(ctx)
}

// crashBeforeManifest freezes the leader while an epoch is under way, waits until parts of it have been acknowledged, and kills the
// leader and everything that runs tasks. Another leader gives the epoch up, or completes it when all of it had been acknowledged;
// either way what it held comes once.
func crashBeforeManifest(ctx context.Context, t *trial) error {
	for range 10 {
		s, _, err := t.journal.await(ctx, "an epoch under way", t.journal.length(), func(h job.Head) bool { return h.InFlight != nil })
		if err != nil {
			return err
		}
		lost := s.head.InFlight.Epoch
		leader, err := t.leader(ctx)
		if err != nil {
			return err
		}
		if err := leader.Pause(); err != nil {
			return err
		}
		// The others go on with what they have been told.
		if err := process.Pause(ctx, 300*time.Millisecond); err != nil {
			return err
		}
		head, err := t.reg.Head(ctx, t.id)
		if err != nil {
			return err
		}
		facts, err := t.conn.Facts(ctx, t.id, s.head.Fence)
		if err != nil {
			return err
		}
		if head.Head.Durable.Epoch >= lost || len(facts) == 0 {
			// It was quicker.
			if err := leader.Resume(); err != nil {
				return err
			}
			continue
		}
		return t.loseEpoch(ctx, leader, head.Head, len(facts))
	}
	return errors.New("no epoch was caught before its manifest was written")
}

func (t *trial) loseEpoch(ctx context.Context, leader *node, head *job.Head, facts int) error {
	victims := append(t.workers(), leader)
	if err := t.kill(ctx, "the leader and everything that runs tasks", victims...); err != nil {
		return err
	}
	lost := head.NextEpoch - 1
	t.faults[0].Evidence += fmt.Sprintf("; epoch %d was under way, durable was %d, %d facts of its subtasks were stored", lost, head.Durable.Epoch, facts)
	if err := back(ctx, victims...); err != nil {
		return err
	}
	h, err := t.headRecovered(ctx)
	if err != nil {
		return err
	}
	links, err := t.control.History(ctx, h)
	if err != nil {
		return err
	}
	became := "was given up"
	if slices.ContainsFunc(links, func(l epoch.Link) bool { return l.Ref.Epoch == lost }) {
		became = "was made durable by another leader, from what had been acknowledged"
	}
	t.faults[0].Evidence += fmt.Sprintf("; it %s", became)
	return t.restoredNewest()
}

// crashManifestToDurable severs the leader from the bus at the very write of an epoch's manifest, and kills it and everything that runs
// tasks. The head record does not name the epoch, so nobody may have done anything for it.
func crashManifestToDurable(ctx context.Context, t *trial) error {
	if err := t.aim(ctx); err != nil {
		return err
	}
	for range 10 {
		leader, err := t.leader(ctx)
		if err != nil {
			return err
		}
		lost, durable, err := t.sever(ctx, leader)
		if err != nil {
			return err
		}
		if lost == 0 { // something else was written under such a key
			leader.way.Heal()
			if err := t.aim(ctx); err != nil {
				return err
			}
			continue
		}
		victims := append(t.workers(), leader)
		if err := t.kill(ctx, "the leader and everything that runs tasks", victims...); err != nil {
			return err
		}
		t.faults[0].Evidence += fmt.Sprintf("; the manifest of epoch %d was stored, durable was %d", lost, durable)
		leader.way.Heal()
		if err := back(ctx, victims...); err != nil {
			return err
		}
		if err := t.recovered(ctx); err != nil {
			return err
		}
		return t.restoredNewest()
	}
	return errors.New("no manifest was met that the head record did not name")
}

// sever cuts a leader off when it has written a manifest, and returns the manifest's epoch, zero when it was no manifest that the head
// record does not name.
func (t *trial) sever(ctx context.Context, leader *node) (lost, durable epoch.ID, err error) {
	made := leader.way.Cuts()
	leader.way.SeverAfter("PUB $KV." + bus.RegistryBucket + "." + strings.TrimSuffix(bus.EpochKey(t.id, 0, 0), "0.0"))
	err = t.until(ctx, "the manifest of an epoch", func(context.Context) error {
		if leader.way.Cuts() == made {
			return errors.New("none yet")
		}
		return nil
	})
	if err != nil {
		return 0, 0, err
	}
	// Whoever would act too early has the time for it.
	if err := process.Pause(ctx, 300*time.Millisecond); err != nil {
		return 0, 0, err
	}
	v, err := t.reg.Head(ctx, t.id)
	if err != nil || v.Head.InFlight == nil || v.Head.Durable == nil {
		return 0, 0, err
	}
	kept, err := t.reg.Epochs(ctx, t.id)
	if err != nil || !slices.Contains(kept, v.Head.InFlight.Epoch) {
		return 0, 0, err
	}
	return v.Head.InFlight.Epoch, v.Head.Durable.Epoch, nil
}

// crashDurableToCommit loses the leader and the sinks between an epoch's manifest and its commit: the commit has to be made up for
// before anything new.
func crashDurableToCommit(ctx context.Context, t *trial) error {
	if err := t.aim(ctx); err != nil {
		return err
	}
	var h job.Head
	var victims []*node
	err := t.whileHeld(ctx, func() (err error) {
		if h, err = t.uncommitted(ctx); err != nil {
			return err
		}
		leader, err := t.leader(ctx)
		if err != nil {
			return err
		}
		victims = append(t.of(sinks), leader)
		return t.kill(ctx, "the leader and every sink", victims...)
	})
	if err != nil {
		return err
	}
	t.faults[0].Evidence += fmt.Sprintf("; epoch %d was durable, %d committed", h.Durable.Epoch, h.Committed)
	if err := back(ctx, victims...); err != nil {
		return err
	}
	if err := t.recovered(ctx); err != nil {
		return err
	}
	return t.restoredNewest()
}

func lostCommitReply(ctx context.Context, t *trial) error {
	for range 3 {
		if err := t.aim(ctx); err != nil {
			return err
		}
		if err := t.dst.after(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// partialFanOut kills the committer of the copy when the changelog has an epoch that the copy has not.
func partialFanOut(ctx context.Context, t *trial) error {
	if err := t.aim(ctx); err != nil {
		return err
	}
	var ahead, behind int64
	var n *node
	err := t.whileHeld(ctx, func() error {
		err := t.until(ctx, "one sink to be ahead of the other", func(ctx context.Context) (err error) {
			if behind, err = t.dst.ledgerAt(ctx, copying); err != nil {
				return err
			}
			if ahead, err = t.dst.ledgerAt(ctx, logging); err != nil {
				return err
			}
			if ahead <= behind {
				return fmt.Errorf("both are at epoch %d", ahead)
			}
			return nil
		})
		if err != nil {
			return err
		}
		if n, err = t.holder(ctx, copyCommitter()); err != nil {
			return err
		}
		return t.kill(ctx, "the committer of the sink that is behind", n)
	})
	if err != nil {
		return err
	}
	t.faults[0].Evidence += fmt.Sprintf("; sink %s had epoch %d, sink %s epoch %d", logging, ahead, copying, behind)
	if err := t.recovered(ctx); err != nil {
		return err
	}
	return back(ctx, n)
}
