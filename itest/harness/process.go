package harness

import (
	"context"
	"testing"

	"weir.dev/weir/services/weir/verify/process"
)

// Process is one program that can be ended, frozen and started again.
type Process = process.Process

// ProcessConfig says how one program is run.
type ProcessConfig = process.Config

// StartProcess runs a program until the test ends and fails the test when it
// does not become ready. When the test fails, the end of the log goes to it.
func StartProcess(tb testing.TB, cfg ProcessConfig) *Process {
	tb.Helper()
	if cfg.Dir == "" {
		cfg.Dir = tb.TempDir()
	}
	p, err := process.Run(tb.Context(), cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		p.Kill()
		if tb.Failed() {
			tb.Logf("end of the log of %s:\n%s", cfg.Name, p.LogTail(8<<10))
		}
	})
	return p
}

// RunProcess is StartProcess for programs: the caller ends the process with
// Kill or Stop. ctx bounds the start only.
func RunProcess(ctx context.Context, cfg ProcessConfig) (*Process, error) {
	return process.Run(ctx, cfg)
}

// HTTPReady is a Ready function: a GET of the URL answers 200.
func HTTPReady(url string) func(context.Context) error { return process.HTTPReady(url) }

// Get reads a URL. An answer other than 200 is an error, with the beginning of what it says.
func Get(ctx context.Context, url string) ([]byte, error) { return process.Get(ctx, url) }

// FreePort returns a loopback TCP port that nobody listens on and that stays free while its server is down.
func FreePort(ctx context.Context) (int, error) { return process.FreePort(ctx) }
