package cli

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"weir.dev/weir/pkg/app"
	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/config"
	"weir.dev/weir/pkg/meshtest"
	"weir.dev/weir/pkg/telemetry"
	"weir.dev/weir/services/weir/internal/embed"
	"weir.dev/weir/services/weir/internal/mesh"
)

func TestMain(m *testing.M) { meshtest.Main(m) }

// result is what a command line left behind.
type result struct {
	code     int
	out, err string
}

// run executes one command line. It must not wait for a person or a signal.
func run(t *testing.T, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out, errs bytes.Buffer
	code := Run(ctx, args, Std{Out: &out, Err: &errs})
	return result{code: code, out: out.String(), err: errs.String()}
}

// world is an in-process mesh with all services of `weir up`.
type world struct {
	url string
}

func (w world) run(t *testing.T, args ...string) result {
	t.Helper()
	return run(t, append(args, "--nats", w.url)...)
}

// ok runs a command that must succeed and returns what it printed.
func (w world) ok(t *testing.T, args ...string) string {
	t.Helper()
	r := w.run(t, args...)
	if r.code != 0 {
		t.Fatalf("weir %s: exit %d\n%s%s", strings.Join(args, " "), r.code, r.out, r.err)
	}
	return r.out
}

func startMesh(t *testing.T) world {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	server, err := embed.Start(t.Context(), embed.Config{StoreDir: t.TempDir(), Listen: "127.0.0.1:0", Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	tel, err := telemetry.Open(t.Context(), telemetry.Config{
		Service: "weir", Version: app.Version(), Node: "test", Logger: log, Env: func(string) (string, bool) { return "", false },
	})
	if err != nil {
		t.Fatal(err)
	}
	ready := make(chan struct{})
	env := app.Env{
		Service: "weir", Node: "test", Telemetry: tel.For("weir", "test"), Lookup: config.OS(), Health: app.NewHealth(),
		Bus: bus.Options{InProcess: server, Logger: log}, Ready: sync.OnceFunc(func() { close(ready) }),
	}
	ctx, stop := context.WithCancelCause(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- mesh.Run(ctx, env, mesh.Names()...) }()
	t.Cleanup(func() {
		stop(app.ErrStopped)
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, app.ErrStopped) {
			t.Errorf("the mesh ended: %v", err)
		}
		if err := tel.Close(context.Background()); err != nil {
			t.Errorf("close telemetry: %v", err)
		}
	})
	select {
	case <-ready:
	case err := <-ended:
		ended <- err
		t.Fatalf("the mesh ended before it was ready: %v", err)
	case <-time.After(time.Minute):
		t.Fatal("the mesh is not ready after a minute")
	}
	return world{url: server.URL()}
}

// specFile writes a job of a generator and a blackhole. source are further lines of the source.
func specFile(t *testing.T, name string, source ...string) string {
	t.Helper()
	text := "apiVersion: weir/v1\njob: " + name + "\nepoch: {interval: 50ms}\nsources:\n  gen:\n    type: generator\n"
	for _, l := range source {
		text += "    " + l + "\n"
	}
	return writeFile(t, name+".yaml", text+"sinks:\n  nowhere: {from: [gen], type: blackhole}\n")
}

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
