package inspect

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/itest/harness"
)

// shell runs lines as a person would paste them, with weir and nats in the path.
type shell struct {
	dir string
	env []string
}

// lineTime bounds one line.
const lineTime = 60 * time.Second

// newShell is a shell of somebody who has set NATS_URL and nothing else.
func newShell(t *testing.T, url string) *shell {
	t.Helper()
	s := &shell{dir: t.TempDir()}
	bin := filepath.Join(s.dir, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{
		"weir": harness.BuildBinary(t, "weir.dev/weir/services/weir/cmd/weir"), "nats": natsCLI(t),
	} {
		if err := os.Symlink(path, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	s.env = slices.DeleteFunc(os.Environ(), func(kv string) bool {
		return strings.HasPrefix(kv, "WEIR_") || strings.HasPrefix(kv, "NATS_") || strings.HasPrefix(kv, "PATH=") || strings.HasPrefix(kv, "HOME=")
	})
	s.env = append(s.env, "NATS_URL="+url, "HOME="+s.dir, "PATH="+bin+":"+os.Getenv("PATH"), "NO_COLOR=1")
	return s
}

// natsCLI finds the NATS CLI of the page's version, or builds it once.
func natsCLI(t *testing.T) string {
	t.Helper()
	root, err := harness.RepoRoot()
	if err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), filepath.Join(root, "scripts", "tools.sh"), "nats")
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, errs.String())
	}
	return strings.TrimSpace(string(out))
}

// run runs one line and returns everything it wrote and its exit code.
func (s *shell) run(t *testing.T, line string) (output string, exit int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), lineTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", line)
	cmd.Dir, cmd.Env = s.dir, s.env
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		t.Fatalf("%s: does not end within %s\n%s", line, lineTime, out)
	}
	if err != nil && cmd.ProcessState == nil {
		t.Fatalf("%s: %v", line, err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// must is run for lines that have to succeed.
func (s *shell) must(t *testing.T, line string) string {
	t.Helper()
	out, exit := s.run(t, line)
	if exit != 0 {
		t.Fatalf("%s: exit %d\n%s", line, exit, out)
	}
	return out
}
