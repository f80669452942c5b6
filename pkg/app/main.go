package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/config"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/telemetry"
)

// Process is the outside of a process.
type Process struct {
	Args           []string // without the program's name
	Environ        []string
	Stdout, Stderr io.Writer
	Signals        <-chan os.Signal
	// Exit ends the process at once; it is called only by a forced stop.
	Exit func(code int)
}

// Main runs a service as this process and exits with its code: func main() { app.Main("sink", sink.Default(), sink.Run) }.
// defaults are the service's settings before file, environment and flags; a pointer to C may implement config.Validator.
func Main[C any](name string, defaults C, run Run[C]) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	exit := os.Exit //nolint:forbidigo // this function is the body of main packages
	exit(Execute(Process{
		Args: os.Args[1:], Environ: os.Environ(), Stdout: os.Stdout, Stderr: os.Stderr, Signals: signals, Exit: exit,
	}, name, defaults, run))
}

// Execute is [Main] with the outside given; it returns the exit code.
func Execute[C any](p Process, name string, cfg C, run Run[C]) int {
	lookup := config.Lookup{Env: p.env, File: os.ReadFile}
	settings := defaultSettings(p.env)
	cmd, err := parseArgs(name, p.Args, p.Stderr)
	switch {
	case errors.Is(err, errHelp):
		return fault.ExitOK
	case err != nil:
		return p.fail(err)
	case cmd.version:
		_, _ = fmt.Fprintln(p.Stdout, name, Version())
		return fault.ExitOK
	}
	if err := load(cmd, name, p.Environ, &settings, &cfg); err != nil {
		return p.fail(err)
	}
	if cmd.print {
		p.print(cmd, name, &settings, &cfg)
		return fault.ExitOK
	}
	if cmd.health {
		return p.health(settings.HTTP)
	}
	if settings.Node == "" {
		settings.Node = NewNode()
	}
	f := frame{process: p, name: name, settings: settings, lookup: lookup}
	return f.run(func(ctx context.Context, env Env) error { return run(ctx, env, cfg) })
}

func load(cmd command, name string, environ []string, settings, cfg any) error {
	in := config.Input{Service: name, Others: Services(), File: cmd.config, Environ: cmd.environ(name, environ)}
	if cmd.config != "" {
		data, err := os.ReadFile(cmd.config)
		if err != nil {
			return fault.Wrap(err, fault.CLINoFile, "--config", "the file cannot be read", "file", cmd.config)
		}
		in.Data = data
	}
	if err := config.Load(in, settings, cfg); err != nil {
		return cmd.renamed(name, err)
	}
	return nil
}

// env looks a variable up; the last one of a name counts, as for os.LookupEnv.
func (p Process) env(name string) (string, bool) {
	for _, kv := range slices.Backward(p.Environ) {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v, true
		}
	}
	return "", false
}

// fail shows an error that ends the process before there is a logger.
func (p Process) fail(err error) int {
	_, _ = fmt.Fprintln(p.Stderr, fault.Of(err).Text())
	return fault.ExitCode(err)
}

func (p Process) print(cmd command, name string, targets ...any) {
	if cmd.env {
		for _, v := range config.EnvNames(name, targets...) {
			_, _ = fmt.Fprintln(p.Stdout, v)
		}
		return
	}
	_, _ = fmt.Fprint(p.Stdout, config.EncodeParts(config.Redact, targets...).YAML())
}

// frame is one run of a service with everything around it.
type frame struct {
	process  Process
	name     string
	settings Settings
	lookup   config.Lookup
}

