package verify

import (
	"context"
	"errors"
	"fmt"

	"weir.dev/weir/pkg/job"
	"weir.dev/weir/services/weir/verify/relay"
)

func zombies() []class {
	return []class{
		{name: "zombie-reader", trigger: "the reader holds the source's slot", mode: byItself, run: zombieReader},
		{name: "zombie-sink", trigger: "the committer is inside its transaction at the target", mode: byItself, run: zombieSink},
		{
			name: "split-brain", trigger: "the leader is heard and hears nothing; then it hears all at once", mode: byItself,
			relayed: true, run: splitBrain,
		},
	}
}

func zombieReader(ctx context.Context, t *trial) error {
	if err := t.aim(ctx); err != nil {
		return err
	}
	n, err := t.holder(ctx, origin)
	if err != nil {
		return err
	}
	return t.zombie(ctx, "the reader", n, func() (string, error) {
		held, err := t.src.held(ctx)
		return fmt.Sprintf("process %d is stopped and holds %s", n.PID(), held), err
	})
}

func zombieSink(ctx context.Context, t *trial) error {
	if err := t.aim(ctx); err != nil {
		return err
	}
	release, err := t.dst.hold(ctx)
	if err != nil {
		return err
	}
	commit, err := t.dst.heldUp(ctx, t)
	if err != nil {
		return errors.Join(err, release())
	}
	n, err := t.holder(ctx, copyCommitter())
	if err != nil {
		return errors.Join(err, release())
	}
	return t.zombie(ctx, "the committer", n, func() (string, error) {
		if err := release(); err != nil {
			return "", err
		}
		return fmt.Sprintf("process %d is stopped in the commit of %s", n.PID(), commit), t.dst.stuck(ctx, t, commit)
	})
}

// splitBrain lets a leader believe in itself: it writes and hears nothing, while another one takes over. When the line heals, both
// have been leaders for a while.
func splitBrain(ctx context.Context, t *trial) error {
	if err := t.aim(ctx); err != nil {
		return err
	}
	old, err := t.leader(ctx)
	if err != nil {
		return err
	}
	term := t.journal.now().head.Term
	err = t.strike("partition of the leading coordinator ("+old.name+"): NATS hears it, it hears nothing", func() (string, error) {
		old.way.Part(relay.Replies)
		s, _, err := t.journal.await(ctx, "another leader", t.journal.length(), func(h job.Head) bool { return h.Term > term })
		if err != nil {
			return "", err
		}
		if !old.Running() {
			return "", errors.New("the old leader has ended")
		}
		return fmt.Sprintf("process %d, leader of term %d, lived on while term %d led", old.PID(), term, s.head.Term), nil
	})
	old.way.Heal()
	if err != nil {
		return err
	}
	return t.recovered(ctx)
}
