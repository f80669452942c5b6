// Command eoverify is `weir verify` with databases of its own: it starts two private PostgreSQL servers, hands their URLs to the
// weir program with all further arguments, and ends as that ends.
//
//	eoverify [-weir PROGRAM] [--failure all --seeds 1 ...]
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"weir.dev/weir/itest/harness"
)

// The exit codes of its own are those of the CLI, see docs/errors.md.
const (
	exitFailed      = 1
	exitEnvironment = 3
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	code, err := run(ctx, os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "eoverify:", err)
	}
	os.Exit(code)
}

func run(ctx context.Context, args []string) (code int, err error) {
	var weir string
	if len(args) > 1 && args[0] == "-weir" {
		weir, args = args[1], args[2:]
	} else if weir, err = harness.Build(ctx, "weir.dev/weir/services/weir/cmd/weir"); err != nil {
		return exitFailed, err
	}
	var source, target *harness.Postgres
	var group errgroup.Group
	group.Go(func() (err error) {
		source, err = harness.RunPostgres(ctx, harness.PostgresConfig{})
		return err
	})
	group.Go(func() (err error) {
		target, err = harness.RunPostgres(ctx, harness.PostgresConfig{})
		return err
	})
	err = group.Wait()
	defer func() { err = errors.Join(err, source.Close(), target.Close()) }()
	if err != nil {
		return exitEnvironment, err
	}
	cmd := exec.CommandContext(ctx, weir, append([]string{"verify"}, args...)...)
	cmd.Env = append(os.Environ(), "VERIFY_SOURCE="+source.URL("postgres"), "VERIFY_TARGET="+target.URL("postgres"))
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = time.Minute
	if err := cmd.Run(); err != nil {
		if _, exited := errors.AsType[*exec.ExitError](err); exited {
			return cmd.ProcessState.ExitCode(), nil
		}
		return exitFailed, err
	}
	return 0, nil
}
