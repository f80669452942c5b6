package harness

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"testing"
)

// NATS is a NATS server with JetStream as a process of its own. Its store
// survives Kill and Start; what JetStream keeps in memory does not.
type NATS struct {
	*Process

	// URL for clients; the same over all restarts.
	URL string
	// Monitor is the URL of its monitoring address.
	Monitor string
}

// StartNATS runs a server until the test ends.
func StartNATS(tb testing.TB) *NATS {
	tb.Helper()
	cfg, n, err := natsProcess(tb.Context(), tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	n.Process = StartProcess(tb, cfg)
	return n
}

// RunNATS is StartNATS for programs. Store and log lie in dir, which must
// exist; the caller calls Kill or Stop.
func RunNATS(ctx context.Context, dir string) (*NATS, error) {
	cfg, n, err := natsProcess(ctx, dir)
	if err != nil {
		return nil, err
	}
	if n.Process, err = RunProcess(ctx, cfg); err != nil {
		return nil, err
	}
	return n, nil
}

func natsProcess(ctx context.Context, dir string) (ProcessConfig, *NATS, error) {
	bin, err := Build(ctx, "weir.dev/weir/itest/cmd/natsd")
	if err != nil {
		return ProcessConfig{}, nil, err
	}
	port, err := FreePort(ctx)
	if err != nil {
		return ProcessConfig{}, nil, err
	}
	monitor, err := FreePort(ctx)
	if err != nil {
		return ProcessConfig{}, nil, err
	}
	n := &NATS{URL: fmt.Sprintf("nats://127.0.0.1:%d", port), Monitor: fmt.Sprintf("http://127.0.0.1:%d", monitor)}
	return ProcessConfig{
		Name: "natsd",
		Path: bin,
		Args: []string{
			"-port", strconv.Itoa(port), "-monitor", strconv.Itoa(monitor),
			"-store", filepath.Join(dir, "jetstream"),
		},
		Dir:   dir,
		Ready: HTTPReady(n.Monitor + "/healthz"),
	}, n, nil
}
