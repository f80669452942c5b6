// Command eoverify is `weir verify` with a source and a target of its own: it starts private servers, hands their URLs to the weir
// program with all further arguments, and ends as that ends.
//
//	eoverify [-weir PROGRAM] [-from postgres|mysql|mariadb] [-to postgres|mysql|mariadb|iceberg] [--failure all --seeds 1 ...]
//
// For --judge it installs ClickHouse (the npm package chdb) in the user's cache folder.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
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
	own := map[string]string{"-weir": "", "-from": "postgres", "-to": "postgres"}
	for len(args) > 1 {
		if _, ok := own[args[0]]; !ok {
			break
		}
		own[args[0]], args = args[1], args[2:]
	}
	weir := own["-weir"]
	if weir == "" {
		if weir, err = harness.Build(ctx, "weir.dev/weir/services/weir/cmd/weir"); err != nil {
			return exitFailed, err
		}
	}
	env := os.Environ()
	if slices.Contains(args, "--judge") {
		modules, err := harness.ClickHouse(ctx)
		if err != nil {
			return exitEnvironment, err
		}
		env = append(env, "NODE_PATH="+modules)
	}
	source, target, err := ends(ctx, own["-from"], own["-to"])
	defer func() { err = errors.Join(err, source.Close(), target.Close()) }()
	if err != nil {
		return exitEnvironment, err
	}
	cmd := exec.CommandContext(ctx, weir, append([]string{"verify"}, args...)...)
	cmd.Env = append(env, "VERIFY_SOURCE="+source.url, "VERIFY_TARGET="+target.url)
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

// end is one side of the verification, and how it is taken down.
type end struct {
	url  string
	down func() error
}

// Close takes the end down, if it is up.
func (e end) Close() error {
	if e.down == nil {
		return nil
	}
	return e.down()
}

// ends makes both sides at the same time. What is up is returned with an error, too.
func ends(ctx context.Context, from, to string) (source, target end, err error) {
	kinds := map[string]func(context.Context) (end, error){
		"postgres": postgres, "mysql": mysql(harness.RunMySQL), "mariadb": mysql(harness.RunMariaDB), "iceberg": iceberg,
	}
	if kinds[from] == nil || kinds[to] == nil || from == "iceberg" {
		return source, target, fmt.Errorf("-from %s -to %s: from postgres, mysql or mariadb, to one of them or iceberg", from, to)
	}
	var group errgroup.Group
	group.Go(func() (err error) {
		source, err = kinds[from](ctx)
		return err
	})
	group.Go(func() (err error) {
		target, err = kinds[to](ctx)
		return err
	})
	err = group.Wait()
	return source, target, err
}

func postgres(ctx context.Context) (end, error) {
	s, err := harness.RunPostgres(ctx, harness.PostgresConfig{})
	if err != nil {
		return end{}, err
	}
	return end{s.URL("postgres"), s.Close}, nil
}

func mysql(run func(context.Context, harness.MySQLConfig) (*harness.MySQL, error)) func(context.Context) (end, error) {
	return func(ctx context.Context) (end, error) {
		s, err := run(ctx, harness.MySQLConfig{})
		if err != nil {
			return end{}, err
		}
		return end{s.URL(""), s.Close}, nil
	}
}

// iceberg is a folder; the run removes what it makes there.
func iceberg(context.Context) (end, error) {
	dir, err := os.MkdirTemp("", "eoverify-lake-")
	if err != nil {
		return end{}, err
	}
	return end{"file://" + dir, func() error { return os.RemoveAll(dir) }}, nil
}
