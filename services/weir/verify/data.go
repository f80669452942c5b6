package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/services/weir/verify/audit"
	"weir.dev/weir/services/weir/verify/process"
)

// data are the classes in which epochs do not hold what epochs usually hold.
func data() []class {
	return []class{
		{
			name: "skipped-epoch", trigger: "a writer does not answer an epoch's barrier within epoch.timeout; the next epoch covers it", mode: byItself,
			patience: "1s", run: skippedEpoch,
		},
		{
			name: "ddl-at-barrier", trigger: "a table gets a column while an epoch is under way; twice, then the reader is killed", mode: byItself,
			run: ddlAtBarrier,
		},
		{
			name: "poison-row", trigger: "the target refuses rows; the committer is killed when some of them are set aside", mode: byCommand,
			letters: true, run: poisonRow,
			unfit: func(p pair) string {
				if p.to == iceberg {
					return "Iceberg tables refuse no row by a constraint, and the sink has no dead letters"
				}
				return ""
			},
		},
	}
}

// freezeForSkip is how long a writer is stopped: longer than the class's patience with an epoch, shorter than a lease.
const freezeForSkip = 2500 * time.Millisecond

// errNoSkip says that no epoch was given up meanwhile.
var errNoSkip = errors.New("no epoch was skipped")

// skippedEpoch freezes the process of a writer until an epoch has been given up, and no longer: the attempt lives on. Where the
// process commits too, a commit that is due keeps the next epoch from being triggered; then it is tried again.
func skippedEpoch(ctx context.Context, t *trial) error {
	var own fence.Token
	var lost epoch.ID
	err := errNoSkip
	for tries := 0; tries < 8 && errors.Is(err, errNoSkip); tries++ {
		if err := t.aim(ctx); err != nil {
			return err
		}
		n, holds := t.holder(ctx, copying)
		if holds != nil {
			return holds
		}
		own = t.journal.now().head.Fence
		err = t.strike("SIGSTOP of a writer ("+n.name+") until an epoch has been skipped, then SIGCONT", func() (string, error) {
			h, err := t.frozen(ctx, n)
			if err != nil {
				return "", err
			}
			lost = h.NextEpoch - 1
			if h.InFlight != nil {
				lost--
			}
			return fmt.Sprintf("epoch %d was skipped, durable was %d", lost, h.Durable.Epoch), nil
		})
	}
	if err != nil {
		return err
	}
	h, err := t.headRecovered(ctx)
	if err != nil {
		return err
	}
	if h.Fence != own {
		return fmt.Errorf("another attempt began, %s after %s: the epoch was lost and not skipped", h.Fence, own)
	}
	links, err := t.control.History(ctx, h)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(links, func(l epoch.Link) bool { return l.Ref.Epoch == lost }) {
		return fmt.Errorf("epoch %d is on the chain", lost)
	}
	f := &t.faults[len(t.faults)-1]
	f.Evidence += fmt.Sprintf("; the chain goes on with %d, and the attempt lived on", f.After)
	return nil
}

// frozen stops a process until an epoch is skipped, and returns the head that says so; errNoSkip when none was in time.
func (t *trial) frozen(ctx context.Context, n *node) (job.Head, error) {
	from := t.journal.length()
	if err := n.Pause(); err != nil {
		return job.Head{}, err
	}
	waiting, cancel := context.WithTimeoutCause(ctx, freezeForSkip, errNoSkip)
	defer cancel()
	s, _, err := t.journal.await(waiting, "an epoch to be skipped", from, func(h job.Head) bool { return h.Skipped > 0 })
	return s.head, errors.Join(err, n.Resume())
}

// addedColumn is one that a run has given a table.
type addedColumn struct{ table, column string }

