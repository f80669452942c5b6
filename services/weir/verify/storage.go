package verify

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"weir.dev/weir/pkg/job"
	"weir.dev/weir/services/weir/verify/process"
)

// storage are the classes in which what the bus has on its disk is not what it should be.
func storage() []class {
	return []class{
		{name: "disk-quota", trigger: "the bus has no room for another byte", mode: byItself, run: diskQuota},
		{
			name: "bus-older", trigger: "every process is lost, and the bus comes back with a folder of before; targets know more", mode: byCommand,
			run: busOlder,
			unfit: func(p pair) string {
				if p.from != postgreSQL {
					return "only a PostgreSQL source goes on from a position alone"
				}
				return ""
			},
		},
	}
}

// weir runs a command of the program against the run's mesh, as a person would.
func (t *trial) weir(ctx context.Context, args ...string) error {
	p := process.New(process.Config{
		Name: "weir-" + args[0] + "-" + args[1], Path: t.program, Dir: t.dir, Args: append(args, "--nats", t.url), Env: t.env,
	})
	if err := p.Start(ctx); err != nil {
		return err
	}
	defer p.Kill()
	code, err := p.Wait(ctx)
	if err == nil && code != 0 {
		err = fmt.Errorf("weir %s: exit %d: %s", strings.Join(args, " "), code, p.LogTail(2<<10))
	}
	return err
}

// crowded is what the bus says when a stream may not grow.
const crowded = "resource limits exceeded"

// diskQuota gives the bus no room for a while: it comes back with a limit that it has reached already, and later without.
func diskQuota(ctx context.Context, t *trial) error {
	if err := t.aim(ctx); err != nil {
		return err
	}
	err := t.strike("the bus is killed and comes back with a quota that is used up, for 8 s", func() (string, error) {
		t.bus.Kill()
		used, err := size(t.store)
		if err != nil {
			return "", err
		}
		t.bus.SetArgs(append(slices.Clone(t.busArgs), "--max-store", strconv.FormatInt(max(used/2, 1), 10))...)
		if err := t.bus.Start(ctx); err != nil {
			return "", err
		}
		if err := process.Pause(ctx, 8*time.Second); err != nil {
			return "", err
		}
		if n := strings.Count(t.bus.LogTail(1<<20), crowded); n > 0 {
			return fmt.Sprintf("the bus has refused %d times for want of room", n), nil
		}
		return "", errors.New("the bus has never refused")
	})
	if err != nil {
		return err
	}
	t.bus.Kill()
	t.bus.SetArgs(t.busArgs...)
	if err := t.bus.Start(ctx); err != nil {
		return err
	}
	return t.recovered(ctx)
}

// busOlder loses every process and puts an older copy of the bus's folder back. The job has to stop before it writes anything, and to
// go on from the targets' ledgers when it is told to.
func busOlder(ctx context.Context, t *trial) error {
	older := filepath.Join(t.dir, "bus", "older")
	if err := t.aim(ctx); err != nil {
		return err
	}
	t.bus.Kill()
	if err := errors.Join(os.CopyFS(older, os.DirFS(t.store)), t.bus.Start(ctx)); err != nil {
		return err
	}
	had := int64(t.journal.newestDurable()) + 1 // one more may have come with the kill
	var at int64
	err := errApart
	for tries := 0; tries < 8 && errors.Is(err, errApart); tries++ {
		if err := t.aim(ctx); err != nil {
			return err
		}
		err = t.strike("SIGKILL of every process and of the bus, which comes back with an older folder", func() (string, error) {
			t.bus.Kill()
			if _, err := killed(ctx, t.nodes...); err != nil {
				return "", err
			}
			var apart error
			if at, apart = t.together(ctx); apart == nil && at <= had {
				apart = errApart
			}
			if apart == nil {
				if err := errors.Join(os.RemoveAll(t.store), os.CopyFS(t.store, os.DirFS(older))); err != nil {
					return "", err
				}
			}
			evidence := fmt.Sprintf("the folder has epoch %d at most, the targets are at epoch %d", had, at)
			return evidence, errors.Join(apart, t.bus.Start(ctx), back(ctx, t.nodes...))
		})
	}
	if err != nil {
		return err
	}
	from := t.journal.length()
	if err := t.attach(ctx, ctx); err != nil {
		return err
	}
	s, _, err := t.journal.await(ctx, "the job to stop", from, func(h job.Head) bool { return h.Phase == job.Failed })
	if err != nil {
		return err
	}
	f := &t.faults[0]
	f.Evidence += fmt.Sprintf("; the job had gone back to epoch %d and stopped: %s", s.head.Committed, s.head.Reason.Code)
	if now, err := t.together(ctx); err != nil || now != at {
		return errors.Join(err, fmt.Errorf("the targets were at epoch %d, and at %d when the job had stopped", at, now))
	}
	if err := t.weir(ctx, "job", "adopt", t.id); err != nil {
		return err
	}
	return t.recoveredFrom(ctx, t.journal.length())
}

// errApart says that a sink has an epoch that another one has not, or none that the folder has not. Ledgers that differ cannot be
// adopted; whoever loses that moment copies anew.
var errApart = errors.New("the sinks are not at one epoch that is newer than the folder")

// together is the epoch that every sink has.
func (t *trial) together(ctx context.Context) (epoch int64, err error) {
	for i, sink := range t.dst.sinks() {
		at, err := t.dst.ledgerAt(ctx, sink)
		if err != nil {
			return 0, err
		}
		if i > 0 && at != epoch {
			return 0, errApart
		}
		epoch = at
	}
	return epoch, nil
}

// size adds up the files of a folder.
func size(dir string) (n int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			n += info.Size()
		}
		return err
	})
	return n, err
}
