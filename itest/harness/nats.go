package harness

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// NATS is a NATS server with JetStream as a process of its own. Its store
// survives Kill and Start; what JetStream keeps in memory does not.
type NATS struct {
	*Process

	// URL for clients; the same over all restarts.
	URL string
	// Name is that of the server, Monitor the base URL of its monitoring.
	Name, Monitor string
}

// StartNATS runs a server until the test ends.
func StartNATS(tb testing.TB) *NATS {
	tb.Helper()
	c, err := natsProcess(tb.Context(), tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	return c.server(StartProcess(tb, c.process()))
}

// natsConfig is how one server is run.
type natsConfig struct {
	bin, dir, name        string
	port, monitor, routes int
	// others are the servers of its cluster, by their routes' URLs.
	others []string
}

func natsProcess(ctx context.Context, dir string) (natsConfig, error) {
	c := natsConfig{dir: dir, name: "natsd"}
	var err error
	if c.bin, err = Build(ctx, "weir.dev/weir/itest/cmd/natsd"); err != nil {
		return c, err
	}
	if c.port, err = FreePort(ctx); err != nil {
		return c, err
	}
	c.monitor, err = FreePort(ctx)
	return c, err
}

func (c natsConfig) server(p *Process) *NATS {
	return &NATS{Process: p, URL: fmt.Sprintf("nats://127.0.0.1:%d", c.port), Name: c.name, Monitor: c.monitorURL()}
}

func (c natsConfig) monitorURL() string { return fmt.Sprintf("http://127.0.0.1:%d", c.monitor) }

func (c natsConfig) process() ProcessConfig {
	args := []string{
		"-port", strconv.Itoa(c.port), "-monitor", strconv.Itoa(c.monitor), "-store", filepath.Join(c.dir, "jetstream"),
		"-name", c.name,
	}
	if c.routes != 0 {
		args = append(args, "-cluster", strconv.Itoa(c.routes), "-routes", strings.Join(c.others, ","))
	}
	return ProcessConfig{Name: c.name, Path: c.bin, Args: args, Dir: c.dir, Ready: HTTPReady(c.monitorURL() + "/healthz")}
}
