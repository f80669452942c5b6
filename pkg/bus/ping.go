package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/micro"
)

// pingTimeout bounds a ping whose context has no earlier deadline.
const pingTimeout = time.Second

// ServePing answers liveness requests for a node until stop is called, and makes the node visible to `nats micro ls`.
// Every node answers for itself: the queue group is off, else one of several would answer for all.
func (c *Conn) ServePing(node, version string, meta map[string]string) (stop func() error, err error) {
	body, err := json.Marshal(meta)
	if err != nil {
		return nil, fmt.Errorf("serve ping of %s: %w", node, err)
	}
	svc, err := micro.AddService(c.ctl.nc, micro.Config{
		Name: "weir", Version: version, Description: "Weir node " + node, Metadata: meta, QueueGroupDisabled: true,
		Endpoint: &micro.EndpointConfig{
			Subject: PingSubject(node), QueueGroupDisabled: true,
			Handler: micro.HandlerFunc(func(r micro.Request) {
				_ = r.Respond(body) // the asker's time-out covers a lost answer
			}),
		},
	})
	if err != nil {
		return nil, fmt.Errorf("serve ping of %s: %w", node, foreign(err))
	}
	return svc.Stop, nil
}

// Ping asks a node whether it lives. [ErrNoResponders] comes at once and means that no connection listens for the node;
// [ErrUnknown] means that one does and did not answer in time.
func (c *Conn) Ping(ctx context.Context, node string) error {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	_, err := c.ctl.nc.RequestWithContext(ctx, PingSubject(node), nil)
	if err = foreign(err); err == nil || errors.Is(err, ErrNoResponders) {
		if err != nil {
			return fmt.Errorf("ping %s: %w", node, err)
		}
		return nil
	}
	return fmt.Errorf("ping %s: %w", node, c.denied.explain(err, PingSubject(node)))
}
