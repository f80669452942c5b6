package compose

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weir.dev/weir/itest/harness"
)

// engine is a Docker engine in namespaces of its own.
type engine struct {
	root    string // of the repository
	dir     string // of the engine; containers can mount what lies in it
	process *harness.Process
	network string // the network namespace, as the kernel names it
}

// startEngine runs an engine that lasts as long as the test.
func startEngine(t *testing.T, root string) *engine {
	t.Helper()
	// The path of a socket has 107 bytes at most, and the folder of a test may have a long name.
	dir, err := os.MkdirTemp("", "weir-compose-") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	e := &engine{root: root, dir: dir}
	e.process = harness.StartProcess(t, harness.ProcessConfig{
		Name: "docker-engine", Path: filepath.Join(root, "scripts/docker-engine.sh"), Args: []string{dir, root}, Dir: t.TempDir(),
		Ready: e.ready, ReadyWithin: 2 * time.Minute,
	})
	if e.network, err = os.Readlink(e.namespace("net")); err != nil {
		t.Fatal(err)
	}
	return e
}

func (e *engine) socket() string { return filepath.Join(e.dir, "docker.sock") }

func (e *engine) namespace(kind string) string {
	return fmt.Sprintf("/proc/%d/ns/%s", e.process.PID(), kind)
}

func (e *engine) ready(ctx context.Context) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", e.socket())
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET /_ping HTTP/1.0\r\n\r\n"); err != nil {
		return err
	}
	answer, err := io.ReadAll(conn)
	if err == nil && !bytes.Contains(answer, []byte(" 200 ")) {
		err = fmt.Errorf("the engine answers %.100s", answer)
	}
	return err
}

// docker is a run of the engine's own command line, among the engine's files and in its network.
func (e *engine) docker(ctx context.Context, env []string, args ...string) *exec.Cmd {
	inside := []string{
		"--target", strconv.Itoa(e.process.PID()), "--mount", "--net", "--", "/usr/bin/env", "-i",
		"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "DOCKER_HOST=unix://" + e.socket(),
	}
	cmd := exec.CommandContext(ctx, "nsenter", slices.Concat(inside, env, []string{"docker"}, args)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// must is a run that has to succeed; it returns what was printed.
func (e *engine) must(t *testing.T, env []string, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := e.docker(t.Context(), env, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("docker %s: %v\n%s%s", strings.Join(args, " "), err, stdout.String(), stderr.String())
	}
	return stdout.String()
}

// stop ends the engine in order, removes its control groups, and reports whoever is left in its network.
func (e *engine) stop(ctx context.Context) error {
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", e.process.PID()))
	if err != nil {
		return err
	}
	for child := range strings.FieldsSeq(string(children)) {
		pid, err := strconv.Atoi(child)
		if err != nil {
			return err
		}
		if err := syscall.Kill(pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if _, err := e.process.Wait(ctx); err != nil {
		return err
	}
	// Control groups outlive their processes.
	sweep := exec.CommandContext(ctx, "find", "/sys/fs/cgroup", "-depth", "-type", "d", "-path", "*/weir-compose*", "-delete")
	if out, err := sweep.CombinedOutput(); err != nil {
		return fmt.Errorf("remove the control groups: %w\n%s", err, out)
	}
	var alive []error
	left, err := filepath.Glob("/proc/[0-9]*/ns/net")
	if err != nil {
		return err
	}
	for _, link := range left {
		if ns, err := os.Readlink(link); err == nil && ns == e.network {
			alive = append(alive, fmt.Errorf("process %s is left in the engine's network", strings.Split(link, "/")[2]))
		}
	}
	return errors.Join(alive...)
}

// forward makes an address of the engine's network one of the loopback, until the test ends.
func (e *engine) forward(t *testing.T, target string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var all sync.WaitGroup
	t.Cleanup(func() {
		l.Close()
		cancel()
		all.Wait()
	})
	all.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { e.relay(ctx, client, target) })
		}
	})
	return l.Addr().String()
}

// relay carries one connection. A server that cannot be reached is an end of the connection to its client.
func (e *engine) relay(ctx context.Context, client net.Conn, target string) {
	defer client.Close()
	server, err := e.dial(ctx, target)
	if err != nil {
		return
	}
	defer server.Close()
	defer context.AfterFunc(ctx, func() { client.Close(); server.Close() })()
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
		both.Go(func() {
			_, _ = io.Copy(way[1], way[0]) // either end may go first
			way[0].Close()
			way[1].Close()
		})
	}
	both.Wait()
}

// dial connects from within the engine's network: a socket belongs to the namespace of the thread that made it. The thread
// goes back, because its end would end the processes that it has started (harness, H3).
func (e *engine) dial(ctx context.Context, target string) (conn net.Conn, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	own, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return nil, err
	}
	defer own.Close()
	theirs, err := os.Open(e.namespace("net"))
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	if err := unix.Setns(int(theirs.Fd()), unix.CLONE_NEWNET); err != nil {
		return nil, err
	}
	defer func() {
		if err := unix.Setns(int(own.Fd()), unix.CLONE_NEWNET); err != nil {
			panic(fmt.Sprintf("a thread stays in the engine's network: %v", err))
		}
	}()
	var d net.Dialer
	return d.DialContext(ctx, "tcp", target)
}
