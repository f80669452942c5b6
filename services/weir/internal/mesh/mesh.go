// Package mesh runs services of Weir side by side in one process.
//
// Role: `weir up` and `weir serve` are the services themselves with a process around them; this package adds no
// semantics of its own. Each service keeps its own connection, its own node identity and its own lease, exactly as if it
// were a process.
//
// Invariants: the process is ready when all its services are; the first service that fails ends the others.
//
// Failure: as for a process: leases expire, the leader recovers what ran here.
package mesh

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"weir.dev/weir/pkg/app"
	"weir.dev/weir/pkg/fault"
	cdcmysql "weir.dev/weir/services/cdc-mysql"
	cdcpostgres "weir.dev/weir/services/cdc-postgres"
	"weir.dev/weir/services/coordinator"
	"weir.dev/weir/services/progress"
	"weir.dev/weir/services/sink"
)

// role is a service with its default settings.
type role struct {
	name string
	run  func(ctx context.Context, env app.Env) error
	// exec runs it alone as this process, with its own settings from file, environment and flags.
	exec func(p app.Process) int
}

func service[C any](name string, defaults C, run app.Run[C]) role {
	return role{
		name: name,
		run:  func(ctx context.Context, env app.Env) error { return run(ctx, env, defaults) },
		exec: func(p app.Process) int { return app.Execute(p, name, defaults, run) },
	}
}

// roles are the services of this build.
func roles() []role {
	return []role{
		service("coordinator", coordinator.Default(), coordinator.Run),
		service("cdc-mysql", cdcmysql.Default(), cdcmysql.Run),
		service("cdc-postgres", cdcpostgres.Default(), cdcpostgres.Run),
		service("sink", sink.Default(), sink.Run),
		service("progress", progress.Default(), progress.Run),
	}
}

// Names lists the services of this build.
func Names() []string {
	var names []string
	for _, r := range roles() {
		names = append(names, r.name)
	}
	return names
}

func find(name string) (role, error) {
	all := roles()
	at := slices.IndexFunc(all, func(r role) bool { return r.name == name })
	if at < 0 {
		return role{}, fault.New(fault.CLIUsage, name, "this build has the services "+strings.Join(Names(), ", "), "command", "weir serve")
	}
	return all[at], nil
}

// Execute runs one service alone, as its own binary does, or several with their defaults; it returns the exit code.
func Execute(p app.Process, names ...string) (int, error) {
	for _, n := range names {
		if _, err := find(n); err != nil {
			return 0, err
		}
	}
	if len(names) == 1 {
		r, err := find(names[0])
		if err != nil {
			return 0, err
		}
		return r.exec(p), nil
	}
	run := func(ctx context.Context, env app.Env, _ struct{}) error { return Run(ctx, env, names...) }
	return app.Execute(p, "weir", struct{}{}, run), nil
}

// Run runs these services until ctx ends or one of them fails.
func Run(ctx context.Context, env app.Env, names ...string) error {
	chosen := make([]role, 0, len(names))
	for _, n := range names {
		r, err := find(n)
		if err != nil {
			return err
		}
		chosen = append(chosen, r)
	}
	var waiting atomic.Int64
	waiting.Store(int64(len(chosen)))
	g, ctx := errgroup.WithContext(ctx)
	for _, r := range chosen {
		own := env.As(r.name)
		own.Ready = func() {
			if waiting.Add(-1) == 0 {
				env.Ready()
			}
		}
		g.Go(func() error {
			if err := r.run(ctx, own); err != nil {
				return fmt.Errorf("%s: %w", r.name, err)
			}
			return nil
		})
	}
	return g.Wait()
}
