package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Config says how one program is run.
type Config struct {
	Name string   // in errors, and the name of the log file
	Path string   // the executable
	Args []string // without the program's name
	Env  []string // KEY=VALUE, on top of the starter's environment without WEIR_* and NATS_*
	Dir  string   // working directory and place of the log; must exist

	// Ready is asked repeatedly after a start until it returns nil. Without it
	// a process counts as ready once it runs.
	Ready func(context.Context) error
	// ReadyWithin bounds the wait for Ready; 30 s when zero.
	ReadyWithin time.Duration
	// As is the user to run as; nil is the starter's own.
	As *syscall.Credential
}

// Process is one program that can be ended, frozen and started again under the
// same arguments. Its methods may be called from several goroutines.
type Process struct {
	cfg Config

	mu   sync.Mutex
	cmd  *exec.Cmd
	done chan struct{} // closed when cmd has ended
}

// New describes a program that Start will run.
func New(cfg Config) *Process { return &Process{cfg: cfg} }

// SetArgs gives the next start other arguments.
func (p *Process) SetArgs(args ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cfg.Args = args
}

// Run starts a program and waits until it is ready; the caller ends it with
// Kill or Stop. ctx bounds the start only.
func Run(ctx context.Context, cfg Config) (*Process, error) {
	p := New(cfg)
	if err := p.Start(ctx); err != nil {
		return nil, err
	}
	return p, nil
}

// Start runs the program again after it ended, and waits until it is ready.
// The log goes on where it was.
func (p *Process) Start(ctx context.Context) error {
	if err := p.launch(); err != nil {
		return fmt.Errorf("start %s: %w", p.cfg.Name, err)
	}
	if err := p.awaitReady(ctx); err != nil {
		p.Kill()
		return fmt.Errorf("start %s: %w\nend of its log:\n%s", p.cfg.Name, err, p.LogTail(4<<10))
	}
	return nil
}

func (p *Process) launch() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil && !closed(p.done) {
		return fmt.Errorf("process %d still runs", p.cmd.Process.Pid)
	}
	log, err := os.OpenFile(p.LogPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	//nolint:noctx // the process outlives the context of its start
	cmd := exec.Command(p.cfg.Path, p.cfg.Args...)
	cmd.Dir = p.cfg.Dir
	cmd.Env = append(Environment(), p.cfg.Env...)
	// A file, not a pipe: the process never blocks on us, and nothing written
	// before a SIGKILL is lost.
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = Attributes(p.cfg.As)
	if err := cmd.Start(); err != nil {
		return err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = cmd.Wait() // how it ended is in cmd.ProcessState
	}()
	p.cmd, p.done = cmd, done
	return nil
}

// Environment is the starter's own without the settings of Weir: those of the
// person at the terminal must not leak into the programs under test.
func Environment() []string {
	return slices.DeleteFunc(os.Environ(), func(kv string) bool {
		return strings.HasPrefix(kv, "WEIR_") || strings.HasPrefix(kv, "NATS_")
	})
}

func (p *Process) awaitReady(ctx context.Context) error {
	if p.cfg.Ready == nil {
		return nil
	}
	within := p.cfg.ReadyWithin
	if within == 0 {
		within = 30 * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return Await(ctx, p.Done(), p.cfg.Ready)
}

// Await asks ready until it returns nil, ended closes or ctx ends; ended may be nil. An error that ends the wait holds ready's last one.
func Await(ctx context.Context, ended <-chan struct{}, ready func(context.Context) error) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ended:
			return errors.New("it ended before it was ready")
		case <-ctx.Done():
			return fmt.Errorf("not ready: %w (%w)", ctx.Err(), err)
		case <-tick.C:
		}
	}
}

// Pause lets the world run on for a while; it is an error when ctx ends first.
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// HTTPReady is a Ready function: a GET of the URL answers 200.
func HTTPReady(url string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := Get(ctx, url)
		return err
	}
}

// PID returns the id of the process, also after it ended.
func (p *Process) PID() int { return p.current().Process.Pid }

// Done is closed when the present run of the process has ended.
func (p *Process) Done() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.done
}

// Running reports whether the process has not ended. A frozen one runs.
func (p *Process) Running() bool { return !closed(p.Done()) }

// Signal sends a signal to this process. It is an error when it has ended.
func (p *Process) Signal(sig syscall.Signal) error {
	if err := p.current().Process.Signal(sig); err != nil {
		return fmt.Errorf("signal %s with %s: %w", p.cfg.Name, sig, err)
	}
	return nil
}

// Pause freezes the process (SIGSTOP): it keeps its memory, files and
// connections and does nothing.
func (p *Process) Pause() error { return p.Signal(syscall.SIGSTOP) }

// Resume lets a frozen process go on (SIGCONT).
func (p *Process) Resume() error { return p.Signal(syscall.SIGCONT) }

// Kill ends the process at once (SIGKILL), frozen or not, and waits until it
// is gone. A process that has ended already stays ended, one that never began
// stays so.
func (p *Process) Kill() {
	if p.current() == nil {
		return
	}
	_ = p.current().Process.Kill() // the only error is that it has ended
	<-p.Done()
}

// Stop asks the process to end (SIGTERM) and waits for it. It returns the exit
// code, or an error when the process was ended by a signal or is still there
// when ctx ends.
func (p *Process) Stop(ctx context.Context) (exitCode int, err error) {
	if err := p.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return 0, err
	}
	return p.Wait(ctx)
}

// Wait waits until the process ends by itself and returns its exit code.
func (p *Process) Wait(ctx context.Context) (exitCode int, err error) {
	select {
	case <-p.Done():
	case <-ctx.Done():
		return 0, fmt.Errorf("wait for the end of %s: %w", p.cfg.Name, ctx.Err())
	}
	state := p.current().ProcessState
	if !state.Exited() {
		return 0, fmt.Errorf("wait for the end of %s: %s", p.cfg.Name, state)
	}
	return state.ExitCode(), nil
}

// Restart kills the process, if it runs, and starts it again.
func (p *Process) Restart(ctx context.Context) error {
	p.Kill()
	return p.Start(ctx)
}

// LogPath returns the file that holds all the process wrote to its standard
// output and standard error, over all its runs.
func (p *Process) LogPath() string { return filepath.Join(p.cfg.Dir, p.cfg.Name+".log") }

// LogTail returns at most the last n bytes of the log, or the reason why it
// cannot be read: it is for people.
func (p *Process) LogTail(n int) string {
	log, err := os.ReadFile(p.LogPath())
	if err != nil {
		return err.Error()
	}
	return string(log[max(0, len(log)-n):])
}

func (p *Process) current() *exec.Cmd {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cmd
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
