package coordinator

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"weir.dev/weir/pkg/app"
	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/registry"
	"weir.dev/weir/pkg/telemetry"
)

// retry is the pause before the bus is tried again while it cannot be reached.
const retry = 500 * time.Millisecond

// Run is one coordinator: it makes the base of the mesh on the bus, stands by, leads when the lease is free, and goes
// back to standing by when another leader has taken over. It returns when ctx ends, or with BUS_REGRESSED when the
// registry has lost writes.
func Run(ctx context.Context, env app.Env, cfg Config) error {
	log := env.Telemetry.Logger
	m, err := newMetrics(telemetry.Meter(env.Telemetry.Meter))
	if err != nil {
		return fmt.Errorf("make instruments: %w", err)
	}
	conn, disconnect, err := env.Connect(ctx)
	if err != nil {
		return err
	}
	defer disconnect()
	c := &coordinator{conn: conn, cfg: cfg, log: log, metrics: m, tracer: telemetry.Tracer(env.Telemetry.Tracer), owner: newOwner(env.Node)}
	if err := c.ensureBase(ctx); err != nil {
		return err
	}
	if c.reg, err = registry.Open(ctx, conn, cfg.Lease.Std()); err != nil {
		return err
	}
	if err := conn.ServePing(env.Node, c.discovery(env.HTTP)); err != nil {
		return err
	}
	defer env.Health.Ready(env.Service+" leader", func() error { return c.view.check(time.Now(), 3*c.reg.TTL()) })()
	defer conn.OnReconnect(func() { c.reconnected(ctx) })()
	if env.Ready != nil {
		env.Ready()
	}
	return c.run(ctx)
}

// coordinator is one instance.
type coordinator struct {
	conn    *bus.Conn
	reg     *registry.Registry
	cfg     Config
	log     *slog.Logger
	metrics *metrics
	tracer  trace.Tracer
	owner   owner
	view    view
	// unsettled is called when the bus is back; it is nil while this instance does not lead.
	unsettled atomic.Pointer[func()]
}

// owner is what the leader's lease says.
type owner struct {
	Node        string `json:"node"`
	Incarnation string `json:"incarnation"`
}

func newOwner(node string) owner { return owner{Node: node, Incarnation: randomID()} }

// randomID is 64 random bits as text.
func randomID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// ensureBase makes what every process needs. While the bus cannot be reached it waits; other services wait for it.
func (c *coordinator) ensureBase(ctx context.Context) error {
	base := bus.BaseConfig{Replicas: c.cfg.Replicas, LeaseTTL: c.cfg.Lease.Std(), MemoryState: c.cfg.Memory}
	for told := false; ; told = true {
		err := c.conn.EnsureBase(ctx, base)
		if err == nil {
			return nil
		}
		if fault.ClassOf(err) == fault.Permanent {
			return fmt.Errorf("make the base of the mesh: %w", err)
		}
		if !told {
			c.log.WarnContext(ctx, "the base of the mesh cannot be made yet", telemetry.Err(err))
		}
		if !pause(ctx, retry) {
			return fmt.Errorf("make the base of the mesh: %w", context.Cause(ctx))
		}
	}
}

// reconnected makes again what vanished with the server: memory streams and their configuration.
func (c *coordinator) reconnected(ctx context.Context) {
	if err := c.ensureBase(ctx); err != nil {
		if ctx.Err() == nil {
			c.log.ErrorContext(ctx, "the base of the mesh cannot be made again", telemetry.Err(err))
		}
		return
	}
	if f := c.unsettled.Load(); f != nil {
		(*f)()
	}
}

// run stands by and leads in turn.
func (c *coordinator) run(ctx context.Context) error {
	for {
		lease, err := c.standBy(ctx)
		if err != nil {
			return err
		}
		err = c.lead(ctx, lease)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case fault.ClassOf(err) == fault.Permanent:
			return err
		}
		c.log.WarnContext(ctx, "leadership ended", telemetry.Err(err))
		if fault.ClassOf(err) != fault.Fenced && !pause(ctx, retry) {
			return context.Cause(ctx)
		}
	}
}

// standBy waits until the leader's lease is free and takes it.
func (c *coordinator) standBy(ctx context.Context) (*registry.Lease, error) {
	value, err := json.Marshal(c.owner)
	if err != nil {
		return nil, fmt.Errorf("encode lease: %w", err)
	}
	w := c.reg.WatchLeader(ctx)
	defer w.Close()
	// A watch is only faster: the lease is tried again without it too.
	again := time.NewTicker(c.reg.TTL())
	defer again.Stop()
	for told := false; ; told = true {
		lease, err := c.reg.Acquire(ctx, bus.LeaderKey, value)
		switch {
		case err == nil:
			return lease, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case errors.Is(err, bus.ErrConflict):
			c.view.led(time.Now())
			if !told {
				c.log.InfoContext(ctx, "standing by")
			}
		default:
			c.log.WarnContext(ctx, "the leader's lease cannot be tried", telemetry.Err(err))
			if !pause(ctx, retry) {
				return nil, context.Cause(ctx)
			}
			continue
		}
		if err := awaitFree(ctx, w, again.C); err != nil {
			return nil, err
		}
	}
}

// awaitFree returns when the lease may be free.
func awaitFree(ctx context.Context, w *bus.Watch, again <-chan time.Time) error {
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-again:
			return nil
		case u, ok := <-w.Updates():
			switch {
			case !ok:
				return fmt.Errorf("watch the leader's lease: %w", bus.ErrClosed)
			case u.Kind == bus.Deleted, u.Kind == bus.Expired:
				return nil
			}
		}
	}
}

// lead holds the lease and runs a leader under it. The lease is given back when ctx ends, so that a successor need not
// wait for it to expire.
func (c *coordinator) lead(ctx context.Context, lease *registry.Lease) error {
	leading, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	renewed := make(chan struct{})
	go func() {
		defer close(renewed)
		stop(lease.Keep(leading))
	}()
	err := c.leadUnder(leading)
	stop(err)
	<-renewed
	if ctx.Err() != nil || !errors.Is(err, registry.ErrLeaseLost) {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if free := lease.Release(bounded); free != nil {
			c.log.DebugContext(ctx, "the leader's lease was not given back", telemetry.Err(free))
		}
	}
	return err
}

// pause waits; false when ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
