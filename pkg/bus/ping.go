package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/micro"
)

// pingTimeout bounds a ping whose context has no earlier deadline.
const pingTimeout = time.Second

// ServePing answers liveness requests for a node until c is closed, and makes the node visible to `nats micro ls`. It
// cannot be stopped before: the client library would drain its subscriptions, on a timer that belongs to the whole
// process (see link). Every node answers for itself: the queue group is off, else one of several would answer for all.
func (c *Conn) ServePing(node, version string, meta map[string]string) error {
	body, err := json.Marshal(meta)
	if err != nil {
		return fmt.Errorf("serve ping of %s: %w", node, err)
	}
	p := &pinger{c: c, cfg: micro.Config{
		Name: "weir", Version: version, Description: "Weir node " + node, Metadata: meta, QueueGroupDisabled: true,
		Endpoint: &micro.EndpointConfig{
			Subject: PingSubject(node), QueueGroupDisabled: true,
			Handler: micro.HandlerFunc(func(r micro.Request) {
				_ = r.Respond(body) // the asker's time-out covers a lost answer
			}),
		},
	}}
	if err := p.add(); err != nil {
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
