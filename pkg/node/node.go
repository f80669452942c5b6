package node

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/config"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/registry"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/pkg/telemetry"
)

// Config is a node's configuration. Fields are required unless they say otherwise.
type Config struct {
	// Node is the name of the lease; two services of one process need two names.
	Node string
	// Slots is how many subtasks the node takes; zero means 64.
	Slots int
	// Lease bounds the time to live of this node's lease; zero takes that of the mesh. Optional.
	Lease time.Duration
	// Version is shown to people. Optional.
	Version string
	// HTTP is the address of the process's HTTP interface, for people. Optional.
	HTTP string
	// Sources and Sinks are the connectors that this node offers, by the type's word in specs.
	Sources map[string]source.Connector
	Sinks   map[string]sink.Connector
	// Lookup resolves references on this node.
	Lookup config.Lookup
	Logger *slog.Logger
	// Meter and Tracer record what the node and its subtasks do; nil records nothing. Optional.
	Meter  metric.Meter
	Tracer trace.Tracer
	// Service names the node's conditions of readiness; Check takes them. Optional.
	Service string
	Check   func(name string, check func() error) (remove func())
	// HandOver is how long the node waits at its end until others run its subtasks; zero stops them at once, which is
	// right where all of a mesh ends together. Optional.
	HandOver time.Duration
	// Ready is called each time the node has taken its lease and follows the heads. Optional.
	Ready func()
	// Silent publishes no reports: what they cost is measured by leaving them out. Optional.
	Silent bool
	// Between puts something between the node and the mesh; tests put faults there. Optional.
	Between func(Mesh) Mesh
}

func (c Config) withDefaults() Config {
	if c.Slots <= 0 {
		c.Slots = 64
	}
	if c.Ready == nil {
		c.Ready = func() {}
	}
	if c.Check == nil {
		c.Check = func(string, func() error) func() { return func() {} }
	}
	if c.Between == nil {
		c.Between = func(m Mesh) Mesh { return m }
	}
	return c
}

// capabilities lists what the node offers, in order.
func (c Config) capabilities() []string {
	var all []string
	for kind := range c.Sources {
		all = append(all, plan.SourceCapability(kind))
	}
	for kind := range c.Sinks {
		all = append(all, plan.SinkCapability(kind))
	}
	slices.Sort(all)
	return all
}

// Pauses of a node that waits for the mesh.
const (
	waitSoon = 100 * time.Millisecond
	waitLate = 2 * time.Second
	// goodbye bounds giving the lease back.
	goodbye = 2 * time.Second
)

// Run hosts subtasks until ctx ends. It waits for the registry, which a coordinator makes. A lost lease is no end: the
// node stops its subtasks and comes back as another incarnation. The caller closes conn afterwards.
func Run(ctx context.Context, conn *bus.Conn, cfg Config) error {
	cfg = cfg.withDefaults()
	log := cfg.Logger
	health := newCondition(cfg.Lease)
	defer health.register(cfg.Service, cfg.Check)()
	m, err := newMetrics(telemetry.Meter(cfg.Meter), health)
	if err != nil {
		return fmt.Errorf("make instruments: %w", err)
	}
	defer m.close()
	reg, err := openRegistry(ctx, conn, cfg.Lease, log)
	if err != nil {
		return err
	}
	cfg.Lease = reg.TTL()
	health.keepTo(cfg.Lease)
	var seen show
	if err := conn.ServePing(cfg.Node, cfg.discovery(&seen)); err != nil {
		return err
	}
	for {
		err := session(ctx, conn, reg, cfg, m, health, &seen)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, registry.ErrLeaseLost):
			m.loseLease(ctx)
			log.WarnContext(ctx, "lease lost, all subtasks stopped", telemetry.KeyError, err)
		default:
			return err
		}
	}
}