// ddlAtBarrier changes tables while epochs are under way; the last change and the barrier are repeated by another reader.
func ddlAtBarrier(ctx context.Context, t *trial) error {
	for i, table := range []string{"customers", "products"} {
		if err := t.aim(ctx); err != nil {
			return err
		}
		s, _, err := t.journal.await(ctx, "an epoch under way", t.journal.length(), func(h job.Head) bool { return h.InFlight != nil })
		if err != nil {
			return err
		}
		column := fmt.Sprintf("added_%d", i+1)
		err = t.strike("ALTER TABLE "+table+" ADD COLUMN while an epoch is under way", func() (string, error) {
			t.added = append(t.added, addedColumn{table, column})
			began := time.Now()
			err := t.src.addColumn(ctx, table, column)
			return fmt.Sprintf("epoch %d was under way, the statement took %s", s.head.InFlight.Epoch, time.Since(began).Round(time.Millisecond)), err
		})
		if err != nil {
			return err
		}
		if i == 0 {
			if err := t.recovered(ctx); err != nil {
				return err
			}
		}
	}
	n, err := t.holder(ctx, origin)
	if err != nil {
		return err
	}
	// The fault before has no epoch of its own: it is part of this one.
	t.faults = t.faults[:1]
	if err := t.kill(ctx, "the reader behind another ALTER TABLE", n); err != nil {
		return err
	}
	if err := t.recovered(ctx); err != nil {
		return err
	}
	return back(ctx, n)
}

// forgive leaves out of changes that are older than a column what the target has there since: nothing.
func (t *trial) forgive(got, want []audit.Change) {
	if len(t.added) == 0 {
		return
	}
	type place struct {
		txn uint64
		ord uint32
	}
	at := make(map[place]audit.Change, len(want))
	for _, c := range want {
		at[place{c.Txn, c.Ord}] = c
	}
	for _, c := range got {
		for _, a := range t.added {
			v, has := c.Cells[a.column]
			if _, had := at[place{c.Txn, c.Ord}].Cells[a.column]; has && v == nil && !had {
				delete(c.Cells, a.column)
			}
		}
	}
}

// poisoned is how many bad rows there are.
const poisoned = 40

// poisonRow has the target refuse rows, kills the committer among them, and replays them when the target has been cured.
func poisonRow(ctx context.Context, t *trial) error {
	if err := t.aim(ctx); err != nil {
		return err
	}
	if err := t.dst.spoil(ctx); err != nil {
		return err
	}
	if err := t.src.poison(ctx, poisoned); err != nil {
		return err
	}
	set := func(ctx context.Context, least uint64) (n uint64, err error) {
		err = t.until(ctx, fmt.Sprintf("%d letters", least), func(ctx context.Context) error {
			counts, err := t.conn.CountLetters(ctx, t.id)
			if n = counts[copying]; err == nil && n < least {
				err = fmt.Errorf("there are %d", n)
			}
			return err
		})
		return n, err
	}
	n, err := set(ctx, 1+uint64(t.rng.IntN(poisoned/2)))
	if err != nil {
		return err
	}
	holder, err := t.holder(ctx, copyCommitter())
	if err != nil {
		return err
	}
	if err := t.kill(ctx, "the committer among rows that the target refuses", holder); err != nil {
		return err
	}
	t.faults[0].Evidence += fmt.Sprintf("; %d of %d bad rows were set aside", n, poisoned)
	if err := t.recovered(ctx); err != nil {
		return err
	}
	if err := back(ctx, holder); err != nil {
		return err
	}
	if _, err := set(ctx, poisoned); err != nil {
		return err
	}
	// Those that come twice come soon.
	if err := process.Pause(ctx, time.Second); err != nil {
		return err
	}
	if n, err = set(ctx, 0); err != nil || n != poisoned {
		return errors.Join(err, fmt.Errorf("%d letters for %d bad rows", n, poisoned))
	}
	if err := t.dst.cure(ctx); err != nil {
		return err
	}
	return t.weir(ctx, "dlq", "replay", t.id, "--all")
}
