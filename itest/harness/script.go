package harness

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// RunScript runs a script of the repository's folder scripts and returns what it prints to its standard output, without space around
// it: where the thing is that it has made sure of. The error has what the script said.
func RunScript(ctx context.Context, name string, args ...string) (string, error) {
	root, err := RepoRoot()
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(root, "scripts", name), args...)
	cmd.Dir = root
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("scripts/%s: %w\n%s", name, err, said.String())
	}
	return strings.TrimSpace(string(out)), nil
}

// Script is RunScript for tests.
func Script(tb testing.TB, name string, args ...string) string {
	tb.Helper()
	out, err := RunScript(tb.Context(), name, args...)
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

// ClickHouse makes sure that the npm package chdb is there and returns the folder that NODE_PATH has to name.
func ClickHouse(ctx context.Context) (string, error) {
	folder, err := RunScript(ctx, "setup-chdb.sh")
	if err != nil {
		return "", err
	}
	return filepath.Join(folder, "node_modules"), nil
}
