package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/config"
	"weir.dev/weir/pkg/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type serviceConfig struct {
	Batch  config.Bytes  `yaml:"batch"`
	Target config.Secret `yaml:"target"`
}

// output is a buffer which the process and the test share.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// addr finds where the process listens, in the record it writes before it runs the service.
func (o *output) addr(t *testing.T) string {
	t.Helper()
	for line := range strings.Lines(o.String()) {
		var r struct{ Addr string }
		if json.Unmarshal([]byte(line), &r) == nil && r.Addr != "" {
			return r.Addr
		}
	}
	t.Error("no address in the log")
	return ""
}

func get(t *testing.T, url string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return resp.StatusCode, string(b)
}

func TestLifecycle(t *testing.T) {
	var stderr output
	signals := make(chan os.Signal, 2)
	p := Process{Stderr: &stderr, Stdout: io.Discard, Signals: signals, Exit: func(int) { t.Error("forced") }}
	var broken error
	var url string
	code := Execute(p, "sink", serviceConfig{}, func(ctx context.Context, env Env, _ serviceConfig) error {
		url = "http://" + stderr.addr(t)
		expect := func(path string, status int, text string) {
			t.Helper()
			if s, body := get(t, url+path); s != status || !strings.Contains(body, text) {
				t.Errorf("%s: %d %s; want %d %s", path, s, body, status, text)
			}
		}
		expect("/readyz", 503, "[-] start: the service is starting") // A2
		expect("/livez", 200, "ok")
		env.Ready()
		expect("/readyz", 200, "ok")
		remove := env.Health.Ready("replication", func() error { return broken })
		env.Health.Alive("loop", func() error { return nil })
		expect("/readyz", 200, "[+] replication")
		broken = errors.New("no epoch since 5m")
		expect("/readyz", 503, "[-] replication: no epoch since 5m")
		expect("/livez", 200, "[+] loop")
		remove()
		expect("/readyz", 200, "ok")
		env.Handle("GET /hello", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hi") }))
		expect("/hello", 200, "hi")
		expect("/metrics", 200, "go_goroutines")
		expect("/debug/pprof/goroutine?debug=1", 200, "goroutine profile")

		signals <- syscall.SIGTERM
		<-ctx.Done()
		if !errors.Is(context.Cause(ctx), ErrStopped) { // A3
			t.Errorf("cause %v", context.Cause(ctx))
		}
		expect("/readyz", 503, "[-] stop: the process is stopping") // A2
		return ctx.Err()
	})
	if code != fault.ExitOK { // A4
		t.Errorf("exit %d\n%s", code, stderr.String())
	}
	if s, _ := get(t, url+"/livez"); s != 0 {
		t.Error("the server outlived the process")
	}
	if log := stderr.String(); !strings.Contains(log, `"msg":"process stopped"`) {
		t.Errorf("log:\n%s", log)
	}
}

func TestForcedStop(t *testing.T) {
	for _, tt := range []struct {
		second os.Signal
		want   int
	}{{syscall.SIGINT, 130}, {syscall.SIGTERM, 143}} {
		signals := make(chan os.Signal, 2)
		forced := make(chan int, 1)
		p := Process{Stderr: io.Discard, Stdout: io.Discard, Signals: signals, Exit: func(code int) { forced <- code }}
		signals <- syscall.SIGINT
		signals <- tt.second
		Execute(p, "sink", serviceConfig{}, func(context.Context, Env, serviceConfig) error {
			if got := <-forced; got != tt.want { // A3
				t.Errorf("%s: exit %d, want %d", tt.second, got, tt.want)
			}
			return nil
		})
	}
}

func TestStopTakesTooLong(t *testing.T) {
	signals := make(chan os.Signal, 2)
	signals <- syscall.SIGTERM
	var stderr output
	release := make(chan struct{})
	returned := make(chan struct{})
	p := Process{
		Environ: []string{"WEIR_SINK_SHUTDOWN_TIMEOUT=100ms"}, Stderr: &stderr, Stdout: io.Discard, Signals: signals,
	}
	code := Execute(p, "sink", serviceConfig{}, func(context.Context, Env, serviceConfig) error {
		<-release
		close(returned)
		return nil
	})
	close(release)
	<-returned
	if code != fault.ExitTimeout || !strings.Contains(stderr.String(), string(fault.AppStopTimeout)) { // A3
		t.Errorf("exit %d\n%s", code, stderr.String())
	}
}

func TestExitCodes(t *testing.T) { // A4
	tests := []struct {
		name string
		run  func() error
		want int
	}{
		{"done by itself", func() error { return nil }, 0},
		{"fault", func() error { return fmt.Errorf("connect: %w", fault.New(fault.BusUnreachable, "", "refused")) }, 3},
		{"unclassified", func() error { return errors.New("odd") }, 1},
		{"canceled without a stop", func() error { return context.Canceled }, 1},
		{"panic", func() error { panic("I3: impossible") }, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var stderr output
			p := Process{Stderr: &stderr, Stdout: io.Discard, Signals: make(chan os.Signal)}
			code := Execute(p, "sink", serviceConfig{}, func(context.Context, Env, serviceConfig) error { return tt.run() })
			if code != tt.want {
				t.Errorf("exit %d, want %d\n%s", code, tt.want, stderr.String())
			}
		})
	}
}

