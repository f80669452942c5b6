package harness

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"syscall"
	"testing"
)

// RepoRoot returns the folder of go.work, found upwards from the working
// directory. Tests run in their package's folder and commands at the root, so
// both find it.
func RepoRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find repository root: %w", err)
	}
	for at := dir; ; at = filepath.Dir(at) {
		_, err := os.Stat(filepath.Join(at, "go.work"))
		switch {
		case err == nil:
			return at, nil
		case !errors.Is(err, fs.ErrNotExist):
			return "", fmt.Errorf("find repository root: %w", err)
		case at == filepath.Dir(at):
			return "", fmt.Errorf("find repository root: no go.work in %s or above", dir)
		}
	}
}

// BuildBinary builds the command with the given import path from this checkout
// and returns the path of the executable. An executable that is up to date is
// not linked again, whichever test process built it.
func BuildBinary(tb testing.TB, importPath string) string {
	tb.Helper()
	bin, err := Build(tb.Context(), importPath)
	if err != nil {
		tb.Fatal(err)
	}
	return bin
}

// Build is BuildBinary for programs. The executable lies in the user's cache
// folder and is replaced by rename, so a copy that is running goes on.
func Build(ctx context.Context, importPath string) (string, error) {
	root, err := RepoRoot()
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("build %s: %w", importPath, err)
	}
	// One folder per checkout: two clones must not fight over one executable.
	checkout := fnv.New32a()
	checkout.Write([]byte(root))
	dir := filepath.Join(cache, "weir", "itest", fmt.Sprintf("%08x", checkout.Sum32()))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("build %s: %w", importPath, err)
	}
	bin := filepath.Join(dir, path.Base(importPath))
	unlock, err := lockFile(bin + ".lock")
	if err != nil {
		return "", fmt.Errorf("build %s: %w", importPath, err)
	}
	defer unlock()

	cmd := exec.CommandContext(ctx, "go", "build", "-o", bin, importPath)
	cmd.Dir = root
	// A build folder on the same file system makes the last step a rename.
	cmd.Env = append(os.Environ(), "GOTMPDIR="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", importPath, err, out)
	}
	return bin, nil
}

// lockFile waits for the exclusive lock on a file, which the kernel releases
// when its holder dies.
func lockFile(name string) (unlock func(), err error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", name, err)
	}
	return func() { f.Close() }, nil
}
