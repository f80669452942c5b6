package harness_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/itest/harness"
)

// starterDir makes this test binary a starter, see [TestOrphan].
const starterDir = "HARNESS_STARTER_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(starterDir); dir != "" {
		p, err := harness.RunProcess(context.Background(), harness.ProcessConfig{
			Name: "child", Path: "/bin/sh", Args: []string{"-c", "exec sleep 60"}, Dir: dir,
		})
		fmt.Fprintln(os.Stdout, p.PID(), err)
		select {}
	}
	m.Run()
}

// TestOrphan: H3, a child ends when its starter is killed outright.
func TestOrphan(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	starter := exec.CommandContext(t.Context(), self)
	starter.Env = append(os.Environ(), starterDir+"="+t.TempDir())
	out, err := starter.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := starter.Start(); err != nil {
		t.Fatal(err)
	}
	var child int
	var failure string
	if _, err := fmt.Fscan(out, &child, &failure); err != nil || failure != "<nil>" {
		t.Fatalf("the starter's child: %s, %v", failure, err)
	}
	if !lives(child) {
		t.Fatal("the child does not run")
	}
	if err := starter.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = starter.Wait() // it was killed
	deadline := time.After(5 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for lives(child) {
		select {
		case <-deadline:
			t.Fatal("the child outlives its starter")
		case <-tick.C:
		}
	}
}

// lives reports whether a process is there and not a zombie.
func lives(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(state, "Z")
}
