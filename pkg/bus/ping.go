package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/nats-io/nats.go/micro"
)

// pingTimeout bounds a ping whose context has no earlier deadline.
const pingTimeout = time.Second

// Discovery is how a process shows itself to `nats micro ls`, `info`, `ping` and `stats`.
type Discovery struct {
	// Service is what it does, "sink"; it is listed as "weir-sink".
	Service string
	// Version is that of the build. NATS takes semantic versions only: another one is listed as 0.0.0, and under "build"
	// as it is.
	Version string
	// HTTP is the address of health, metrics and profiles. Optional.
	HTTP string
	// Metadata is what else stays true for as long as the process lives. Optional.
	Metadata map[string]string
	// Now is what changes, asked at each `nats micro stats` and encoded as JSON; it must not wait. Optional.
	Now func() any
}

func (d Discovery) metadata(node string) map[string]string {
	m := map[string]string{"node": node, "role": d.Service, "build": d.Version}
	if d.HTTP != "" {
		m["http"] = d.HTTP
	}
	maps.Copy(m, d.Metadata)
	return m
}

// ServePing answers liveness requests for a node until c is closed, and NATS micro discovery with them. It cannot be
// stopped before: the client library would drain its subscriptions, on a timer that belongs to the whole process (see
// link). Every node answers for itself: the queue group is off, else one of several would answer for all. A user who may
// not subscribe below $SRV is not listed, and that is all: liveness has a subject of its own.
func (c *Conn) ServePing(node string, d Discovery) error {
	body, err := json.Marshal(map[string]string{"node": node})
	if err != nil {
		return fmt.Errorf("serve ping of %s: %w", node, err)
	}
	p := &pinger{c: c, cfg: micro.Config{
		Name: ServiceName(d.Service), Version: semver(d.Version), Description: "Weir: " + d.Service + " on node " + node,
		Metadata: d.metadata(node), QueueGroupDisabled: true,
		Endpoint: &micro.EndpointConfig{
			Subject: PingSubject(node), QueueGroupDisabled: true,
			Metadata: map[string]string{"purpose": "liveness of node " + node},
			Handler: micro.HandlerFunc(func(r micro.Request) {
				_ = r.Respond(body) // the asker's time-out covers a lost answer
			}),
		},
	}}
	if d.Now != nil {
		p.cfg.StatsHandler = func(*micro.Endpoint) any { return d.Now() }
	}
	// Without a connection just now it is served with the next.
	if err := p.add(); err != nil && !errors.Is(err, ErrDisconnected) {
		return fmt.Errorf("serve ping of %s: %w", node, err)
	}
	c.OnReconnect(func() {
		if err := p.add(); err != nil {
			c.log.Warn("liveness endpoint not served", "error", err.Error())
		}
	})
	return nil
}

// pinger is a node's liveness endpoint; each session of the control connection needs it anew.
type pinger struct {
	c   *Conn
	cfg micro.Config

	mu sync.Mutex
	s  *session // the one that serves
}

func (p *pinger) add() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, err := p.c.ctl.session()
	if err != nil || s == p.s {
		return err
	}
	if _, err := micro.AddService(s.nc, p.cfg); err != nil {
		return foreign(err)
	}
	p.s = s
	return nil
}

// Ping asks a node whether it lives. [ErrNoResponders] comes at once and means that no connection listens for the node;
// [ErrUnknown] means that one does and did not answer in time.
func (c *Conn) Ping(ctx context.Context, node string) error {
	ctx, stop := context.WithTimeout(ctx, pingTimeout)
	defer stop()
	s, ctx, cancel, err := c.ctl.limit(ctx)
	if err == nil {
		defer cancel()
		_, err = s.nc.RequestWithContext(ctx, PingSubject(node), nil)
	}
	if err != nil {
		return fmt.Errorf("ping %s: %w", node, c.denied.explain(foreign(err), PingSubject(node)))
	}
	return nil
}
