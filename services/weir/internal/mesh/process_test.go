package mesh

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"weir.dev/weir/pkg/app"
	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/meshtest"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/weir/internal/control"
)

func TestMain(m *testing.M) { meshtest.Main(m) }

// patience bounds waiting for the mesh in real time.
const patience = time.Minute

// process is `weir up` inside the test process: all services, their HTTP address and their log.
type process struct {
	t    *testing.T
	ctx  context.Context
	http string
	log  *page
	mesh *control.Client
}

// page is a log that can be read while it is written.
type page struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (p *page) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.buf.Write(b)
}

func (p *page) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.buf.String()
}

// start runs every service of this build until the test ends; the log is of level debug.
func start(t *testing.T) *process {
	t.Helper()
	srv := meshtest.StartServer(t, meshtest.ServerOptions{})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	p := &process{t: t, ctx: ctx, log: &page{}}
	signals, address := make(chan os.Signal, 1), make(chan string, 1)
	ended := make(chan int, 1)
	go func() {
		ended <- app.Execute(app.Process{
			Args:   []string{"--http", "127.0.0.1:0", "--log-format", "json", "--log-level", "debug", "--node", "n1"},
			Stdout: io.Discard, Stderr: p.log, Signals: signals,
			Exit: func(int) { t.Error("forced exit") },
		}, "weir", struct{}{}, func(ctx context.Context, env app.Env, _ struct{}) error {
			env.Bus.InProcess = srv
			address <- env.HTTP
			return Run(ctx, env, Names()...)
		})
	}()
	select {
	case p.http = <-address:
	case code := <-ended:
		cancel()
		t.Fatalf("exit %d:\n%s", code, p.log)
	}
	conn, err := bus.Connect(ctx, bus.Options{Name: "test", InProcess: srv})
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		signals <- syscall.SIGTERM
		if code := <-ended; code != fault.ExitOK {
			t.Errorf("exit %d:\n%s", code, p.log)
		}
		cancel()
	})
	if p.mesh, err = control.Open(ctx, conn); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *process) submit(text string) {
	p.t.Helper()
	j, err := spec.Parse([]byte(text), "job.yaml")
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := p.mesh.Submit(p.ctx, j, "job.yaml", true); err != nil {
		p.t.Fatal(err)
	}
}

// await follows a job's head.
func (p *process) await(name string, done func(*job.Head) bool) {
	p.t.Helper()
	if _, err := p.mesh.Await(p.ctx, name, func(h *job.Head) (bool, error) { return h != nil && done(h), nil }); err != nil {
		p.t.Fatalf("%v\n%s", err, p.log)
	}
}

// get reads one page of the process.
func (p *process) get(path string) (status int, body string) {
	p.t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := http.NewRequestWithContext(p.ctx, http.MethodGet, "http://"+p.http+path, http.NoBody)
	if err != nil {
		p.t.Fatal(err)
	}
	answer, err := client.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return answer.StatusCode, string(b)
}

// until asks for a page until it is as wanted.
func (p *process) until(path, what string, ok func(status int, body string) bool) string {
	p.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		status, body := p.get(path)
		if ok(status, body) {
			return body
		}
		select {
		case <-tick.C:
		case <-p.ctx.Done():
			p.t.Fatalf("%s never had %s:\n%d %s\n%s", path, what, status, body, p.log)
		}
	}
}

// records are the lines of the log so far.
func (p *process) records() []string {
	lines := strings.Split(strings.TrimSpace(p.log.String()), "\n")
	if last := len(lines) - 1; !json.Valid([]byte(lines[last])) {
		return lines[:last] // it is being written
	}
	return lines
}

const shop = `
apiVersion: weir/v1
job: shop
epoch: {interval: 100ms}
sources:
  gen: {type: generator, rate: 500, tables: 2}
sinks:
  out: {from: [gen], type: blackhole, writers: 2}
`

func committed(n uint64) func(*job.Head) bool {
	return func(h *job.Head) bool { return h.Phase == job.Running && uint64(h.Committed) >= n }
}