// openRegistry waits until the buckets are there.
func openRegistry(ctx context.Context, conn *bus.Conn, ttl time.Duration, log *slog.Logger) (*registry.Registry, error) {
	for pause, told := waitSoon, false; ; pause = min(2*pause, waitLate) {
		reg, err := registry.Open(ctx, conn, ttl)
		if err == nil {
			return reg, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if errors.Is(err, bus.ErrDenied) {
			return nil, fmt.Errorf("open registry: %w", err)
		}
		if !told {
			told = true
			log.InfoContext(ctx, "waiting for a coordinator to make the registry", telemetry.KeyError, err)
		}
		if err := sleep(ctx, pause); err != nil {
			return nil, err
		}
	}
}

// session is the life of one incarnation: from taking the lease to losing it.
func session(
	ctx context.Context, conn *bus.Conn, reg *registry.Registry, cfg Config, m *metrics, health *condition, seen *show,
) error {
	log := cfg.Logger
	me := job.NodeLease{
		Node: cfg.Node, Incarnation: incarnation(), Capabilities: cfg.capabilities(), Slots: cfg.Slots,
		Version: cfg.Version, HTTP: cfg.HTTP, Started: time.Now().UTC(),
	}
	lease, err := acquire(ctx, reg, me, log)
	if err != nil {
		return err
	}
	log = log.With("incarnation", me.Incarnation)
	log.InfoContext(ctx, "node has joined the mesh", "capabilities", me.Capabilities, "slots", me.Slots)
	health.leased(lease.Until())
	defer health.leased(time.Time{})
	held, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	g := newGoing(cfg.HandOver, me, func() { cancel(context.Cause(ctx)) })
	defer context.AfterFunc(ctx, g.begin)()
	kept := make(chan struct{})
	go func() {
		defer close(kept)
		keep(held, lease, health, g, cancel, log)
	}()
	n := newNode(cfg, me, cfg.Between(meshOn(conn, reg)), conn, log)
	n.metrics, n.health, n.show, n.going = m, health, seen, g
	n.run(held)
	seen.at.Store(&hosted{})
	err = context.Cause(held)
	cancel(err)
	<-kept
	if !errors.Is(err, registry.ErrLeaseLost) {
		// A successor need not wait for the lease to expire. When this fails, it waits.
		bye, done := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
		defer done()
		if err := lease.Release(bye); err != nil {
			log.WarnContext(bye, "lease not given back, it will expire", telemetry.KeyError, err)
		}
	}
	return err
}

// acquire waits for the name: an earlier process with it may not have expired yet.
func acquire(ctx context.Context, reg *registry.Registry, me job.NodeLease, log *slog.Logger) (*registry.Lease, error) {
	for pause, since := waitSoon, time.Now(); ; pause = min(2*pause, waitLate) {
		l, err := reg.AcquireNode(ctx, me)
		if err == nil {
			return l, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if errors.Is(err, bus.ErrConflict) && time.Since(since) > 5*reg.TTL() {
			return nil, fault.Wrap(err, fault.RegNodeTwice, me.Node, "another process renews the lease of this name")
		}
		log.DebugContext(ctx, "lease not taken yet", telemetry.KeyError, err)
		if err := sleep(ctx, min(pause, reg.TTL()/3)); err != nil {
			return nil, err
		}
	}
}

// retryRenewal is the pause after a renewal that failed.
const retryRenewal = 100 * time.Millisecond

// keep renews the lease a third of its time to live after the sending of the last renewal, at once to tell that the node
// is going, and ends the session when the lease is lost or may be (N1).
func keep(
	ctx context.Context, l *registry.Lease, health *condition, g *going, lost context.CancelCauseFunc, log *slog.Logger,
) {
	var value []byte // nil: as it was
	failing := false
	told := g.told
	for {
		t := time.NewTimer(max(time.Until(l.Until())-2*l.Interval(), retryRenewal))
		select {
		case <-ctx.Done():
		case <-t.C:
		case <-told:
			value, told = g.lease, nil
		}
		t.Stop()
		if ctx.Err() != nil {
			return
		}
		err := l.Renew(ctx, value)
		switch {
		case err == nil:
			health.leased(l.Until())
			failing = false
			continue
		case ctx.Err() != nil:
			return
		case errors.Is(err, registry.ErrLeaseLost):
			lost(err)
			return
		case !time.Now().Before(l.Until()):
			lost(fmt.Errorf("%w: not renewed in time: %w", registry.ErrLeaseLost, err))
			return
		}
		if !failing {
			log.WarnContext(ctx, "lease not renewed, trying again", telemetry.KeyError, err)
		}
		failing = true
	}
}

func incarnation() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// sleep waits, but not longer than ctx lives.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