func TestPortTaken(t *testing.T) {
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for addr, want := range map[string]fault.Code{l.Addr().String(): fault.AppListenTaken, "192.0.2.1:1": fault.AppListenFailed} {
		var stderr output
		p := Process{Args: []string{"--http", addr}, Stderr: &stderr, Stdout: io.Discard, Signals: make(chan os.Signal)}
		code := Execute(p, "sink", serviceConfig{}, func(context.Context, Env, serviceConfig) error { return errors.New("ran") })
		if code != fault.ExitEnvironment || !strings.Contains(stderr.String(), string(want)) || !strings.Contains(stderr.String(), "--http") {
			t.Errorf("%s: exit %d\n%s", addr, code, stderr.String())
		}
	}
}

func TestSettings(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sink.yaml")
	if err := os.WriteFile(file, []byte("batch: 1MiB\nhttp: 127.0.0.1:0\nnode: from-file\nnats: {url: 'nats://app:${PW}@h:4222'}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var stderr output
	p := Process{
		Args: []string{"--config", file, "--node", "from-flag"},
		Environ: []string{
			"PW=canary-5f1d", "WEIR_SINK_BATCH=2MiB", "WEIR_SINK_NODE=from-env", "WEIR_COORDINATOR_ANYTHING=1", "NATS_URL=nats://unused",
			"WEIR_SINK_TARGET=canary-5f1d", "WEIR_SINK_LOG_LEVEL=debug",
		},
		Stderr: &stderr, Stdout: io.Discard, Signals: make(chan os.Signal),
	}
	code := Execute(p, "sink", serviceConfig{Batch: 1}, func(ctx context.Context, env Env, cfg serviceConfig) error {
		if env.Node != "from-flag" || cfg.Batch != 2<<20 { // A1
			t.Errorf("node %s, batch %s", env.Node, cfg.Batch)
		}
		if env.Bus.URL != "nats://app:canary-5f1d@h:4222" || env.Bus.Name != "sink" {
			t.Errorf("bus %s", env.Bus.Name)
		}
		env.Telemetry.Logger.InfoContext(ctx, "settings", "config", cfg, "target", cfg.Target)
		return nil
	})
	if code != 0 || strings.Contains(stderr.String(), "canary") {
		t.Errorf("exit %d\n%s", code, stderr.String())
	}
}

func TestBeforeTheStart(t *testing.T) {
	unresolved := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(unresolved, []byte("nats: {url: '${NOWHERE}'}\nbatsh: 1MiB\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name           string
		args, env      []string
		code           int
		stdout, stderr string
	}{
		{"version", []string{"--version"}, nil, 0, "sink ", ""},
		{"help", []string{"--help"}, nil, 0, "", "WEIR_SINK_LOG_LEVEL"},
		{"unknown flag", []string{"--htp", "x"}, nil, 2, "", "WEIR-CLI-001"},
		{"unknown command", []string{"run"}, nil, 2, "", `unknown command "run"`},
		{"no file", []string{"--config", "/nope.yaml"}, nil, 2, "", "WEIR-CLI-002"},
		{"file with a problem", []string{"--config", unresolved}, nil, 2, "", `2:1 batsh: key "batsh" is not known`},
		{"value of a flag", []string{"--log-level", "lound"}, nil, 2, "", `--log-level: the value "lound" is not known`},
		{"rule of a flag", []string{"--http", "8080"}, nil, 2, "", "--http: this is not an address"},
		{"unknown variable", nil, []string{"WEIR_SINK_BATHC=1MiB"}, 2, "", `did you mean "WEIR_SINK_BATCH"?`},
		{"unresolved", nil, []string{"WEIR_SINK_NATS_URL=${NOWHERE}"}, 2, "", "WEIR-CONF-004"},
		{"variables", []string{"config", "print", "--env"}, nil, 0, "WEIR_SINK_NATS_CREDS\n", ""},
		{"print", []string{"config", "print"}, []string{"NATS_URL=nats://u:canary-5f1d@h", "WEIR_SINK_TARGET=${T:-canary-5f1d}"}, 0, `target: "${T:-***}"`, ""},
		{"odd exporter", nil, []string{"OTEL_TRACES_EXPORTER=zipkin"}, 2, "", "WEIR-CONF-001"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var stdout, stderr output
			p := Process{Args: tt.args, Environ: tt.env, Stdout: &stdout, Stderr: &stderr, Signals: make(chan os.Signal)}
			code := Execute(p, "sink", serviceConfig{Batch: 1 << 20}, func(context.Context, Env, serviceConfig) error {
				t.Error("the service was started")
				return nil
			})
			if code != tt.code || !strings.Contains(stdout.String(), tt.stdout) || !strings.Contains(stderr.String(), tt.stderr) {
				t.Errorf("exit %d\nstdout: %s\nstderr: %s", code, stdout.String(), stderr.String())
			}
			if strings.Contains(stdout.String()+stderr.String(), "canary") {
				t.Errorf("a secret is printed\nstdout: %s\nstderr: %s", stdout.String(), stderr.String())
			}
		})
	}
}

// What config print writes is a file that gives the same settings.
func TestPrintedSettingsCanBeRead(t *testing.T) {
	var stdout output
	p := Process{Args: []string{"config", "print"}, Environ: []string{"WEIR_SINK_NATS_URL=${U}"}, Stdout: &stdout, Stderr: io.Discard}
	Execute[serviceConfig](p, "sink", serviceConfig{Batch: 5}, nil)
	file := filepath.Join(t.TempDir(), "sink.yaml")
	if err := os.WriteFile(file, []byte(stdout.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	var again output
	p = Process{Args: []string{"--config", file, "config", "print"}, Stdout: &again, Stderr: &again}
	Execute[serviceConfig](p, "sink", serviceConfig{}, nil)
	if again.String() != stdout.String() {
		t.Errorf("got\n%s\nwant\n%s", again.String(), stdout.String())
	}
}

// The whole way of a connection string that fails: settings, bus, error, log.
func TestUnreachableBusShowsNoPassword(t *testing.T) {
	for _, url := range []string{"nats://u:canary-5f1d@127.0.0.1:1", "nats://u:canary-5f1d%zz@127.0.0.1:1"} {
		var stderr output
		p := Process{Environ: []string{"NATS_URL=" + url}, Stderr: &stderr, Stdout: io.Discard, Signals: make(chan os.Signal)}
		code := Execute(p, "sink", serviceConfig{}, func(ctx context.Context, env Env, _ serviceConfig) error {
			ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
			defer cancel()
			_, err := bus.Connect(ctx, env.Bus)
			return err
		})
		if code != fault.ExitEnvironment || strings.Contains(stderr.String(), "canary") || !strings.Contains(stderr.String(), "127.0.0.1:1") {
			t.Errorf("exit %d\n%s", code, stderr.String())
		}
	}
}

func TestNewNode(t *testing.T) {
	a, b := NewNode(), NewNode()
	if a == b || len(a) > 63 {
		t.Errorf("%s, %s", a, b)
	}
	s := Settings{HTTP: "127.0.0.1:0"}
	if err := config.Load(config.Input{Data: []byte("node: " + a)}, &s); err != nil {
		t.Errorf("%s is not a valid setting: %v", a, err)
	}
}
