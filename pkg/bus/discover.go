package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
)

// discoverTime is how long answers are waited for: nobody knows how many there are.
const discoverTime = 500 * time.Millisecond

// Discovered is a process that has answered for itself.
type Discovered struct {
	Service string `json:"service"`
	Version string `json:"version"`
	// Metadata holds what [Discovery] says: node, role, build, http.
	Metadata map[string]string `json:"metadata,omitempty"`
	// Now is what it says of this moment.
	Now json.RawMessage `json:"now,omitempty"`
}

// Discover asks every service of Weir for itself and returns those that answer within half a second, by service and node.
func (c *Conn) Discover(ctx context.Context) ([]Discovered, error) {
	s, ctx, cancel, err := c.ctl.limit(ctx)
	if err != nil {
		return nil, err
	}
	defer cancel()
	subject, err := micro.ControlSubject(micro.StatsVerb, "", "")
	if err != nil {
		return nil, err
	}
	answers := make(chan *nats.Msg, 1024)
	inbox := s.nc.NewInbox()
	sub, err := s.subscribe(inbox, answers)
	if err != nil {
		return nil, fmt.Errorf("discover services: %w", err)
	}
	defer func() { _ = sub.Unsubscribe() }() // the connection outlives it
	if err := s.nc.PublishRequest(subject, inbox, nil); err != nil {
		return nil, fmt.Errorf("discover services: %w", unsent(err))
	}
	late := time.NewTimer(discoverTime)
	defer late.Stop()
	var all []Discovered
	for {
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("discover services: %w", context.Cause(ctx))
		case <-late.C:
			slices.SortFunc(all, func(a, b Discovered) int {
				return strings.Compare(a.Service+" "+a.Metadata["node"], b.Service+" "+b.Metadata["node"])
			})
			return all, nil
		case m := <-answers:
			var st micro.Stats
			if json.Unmarshal(m.Data, &st) != nil || !strings.HasPrefix(st.Name, servicePrefix) {
				continue // nobody answers, or somebody else's service
			}
			d := Discovered{Service: st.Name, Version: st.Version, Metadata: st.Metadata}
			if len(st.Endpoints) > 0 {
				d.Now = st.Endpoints[0].Data
			}
			all = append(all, d)
		}
	}
}
