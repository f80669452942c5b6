package harness_test

import (
	"context"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/itest/harness"
)

// shell runs a script of /bin/sh as a process under test.
func shell(t *testing.T, script string) harness.ProcessConfig {
	t.Helper()
	return harness.ProcessConfig{Name: "script", Path: "/bin/sh", Args: []string{"-c", script}, Dir: t.TempDir()}
}

func TestProcessExit(t *testing.T) {
	t.Parallel()
	ctx := t.Context()

	t.Run("exit code and log", func(t *testing.T) {
		p := harness.StartProcess(t, shell(t, "echo out; echo err >&2; exit 3"))
		if code, err := p.Wait(ctx); err != nil || code != 3 {
			t.Errorf("Wait = %d, %v; want 3", code, err)
		}
		if log := p.LogTail(100); log != "out\nerr\n" {
			t.Errorf("log = %q", log)
		}
		if log := p.LogTail(4); log != "err\n" {
			t.Errorf("last 4 bytes of the log = %q", log)
		}
	})

	t.Run("stop by request", func(t *testing.T) {
		cfg := shell(t, `trap 'exit 7' TERM; echo up; while :; do sleep 0.01; done`)
		cfg.Ready = logSays(cfg, "up")
		p := harness.StartProcess(t, cfg)
		if code, err := p.Stop(ctx); err != nil || code != 7 {
			t.Errorf("Stop = %d, %v; want the program's own 7", code, err)
		}
	})

	t.Run("killed is not exited", func(t *testing.T) {
		p := harness.StartProcess(t, shell(t, "exec sleep 60"))
		p.Kill()
		if _, err := p.Wait(ctx); err == nil || !strings.Contains(err.Error(), "killed") {
			t.Errorf("Wait after SIGKILL: %v; want an error that says so", err)
		}
	})

	t.Run("ends before it is ready", func(t *testing.T) {
		cfg := shell(t, "echo the reason; exit 1")
		cfg.Ready = func(context.Context) error { return os.ErrNotExist }
		if _, err := harness.RunProcess(ctx, cfg); err == nil || !strings.Contains(err.Error(), "the reason") {
			t.Errorf("error = %v; want the end of the log in it", err)
		}
	})

	t.Run("never ready", func(t *testing.T) {
		cfg := shell(t, "exec sleep 60")
		cfg.Ready = func(context.Context) error { return os.ErrNotExist }
		cfg.ReadyWithin = 50 * time.Millisecond
		if _, err := harness.RunProcess(ctx, cfg); err == nil {
			t.Error("a process that is never ready was started")
		}
	})
}

func TestProcessFaults(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	cfg := shell(t, "while :; do echo x; sleep 0.005; done")
	cfg.Env = []string{"WEIR_NODE=n1"}
	p := harness.StartProcess(t, cfg)
	grows := func(ctx context.Context) bool {
		before := len(p.LogTail(1 << 20))
		ctx, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		defer cancel()
		for ctx.Err() == nil {
			if len(p.LogTail(1<<20)) > before {
				return true
			}
		}
		return false
	}
	if !grows(ctx) {
		t.Fatal("the process does nothing")
	}
	if err := p.Pause(); err != nil {
		t.Fatal(err)
	}
	_ = grows(ctx) // what was under way when the signal arrived may still land
	if grows(ctx) {
		t.Error("a frozen process goes on")
	}
	if !p.Running() {
		t.Error("a frozen process does not count as running")
	}
	if err := p.Resume(); err != nil {
		t.Fatal(err)
	}
	if !grows(ctx) {
		t.Error("a resumed process does nothing")
	}

	first := p.PID()
	if err := p.Pause(); err != nil {
		t.Fatal(err)
	}
	if err := p.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	if p.PID() == first || !p.Running() || !grows(ctx) {
		t.Error("a frozen process was not replaced by a running one")
	}
	if err := p.Start(ctx); err == nil {
		t.Error("a running process was started twice")
	}
}

func TestNATS(t *testing.T) {
	t.Parallel()
	n := harness.StartNATS(t)
	greeting := func() string {
		conn, err := net.Dial("tcp", strings.TrimPrefix(n.URL, "nats://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		buf := make([]byte, 4096)
		read, err := conn.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		return string(buf[:read])
	}
	if hello := greeting(); !strings.Contains(hello, `"jetstream":true`) || !strings.Contains(hello, `"max_payload":8388608`) {
		t.Errorf("the server says %s", hello)
	}
	if err := n.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if hello := greeting(); !strings.Contains(hello, `"jetstream":true`) {
		t.Errorf("after a restart on the same port the server says %s", hello)
	}
	if code, err := n.Stop(t.Context()); err != nil {
		t.Errorf("Stop = %d, %v", code, err)
	}
}

// logSays is ready once the process has written the words.
func logSays(cfg harness.ProcessConfig, words string) func(context.Context) error {
	return func(context.Context) error {
		log, err := os.ReadFile(cfg.Dir + "/" + cfg.Name + ".log")
		if err == nil && !strings.Contains(string(log), words) {
			err = os.ErrNotExist
		}
		return err
	}
}
