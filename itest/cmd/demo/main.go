// Command demo shows Weir at work in about a minute: changes of a PostgreSQL,
// MySQL or MariaDB database arrive in another, of PostgreSQL, exactly once, while the process that moves them
// is killed and comes back. It starts everything it needs, compares both sides
// row by row and leaves nothing running.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"weir.dev/weir/itest/harness"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// The exit codes are those of the CLI, see docs/errors.md.
const (
	exitOK          = 0
	exitFailed      = 1
	exitRequest     = 2
	exitEnvironment = 3
	exitUnequal     = 4
	exitInterrupted = 130
)

func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.SetOutput(stderr)
	var cfg config
	flags.StringVar(&cfg.Weir, "weir", "", "the weir `program`; built from this checkout when empty")
	flags.StringVar(&cfg.From, "from", "postgres", "the shop's `database`: postgres, mysql or mariadb")
	flags.DurationVar(&cfg.Load, "load", 8*time.Second, "how long the shop is open before and after the kill, each")
	flags.Float64Var(&cfg.Rate, "rate", 200, "`transactions` per second")
	flags.IntVar(&cfg.Kills, "kills", 1, "how often weir is killed")
	flags.Uint64Var(&cfg.Seed, "seed", 1, "seed of the shop's transactions")
	flags.BoolVar(&cfg.Hold, "hold", false, "keep all running at the end, until Ctrl-C, to look around")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return exitOK
		}
		return exitRequest
	}
	if _, known := kinds()[cfg.From]; !known {
		fmt.Fprintf(stderr, "demo: -from %q is none of postgres, mysql, mariadb\n", cfg.From)
		return exitRequest
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := demo(ctx, cfg, &narrator{out: stdout, begin: time.Now()})
	switch {
	case err == nil:
		return exitOK
	case ctx.Err() != nil:
		fmt.Fprintln(stderr, "demo: interrupted; everything it started has ended")
		return exitInterrupted
	}
	fmt.Fprintln(stderr, "demo:", err)
	switch {
	case errors.Is(err, errUnequal):
		return exitUnequal
	case errors.Is(err, harness.ErrNoPostgres), errors.Is(err, harness.ErrNoMySQL), errors.Is(err, harness.ErrNoMariaDB):
		return exitEnvironment
	}
	return exitFailed
}
