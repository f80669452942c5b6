package verify

import (
	"context"
	"errors"
	"fmt"

	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/plan"
)

func firstFive() []class {
	return []class{
		{name: "task-crash", trigger: "at a random phase of an epoch, under load", mode: byItself, run: taskCrash},
		{name: "checkpoint-restore", trigger: "at a random phase of an epoch, under load", mode: byItself, run: checkpointRestore},
		{name: "jobmanager-restart", trigger: "at a random phase of an epoch, under load", mode: byItself, run: coordinatorCrash},
		{name: "savepoint-restore", trigger: "behind a savepoint epoch, taken under load", mode: byCommand, run: savepointRestore},
		{
			name: "sink-commit-fault", trigger: "before, during and after the target's COMMIT, in an order of chance", mode: byItself,
			databases: true, run: sinkCommitFault,
		},
	}
}

// taskCrash kills one process that runs tasks; the job goes on with those that are left, and the process comes back.
func taskCrash(ctx context.Context, t *trial) error {
	if err := t.aim(ctx); err != nil {
		return err
	}
	victims := []plan.VertexID{origin, copying, copyCommitter()}
	what := victims[t.rng.IntN(len(victims))]
	n, err := t.holder(ctx, what)
	if err != nil {
		return err
	}
	if err := t.kill(ctx, "the process of task "+string(what), n); err != nil {
		return err
	}
	if err := t.recovered(ctx); err != nil {
		return err
	}
	return back(ctx, n)
}

// checkpointRestore kills every process that runs tasks: nothing is left of the attempt but its newest durable epoch, from which
// processes that never knew it go on.
func checkpointRestore(ctx context.Context, t *trial) error {
	if err := t.aim(ctx); err != nil {
		return err
	}
	if err := t.kill(ctx, "every process that runs tasks", t.workers()...); err != nil {
		return err
	}
	if err := t.others(ctx); err != nil {
		return err
	}
	if err := t.recovered(ctx); err != nil {
		return err
	}
	return t.restoredNewest()
}

// others runs processes with new names for the job's tasks.
func (t *trial) others(ctx context.Context) error {
	for _, role := range []string{t.src.role(), sinks, sinks} {
		if err := t.add(ctx, role); err != nil {
			return err
		}
	}
	return nil
}

// restoredNewest holds when the attempt after the newest fault began at an epoch that is not older than the one durable before it.
func (t *trial) restoredNewest() error {
	f := t.faults[len(t.faults)-1]
	switch {
	case f.Restored == nil:
		return errors.New("no attempt was restored")
	case *f.Restored < f.Before:
		return fmt.Errorf("the attempt was restored from epoch %d, epoch %d was durable", *f.Restored, f.Before)
	}
	return nil
}

// coordinatorCrash kills the leading coordinator. Nobody submits the job again.
func coordinatorCrash(ctx context.Context, t *trial) error {
	if err := t.aim(ctx); err != nil {
		return err
	}
	return t.killLeader(ctx)
}

// killLeader kills the leading coordinator, waits until another one leads and epochs go on, and starts it again.
func (t *trial) killLeader(ctx context.Context) error {
	n, err := t.strikeLeader(ctx)
	if err != nil {
		return err
	}
	return t.ledOn(ctx, n)
}

func (t *trial) strikeLeader(ctx context.Context) (*node, error) {
	n, err := t.leader(ctx)
	if err != nil {
		return nil, err
	}
	return n, t.kill(ctx, "the leading coordinator", n)
}

// ledOn waits until another coordinator than n, which has been killed, leads and epochs go on, and starts n again.
func (t *trial) ledOn(ctx context.Context, n *node) error {
	if err := t.recovered(ctx); err != nil {
		return err
	}
	if f := t.faults[len(t.faults)-1]; f.Term <= f.TermBefore {
		return fmt.Errorf("the term is %d, as before", f.Term)
	}
	return back(ctx, n)
}

// savepointRestore suspends the job behind a savepoint epoch, loses every process that ran it, and goes on elsewhere with other
// parallelism.
func savepointRestore(ctx context.Context, t *trial) error {
	if err := t.aim(ctx); err != nil {
		return err
	}
	if _, err := t.control.Suspend(ctx, t.id, true); err != nil {
		return fmt.Errorf("suspend: %w", err)
	}
	s, _, err := t.journal.await(ctx, "the suspension", 0, func(h job.Head) bool { return h.Phase == job.Suspended })
	if err != nil {
		return err
	}
	what := "every process that ran tasks, once suspended; then other processes"
	if t.dst.parallel() {
		what += ", with 3 writers for 2"
	}
	if err := t.kill(ctx, what, t.workers()...); err != nil {
		return err
	}
	t.faults[0].Evidence += fmt.Sprintf("; suspended behind epoch %d, a %s", s.head.Durable.Epoch, s.head.Durable.Kind)
	if err := t.others(ctx); err != nil {
		return err
	}
	j, err := t.spec(3)
	if err != nil {
		return err
	}
	if _, err := t.control.Apply(ctx, j); err != nil {
		return fmt.Errorf("go on with other parallelism: %w", err)
	}
	if err := t.recovered(ctx); err != nil {
		return err
	}
	if err := t.restoredNewest(); err != nil {
		return err
	}
	if f := t.faults[0]; *f.Restored != s.head.Durable.Epoch {
		return fmt.Errorf("the job went on from epoch %d, its savepoint is epoch %d", *f.Restored, s.head.Durable.Epoch)
	}
	return nil
}

// sinkCommitFault breaks a commit at each side of its COMMIT and in its middle.
func sinkCommitFault(ctx context.Context, t *trial) error {
	for _, i := range t.rng.Perm(3) {
		if err := t.aim(ctx); err != nil {
			return err
		}
		broken := []func(context.Context, *trial) error{t.dst.before, t.dst.within, t.dst.after}[i]
		if err := broken(ctx, t); err != nil {
			return err
		}
	}
	return nil
}
