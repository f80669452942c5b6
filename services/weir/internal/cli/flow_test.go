package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"weir.dev/weir/pkg/app"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/services/weir/internal/control"
)

// TestTheLifeOfAJob takes one job through every command, on a real mesh.
func TestTheLifeOfAJob(t *testing.T) {
	t.Parallel()
	w := startMesh(t)
	contracts := loadContracts(t)
	show := func(args ...string) string {
		t.Helper()
		out := w.ok(t, append(args, "--json")...)
		if err := contracts.Validate("answer", []byte(out)); err != nil {
			t.Errorf("weir %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return out
	}
	show("job", "list")
	show("status")
	file := specFile(t, "shop", "rate: 200")

	if sub := data[control.Submission](t, show("job", "submit", file)); sub.Unchanged || sub.Life == "" {
		t.Errorf("first submit: %+v", sub)
	}
	if sub := data[control.Submission](t, show("job", "submit", file)); !sub.Unchanged {
		t.Errorf("second submit of an equal spec: %+v, want unchanged", sub)
	}
	differs := w.run(t, "job", "submit", specFile(t, "shop", "rate: 300"), "--json")
	wantError(t, differs, 2, fault.CLISpecDiffers)
	if e := errorOf(t, differs); !strings.Contains(e.Why, "-") || !strings.Contains(e.Why, "300") || !strings.Contains(e.Remedy, "weir job cancel shop") {
		t.Errorf("the error has no difference or no remedy: %+v", e)
	}

	show("status", "shop", "--wait-for", "running", "--timeout", "20s")
	st := data[control.Status](t, show("status", "shop", "--wait-for", "caught-up", "--timeout", "20s"))
	if st.Epoch.Committed == 0 || st.Sources[0].Lifecycle != "INCREMENTAL" {
		t.Errorf("caught up, and yet %+v", st)
	}
	wantError(t, w.run(t, "status", "shop", "--wait-for", "finished", "--timeout", "200ms", "--json"), 5, fault.CLIWaitTimeout)
	wantError(t, w.run(t, "status", "shop", "--wait-for", "asleep", "--json"), 2, fault.CLIUsage)
	wantError(t, w.run(t, "status", "--wait-for", "running", "--json"), 2, fault.CLIUsage)

	show("status")
	show("job", "list")
	show("job", "get", "shop")
	show("bus", "shop")
	show("epochs", "list", "shop", "--limit", "3")
	show("epochs", "show", "shop")
	show("epochs", "verify", "shop")
	wantError(t, w.run(t, "epochs", "show", "shop", "x", "--json"), 2, fault.CLIUsage)
	wantError(t, w.run(t, "epochs", "show", "shop", "999999", "--json"), 2, fault.CLIUsage)
	wantError(t, w.run(t, "job", "resume", "shop", "--json"), 2, fault.CLIWrongPhase)
	for _, command := range []string{"cancel", "delete"} {
		wantError(t, w.run(t, "job", command, "shop", "--json"), 2, fault.CLINeedsYes)
	}
	for _, args := range [][]string{
		{"job", "get", "other"},
		{"status", "other"},
		{"bus", "other"},
		{"epochs", "list", "other"},
		{"epochs", "verify", "other"},
		{"job", "drain", "other"},
		{"job", "delete", "other", "--yes"},
	} {
		wantError(t, w.run(t, append(args, "--json")...), 2, fault.CLINoJob)
	}

	completes(t, w, "shop")
	tails(t, w)

	if a := data[control.Asked](t, show("job", "drain", "shop")); a.Phase != "FINISHED" || a.Durable != a.Committed {
		t.Errorf("drained: %+v", a)
	}
	show("status", "shop", "--wait-for", "finished")
	show("epochs", "verify", "shop")
	wantError(t, w.run(t, "status", "shop", "--wait-for", "running", "--timeout", "20s", "--json"), 2, fault.CLIWrongPhase)
	if sub := data[control.Submission](t, show("job", "submit", file)); sub.Unchanged {
		t.Errorf("submit after the end: %+v, want a new life", sub)
	}
	if a := data[control.Asked](t, show("job", "cancel", "shop", "--yes")); a.Phase != "CANCELLED" {
		t.Errorf("cancelled: %+v", a)
	}
	show("job", "delete", "shop", "--yes")
	wantError(t, w.run(t, "job", "get", "shop", "--json"), 2, fault.CLINoJob)
}

func TestABoundedGeneratorFinishes(t *testing.T) {
	t.Parallel()
	w := startMesh(t)
	file := specFile(t, "short", "rows: 500")
	w.ok(t, "job", "submit", file)
	w.ok(t, "status", "short", "--wait-for", "finished", "--timeout", "20s")
	w.ok(t, "status", "short", "--wait-for", "caught-up", "--timeout", "20s")
	w.ok(t, "epochs", "verify", "short")
	rows := uint64(0)
	for _, e := range data[[]epochLine](t, w.ok(t, "epochs", "list", "short", "--json")) {
		rows += e.Rows
	}
	if rows != 500 {
		t.Errorf("finished with %d rows", rows)
	}
}

// A wait that a person breaks off ends with the signal's exit code, not with that of a time-out.
func TestAnInterruptedWait(t *testing.T) {
	t.Parallel()
	w := startMesh(t)
	w.ok(t, "job", "submit", specFile(t, "endless", "rate: 10"))
	for signal, want := range map[os.Signal]int{os.Interrupt: 130, syscall.SIGTERM: 143} {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(300*time.Millisecond, func() { cancel(app.StoppedError{Signal: signal}) })
		var out, errs bytes.Buffer
		code := Run(ctx, []string{"status", "endless", "--wait-for", "finished", "--json", "--nats", w.url}, Std{Out: &out, Err: &errs})
		wantError(t, result{code: code, out: out.String(), err: errs.String()}, want, fault.CLIInterrupted)
	}
}

func TestALiteralPasswordIsNotStored(t *testing.T) {
	t.Parallel()
	w := startMesh(t)
	const canary = "canary-5f3a9c"
	file := writeFile(t, "leak.yaml", "apiVersion: weir/v1\njob: leak\nsources: {gen: {type: generator}}\n"+
		"sinks: {db: {from: [gen], type: postgres, url: \"postgres://u:"+canary+"@db.example/x\", schema: s, mode: append}}\n")
	r := w.run(t, "job", "submit", file, "--json")
	wantError(t, r, 2, fault.SpecLiteralSecret)
	if strings.Contains(r.out+r.err, canary) {
		t.Errorf("the password is printed:\n%s%s", r.out, r.err)
	}
	wantError(t, w.run(t, "job", "get", "leak", "--json"), 2, fault.CLINoJob)
}

// TestUpTakesALiteralPasswordOnLoopbackOnly is what `weir up` does with a job of its command line.
func TestUpTakesALiteralPasswordOnLoopbackOnly(t *testing.T) {
	t.Parallel()
	w := startMesh(t)
	const canary = "canary-1d2e3f"
	j, err := readSpec(writeFile(t, "local.yaml", "apiVersion: weir/v1\njob: local\nsources: {gen: {type: generator}}\n"+
		"sinks: {db: {from: [gen], type: postgres, url: \"postgres://u:"+canary+"@127.0.0.1:1/x\", schema: s, mode: append}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	s := &settings{nats: w.url}
	c, err := s.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var out, log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	open := up{listen: "0.0.0.0:4222", w: &out}
	if err := open.one(t.Context(), logger, c.Client, given{file: "local.yaml", job: j}); fault.CodeOf(err) != fault.SpecLiteralSecret {
		t.Errorf("open to the network: %v", err)
	}
	local := up{listen: "127.0.0.1:4222", w: &out}
	if err := local.one(t.Context(), logger, c.Client, given{file: "local.yaml", job: j}); err != nil {
		t.Errorf("on loopback: %v", err)
	}
	if !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), "sinks.db.url") {
		t.Errorf("no warning:\n%s", log.String())
	}
	if text := out.String() + log.String() + w.ok(t, "job", "get", "local"); strings.Contains(text, canary) {
		t.Errorf("the password is printed:\n%s", text)
	}
	w.ok(t, "job", "delete", "local", "--yes")
}

// tails reads what enters a vertex.
func tails(t *testing.T, w world) {
	t.Helper()
	out := w.ok(t, "tail", "shop/nowhere", "-n", "20")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 20 {
		t.Errorf("%d lines, want 20", len(lines))
	}
	var rows int
	for _, l := range lines {
		var v map[string]any
		if err := json.Unmarshal([]byte(l), &v); err != nil {
			t.Errorf("not a JSON line: %v\n%s", err, l)
		}
		if v["op"] != nil {
			rows++
		}
	}
	if rows == 0 {
		t.Errorf("no row among\n%s", out)
	}
}

// completes asks as a shell does.
func completes(t *testing.T, w world, name string) {
	t.Helper()
	for _, args := range [][]string{
		{"job", "drain", ""}, {"job", "get", name[:1]}, {"status", ""}, {"bus", ""}, {"epochs", "verify", ""}, {"tail", ""},
	} {
		r := run(t, append([]string{"__complete", "--nats", w.url}, args...)...)
		if r.code != 0 || !strings.Contains(r.out, name) {
			t.Errorf("completion of %v: exit %d, offers\n%s", args, r.code, r.out)
		}
	}
	if r := run(t, "__complete", "--nats", w.url, "job", "get", "x"); strings.Contains(r.out, name) {
		t.Errorf("completion of a name that begins with x offers\n%s", r.out)
	}
}

func data[T any](t *testing.T, out string) T {
	t.Helper()
	var a struct{ Data T }
	if err := json.Unmarshal([]byte(out), &a); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return a.Data
}

func errorOf(t *testing.T, r result) *fault.Error {
	t.Helper()
	var a struct{ Error *fault.Error }
	if err := json.Unmarshal([]byte(r.err), &a); err != nil || a.Error == nil {
		t.Fatalf("no error object: %v\n%s", err, r.err)
	}
	return a.Error
}

func wantError(t *testing.T, r result, exit int, code fault.Code) {
	t.Helper()
	if err := loadContracts(t).Validate("answer", []byte(r.err)); err != nil {
		t.Errorf("%v\n%s", err, r.err)
	}
	if e := errorOf(t, r); r.code != exit || e.Code != code || r.out != "" {
		t.Errorf("exit %d, %s, output %q; want exit %d, %s", r.code, e.Error(), r.out, exit, code)
	}
}
