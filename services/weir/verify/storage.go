package verify

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"weir.dev/weir/services/weir/verify/process"
)

// storage are the classes in which what the bus has on its disk is not what it should be.
func storage() []class {
	return []class{
		{name: "disk-quota", trigger: "the bus has no room for another byte", mode: byItself, run: diskQuota},
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