func (f frame) run(service func(context.Context, Env) error) int {
	defer f.process.raiseHeap()()
	p, s := f.process, f.settings
	var level slog.Level
	_ = level.UnmarshalText([]byte(s.Log.Level)) // one of the enumeration
	base := telemetry.NewLogger(p.Stderr, s.Log.Format, level)
	log := base.With(telemetry.KeyService, f.name, telemetry.KeyNode, s.Node)

	ctx, stop := Signals(context.Background(), p.Signals, func(code int) {
		log.Warn("forced stop", telemetry.Err(fault.New(fault.AppForced, "", "a second signal came")))
		p.Exit(code)
	})
	defer stop()
	options, err := f.busOptions(log)
	if err != nil {
		return f.end(log, err)
	}
	tel, err := telemetry.Open(ctx, telemetry.Config{Service: f.name, Version: Version(), Node: s.Node, Logger: base, Env: p.env})
	if err != nil {
		return f.end(log, err)
	}
	defer f.closeTelemetry(ctx, log, tel)
	health := NewHealth()
	server, err := Listen(ctx, s.HTTP, "--http", health, tel.Handler())
	if err != nil {
		return f.end(log, err)
	}
	env := Env{
		Service: f.name, Node: s.Node, HTTP: server.Addr(), Telemetry: tel.For(f.name, s.Node), provider: tel, Bus: options, Lookup: f.lookup,
		Health: health, Handle: server.Handle, Ready: health.gate("start", errors.New("the service is starting")),
	}
	log.Info("process started", "version", Version(), telemetry.KeyAddr, server.Addr())
	return f.end(log, f.supervise(ctx, server, health, env, service))
}

// supervise runs service and HTTP server side by side; either one ends both. The server outlives the service, so that
// probes see a stop in progress; the service's context ends after /readyz has turned red (A2).
func (f frame) supervise(ctx context.Context, server *Server, health *Health, env Env, service func(context.Context, Env) error) error {
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServing()
	running, stopRunning := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stopRunning(nil)
	served, ran := make(chan error, 1), make(chan error, 1)
	go func() { served <- server.Run(serving) }()
	go func() { ran <- guarded(running, env, service) }()

	var failure error
	select {
	case err := <-ran:
		stopServing()
		return errors.Join(f.judge(running, err), <-served)
	case failure = <-served:
		stopRunning(failure)
	case <-ctx.Done():
		health.gate("stop", errors.New("the process is stopping"))
		stopRunning(context.Cause(ctx))
	}
	timeout := time.NewTimer(f.settings.Shutdown.Std())
	defer timeout.Stop()
	select {
	case err := <-ran:
		if failure != nil {
			return errors.Join(failure, f.judge(running, err))
		}
		stopServing()
		return errors.Join(f.judge(running, err), <-served)
	case <-timeout.C:
		return errors.Join(failure, fault.New(fault.AppStopTimeout, f.name, "the service still runs after "+f.settings.Shutdown.String()))
	}
}

// judge turns the end of a service that was asked to stop into nil; an end that nobody asked for and that has no error is
// the service's own decision, and good.
func (f frame) judge(ctx context.Context, err error) error {
	if ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, ErrStopped)) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", f.name, err)
	}
	return nil
}

// guarded turns a panic into an error with its stack.
func guarded(ctx context.Context, env Env, service func(context.Context, Env) error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			env.Telemetry.Logger.ErrorContext(ctx, "service panicked", "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			err = fault.New(fault.AppInternal, env.Service, "a broken invariant: "+fmt.Sprint(v))
		}
	}()
	return service(ctx, env)
}

func (f frame) busOptions(log *slog.Logger) (bus.Options, error) {
	url, err := f.settings.NATS.URL.Resolve(f.lookup)
	if err != nil {
		return bus.Options{}, err
	}
	creds, err := f.settings.NATS.Creds.Resolve(f.lookup)
	if err != nil {
		return bus.Options{}, err
	}
	return bus.Options{URL: url, Name: f.name, Creds: creds, Logger: log}, nil
}

func (f frame) closeTelemetry(ctx context.Context, log *slog.Logger, tel *telemetry.Provider) {
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := tel.Close(bound); err != nil {
		log.WarnContext(ctx, "telemetry was not closed", telemetry.Err(err))
	}
}

// end logs how the process ends and returns its exit code.
func (f frame) end(log *slog.Logger, err error) int {
	code := fault.ExitCode(err)
	if err != nil {
		log.Error("process failed", "exit", code, telemetry.KeyError, telemetry.ErrorValue(err))
		return code
	}
	log.Info("process stopped")
	return code
}
