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
}

// StartNATS runs a server until the test ends.
func StartNATS(tb testing.TB) *NATS {
	tb.Helper()
	cfg, url, err := natsProcess(tb.Context(), tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	return &NATS{Process: StartProcess(tb, cfg), URL: url}
}

// RunNATS is StartNATS for programs. Store and log lie in dir, which must
// exist; the caller calls Kill or Stop.
func RunNATS(ctx context.Context, dir string) (*NATS, error) {
	cfg, url, err := natsProcess(ctx, dir)
	if err != nil {
		return nil, err
	}
	p, err := RunProcess(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &NATS{Process: p, URL: url}, nil
}

func natsProcess(ctx context.Context, dir string) (ProcessConfig, string, error) {
	bin, err := Build(ctx, "weir.dev/weir/itest/cmd/natsd")
	if err != nil {
		return ProcessConfig{}, "", err
	}
	port, err := FreePort(ctx)
	if err != nil {
		return ProcessConfig{}, "", err
	}
	monitor, err := FreePort(ctx)
	if err != nil {
		return ProcessConfig{}, "", err
	}
	return ProcessConfig{
		Name: "natsd",
		Path: bin,
		Args: []string{
			"-port", strconv.Itoa(port), "-monitor", strconv.Itoa(monitor),
			"-store", filepath.Join(dir, "jetstream"),
		},
		Dir:   dir,
		Ready: HTTPReady(fmt.Sprintf("http://127.0.0.1:%d/healthz", monitor)),
	}, fmt.Sprintf("nats://127.0.0.1:%d", port), nil
}
