package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// NATSCluster is several NATS servers with JetStream that replicate to each other, each a process of its own. What lies in
// memory on one server alone vanishes with it.
type NATSCluster struct {
	Servers []*NATS
}

// StartNATSCluster runs a cluster of n servers until the test ends, and waits until they are one.
func StartNATSCluster(tb testing.TB, n int) *NATSCluster {
	tb.Helper()
	configs := make([]natsConfig, n)
	var routes []string
	for i := range configs {
		c, err := natsProcess(tb.Context(), tb.TempDir())
		if err == nil {
			c.routes, err = FreePort(tb.Context())
		}
		if err != nil {
			tb.Fatal(err)
		}
		c.name = fmt.Sprintf("nats-%d", i+1)
		routes = append(routes, fmt.Sprintf("nats://127.0.0.1:%d", c.routes))
		configs[i] = c
	}
	// None is ready before the others are there.
	cluster := &NATSCluster{Servers: make([]*NATS, n)}
	failed := make([]error, n)
	var starting sync.WaitGroup
	for i, c := range configs {
		c.others = routes
		starting.Go(func() {
			p, err := RunProcess(tb.Context(), c.process())
			if failed[i] = err; err == nil {
				cluster.Servers[i] = c.server(p)
			}
		})
	}
	starting.Wait()
	for _, s := range cluster.Servers {
		if s != nil {
			tb.Cleanup(func() {
				s.Kill()
				if tb.Failed() {
					tb.Logf("end of the log of %s:\n%s", s.Name, s.LogTail(8<<10))
				}
			})
		}
	}
	for _, err := range failed {
		if err != nil {
			tb.Fatal(err)
		}
	}
	return cluster
}

// URL names all servers, as a client is given them.
func (c *NATSCluster) URL() string {
	var urls []string
	for _, s := range c.Servers {
		urls = append(urls, s.URL)
	}
	return strings.Join(urls, ",")
}

// Leader finds the server that leads a stream; nil while none does, or no server that answers knows the stream.
func (c *NATSCluster) Leader(ctx context.Context, stream string) *NATS {
	for _, s := range c.Servers {
		if led, err := s.streams(ctx); err == nil && led[stream] == s.Name {
			return s
		}
	}
	return nil
}

// Keeps asks the server's monitoring whether it has a stream, or a replica of it.
func (n *NATS) Keeps(ctx context.Context, stream string) (bool, error) {
	all, err := n.streams(ctx)
	_, kept := all[stream]
	return kept, err
}

// streams lists the streams of the server with the names of their leaders; empty for a stream of one server alone.
func (n *NATS) streams(ctx context.Context) (leaders map[string]string, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	state, err := Get(ctx, n.Monitor+"/jsz?streams=true&accounts=true")
	if err != nil {
		return nil, err
	}
	var all struct {
		Accounts []struct {
			Streams []struct {
				Name    string `json:"name"`
				Cluster struct {
					Leader string `json:"leader"`
				} `json:"cluster"`
			} `json:"stream_detail"`
		} `json:"account_details"`
	}
	if err := json.Unmarshal(state, &all); err != nil {
		return nil, fmt.Errorf("decode the state of %s: %w", n.Name, err)
	}
	leaders = make(map[string]string)
	for _, account := range all.Accounts {
		for _, s := range account.Streams {
			leaders[s.Name] = s.Cluster.Leader
		}
	}
	return leaders, nil
}
