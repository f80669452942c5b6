package progress

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/sync/errgroup"

	"weir.dev/weir/pkg/app"
	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/progress/gather"
	"weir.dev/weir/pkg/registry"
	"weir.dev/weir/pkg/telemetry"
	"weir.dev/weir/services/progress/internal/notify"
	"weir.dev/weir/services/progress/internal/store"
	"weir.dev/weir/services/progress/internal/view"
	"weir.dev/weir/services/progress/internal/web"
)

// retry is the pause before the registry is looked for again.
const retry = 500 * time.Millisecond

// Run is one progress service. It returns when ctx ends.
func Run(ctx context.Context, env app.Env, cfg Config) error {
	log := env.Telemetry.Logger
	token, err := cfg.Token.Resolve(env.Lookup)
	if err != nil {
		return fmt.Errorf("read the token: %w", err)
	}
	if token == "" && !loopback(env.HTTP) {
		log.WarnContext(ctx, "everybody who reaches the address may read how far jobs are; set a token", telemetry.KeyAddr, env.HTTP)
	}
	hook, err := webhook(env, cfg)
	if err != nil {
		return err
	}
	board := view.NewBoard(3*cfg.Interval.Std() + retry)
	if err := view.Instruments(telemetry.Meter(env.Telemetry.Meter), board); err != nil {
		return fmt.Errorf("make instruments: %w", err)
	}
	conn, disconnect, err := env.Connect(ctx)
	if err != nil {
		return err
	}
	defer disconnect()
	reg, err := open(ctx, conn)
	if err != nil {
		return err
	}
	records, err := store.Open(ctx, conn)
	if err != nil {
		return err
	}
	var tell *notify.Notifier
	if hook != nil {
		name := env.Node + "-" + rand.Text()
		if tell, err = notify.New(ctx, notify.Config{Name: name, Conn: conn, Board: board, To: hook, Log: log}); err != nil {
			return err
		}
	}
	defer env.Health.Ready(env.Service+" view", board.Check)()
	if env.Handle != nil {
		web.Serve(env.Handle, web.Config{Board: board, Token: token, Version: app.Version(), Closing: ctx.Done()})
	}
	w := watcher{
		log: log, board: board, read: gather.New(conn, reg), records: records, interval: cfg.Interval.Std(),
		filling: make(map[filled]*fill),
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return w.run(ctx, env.Ready) })
	g.Go(func() error { return follow(ctx, conn, board) })
	if tell != nil {
		g.Go(func() error { return tell.Run(ctx) })
	}
	return g.Wait()
}

// webhook makes what events are posted by; nil when no address is set.
func webhook(env app.Env, cfg Config) (*notify.Hook, error) {
	address, err := cfg.Webhook.Resolve(env.Lookup)
	if err != nil {
		return nil, fmt.Errorf("read the webhook's address: %w", err)
	}
	secret, err := cfg.WebhookSecret.Resolve(env.Lookup)
	if err != nil {
		return nil, fmt.Errorf("read the webhook's secret: %w", err)
	}
	if address == "" {
		return nil, nil //nolint:nilnil // none is asked for
	}
	return notify.NewHook(address, secret)
}

// open waits for the registry, which a coordinator makes.
func open(ctx context.Context, conn *bus.Conn) (*registry.Registry, error) {
	for {
		reg, err := registry.Open(ctx, conn, 0)
		if err == nil {
			return reg, nil
		}
		if !errors.Is(err, bus.ErrNotFound) && fault.ClassOf(err) != fault.Transient {
			return nil, err
		}
		t := time.NewTimer(retry)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return nil, context.Cause(ctx)
		}
	}
}

// loopback reports whether only this host reaches an address.
func loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return addr == ""
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
