package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"weir.dev/weir/itest/harness"
)

// errUnequal is the verdict that must never come.
var errUnequal = errors.New("the copy is not what the source holds")

// config is the demo's command line.
type config struct {
	Weir  string
	From  string
	Load  time.Duration
	Rate  float64
	Kills int
	Seed  uint64
	Hold  bool
}

// demo runs the whole story. Everything it starts has ended when it returns.
func demo(ctx context.Context, cfg config, tell *narrator) (err error) {
	weir, err := weirProgram(ctx, cfg.Weir)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "weir-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	from := kinds()[cfg.From]
	tell.step("Two private servers: the shop's own, %s, and an empty PostgreSQL for the copy.", from.title)
	source, target, err := servers(ctx, from)
	defer func() { err = errors.Join(err, source.Close(), target.Close()) }()
	if err != nil {
		return err
	}
	tell.line("source %s", source.Address())
	tell.line("target %s", target.Address())
	if err := source.fill(ctx); err != nil {
		return fmt.Errorf("make the shop: %w", err)
	}

	mesh, err := newMesh(ctx, weir, dir, from.spec, []string{"SHOP_URL=" + source.url(), "COPY_URL=" + target.URL("postgres")})
	if err != nil {
		return err
	}
	defer mesh.end() //nolint:contextcheck // it ends also after the context has
	tell.step("weir up shop.yaml: all of Weir and its NATS server in one process.")
	for line := range strings.Lines(from.spec) {
		if !strings.HasPrefix(line, "#") {
			tell.line("  %s", strings.TrimRight(line, "\n"))
		}
	}
	if err := mesh.up(ctx); err != nil {
		return err
	}
	if _, err := mesh.weir(ctx, "status", "shop", "--wait-for", "running", "--timeout", "60s"); err != nil {
		return err
	}

	// The shop opens; a reader looks at the copy all the while.
	till, err := source.open(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { _ = till.close() }() // its error is asked for below
	watch := watchCopy(ctx, target, source.torn())
	defer watch.end()

	tell.step("The shop opens: %.0f transactions per second.", cfg.Rate)
	if err := pause(ctx, cfg.Load); err != nil {
		return err
	}
	for i := range cfg.Kills {
		before := till.applied()
		tell.step("kill -9 %d: Weir and its NATS server are gone in mid-flight. The shop stays open.", mesh.process.PID())
		mesh.process.Kill()
		if err := pause(ctx, 2*time.Second); err != nil {
			return err
		}
		tell.line("%d transactions committed at the source meanwhile", till.applied()-before)
		tell.step("The same command again: it goes on from the last durable epoch.")
		back := time.Now()
		if err := mesh.up(ctx); err != nil {
			return err
		}
		if _, err := mesh.weir(ctx, "status", "shop", "--wait-for", "caught-up", "--timeout", "60s"); err != nil {
			return err
		}
		tell.line("started and caught up %.1f s after the command", time.Since(back).Seconds())
		if i == cfg.Kills-1 {
			if err := pause(ctx, cfg.Load); err != nil {
				return err
			}
		}
	}

	if err := till.close(); err != nil {
		return fmt.Errorf("the shop's own load: %w", err)
	}
	tell.step("The shop closes after %d transactions.", till.applied())
	if answer, err := mesh.weir(ctx, "status", "shop", "--wait-for", "caught-up", "--timeout", "60s"); err != nil {
		return err
	} else {
		tell.command([]string{"status", "shop", "--wait-for", "caught-up"}, answer)
	}
	looks, torn := watch.end()
	if err := verdict(ctx, source, target, tell, looks, torn); err != nil {
		return err
	}

	tell.step("Look inside:")
	for _, words := range [][]string{
		{"epochs", "list", "shop", "--limit", "5"},
		{"epochs", "verify", "shop"},
		{"bus", "shop"},
	} {
		answer, err := mesh.weir(ctx, words...)
		if err != nil {
			return err
		}
		tell.command(words, answer)
	}
	if !cfg.Hold {
		tell.step("Done; all of it is shut down now. To look around yourself: make demo DEMO=%s ARGS=-hold", cfg.From)
		return nil
	}
	tell.step("All of it keeps running until Ctrl-C:")
	tell.line("cd %s && %s status shop --watch", dir, weir)
	tell.line("%s", source.look())
	tell.line("psql '%s'", target.URL("postgres"))
	<-ctx.Done()
	return nil
}

func weirProgram(ctx context.Context, given string) (string, error) {
	if given == "" {
		return harness.Build(ctx, "weir.dev/weir/services/weir/cmd/weir")
	}
	return filepath.Abs(given)
}

// servers starts both servers at once. What it returns is to be closed also
// after an error.
func servers(ctx context.Context, from kind) (source origin, target *harness.Postgres, err error) {
	var group errgroup.Group
	group.Go(func() (err error) {
		source, err = from.run(ctx)
		return err
	})
	group.Go(func() (err error) {
		target, err = harness.RunPostgres(ctx, harness.PostgresConfig{})
		return err
	})
	return source, target, group.Wait()
}

// verdict compares both sides row by row and adds what the reader saw.
func verdict(ctx context.Context, source origin, target *harness.Postgres, tell *narrator, looks, torn int) error {
	findings, equal, err := source.compare(ctx, target)
	if err != nil {
		return err
	}
	tell.step("Row by row, source against copy:")
	for _, f := range findings {
		tell.line("%s", f)
	}
	watched := source.torn() != ""
	if watched {
		tell.line("a reader looked at the copy %d times meanwhile and saw half a transaction %d times", looks, torn)
	}
	switch {
	case !equal || torn > 0:
		return errUnequal
	case watched && looks == 0:
		return errors.New("the reader never saw the copy")
	}
	return nil
}

// pause lets the world run on for a while.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
