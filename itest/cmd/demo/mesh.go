package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"weir.dev/weir/itest/harness"
)

// mesh is one `weir up` and the commands that ask it. All run in one folder, so
// that the commands find the process by its data directory.
type mesh struct {
	program string
	dir     string
	env     []string
	args    []string
	ready   func(context.Context) error
	process *harness.Process
}

func newMesh(ctx context.Context, program, dir, spec string, env []string) (*mesh, error) {
	if err := os.WriteFile(filepath.Join(dir, "shop.yaml"), []byte(spec), 0o600); err != nil {
		return nil, err
	}
	nats, err := harness.FreePort(ctx)
	if err != nil {
		return nil, err
	}
	http, err := harness.FreePort(ctx)
	if err != nil {
		return nil, err
	}
	return &mesh{
		program: program,
		dir:     dir,
		env:     env,
		args: []string{
			"up", "shop.yaml",
			"--nats-listen", fmt.Sprintf("127.0.0.1:%d", nats),
			"--http", fmt.Sprintf("127.0.0.1:%d", http),
		},
		ready: harness.HTTPReady(fmt.Sprintf("http://127.0.0.1:%d/readyz", http)),
	}, nil
}

// up starts the process, for the first time or again, always the same way.
func (m *mesh) up(ctx context.Context) error {
	if m.process != nil {
		return m.process.Start(ctx)
	}
	process, err := harness.RunProcess(ctx, harness.ProcessConfig{
		Name: "weir-up", Path: m.program, Args: m.args, Env: m.env, Dir: m.dir, Ready: m.ready,
	})
	if err != nil {
		return err
	}
	m.process = process
	return nil
}

// end stops the process in order, or at once when it takes too long.
func (m *mesh) end() {
	if m.process == nil || !m.process.Running() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if _, err := m.process.Stop(ctx); err != nil {
		m.process.Kill()
	}
}

// weir runs one command and returns what it printed.
func (m *mesh) weir(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, m.program, args...)
	cmd.Dir = m.dir
	cmd.Env = append(os.Environ(), m.env...) // epochs verify reads the copy's ledger
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("weir %s: %w\n%s\nend of the log of weir up:\n%s",
			strings.Join(args, " "), err, out, m.process.LogTail(4<<10))
	}
	return string(out), nil
}
