package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/job"
)

// eventsOf reads lines of answers and holds each against its schema.
func eventsOf(t *testing.T, out string) []job.Notice {
	t.Helper()
	contracts := loadContracts(t)
	var all []job.Notice
	for l := range strings.Lines(out) {
		if err := contracts.Validate("answer", []byte(l)); err != nil {
			t.Errorf("%v\n%s", err, l)
		}
		all = append(all, data[job.Notice](t, l))
	}
	return all
}

func phasesOf(events []job.Notice) []job.Phase {
	var all []job.Phase
	for _, e := range events {
		if e.Kind == job.NoticeState && (len(all) == 0 || all[len(all)-1] != e.Phase) {
			all = append(all, e.Phase)
		}
	}
	return all
}

func TestEventsOfJobs(t *testing.T) {
	t.Parallel()
	w := startMesh(t)
	for _, name := range []string{"told", "beside"} {
		w.ok(t, "job", "submit", specFile(t, name, "rows: 50"))
		w.ok(t, "status", name, "--wait-for", "finished", "--timeout", "20s")
	}
	follower := w.follow(t, "job", "events", "told", "--follow", "--json")
	want := []job.Phase{job.Created, job.Starting, job.Running, job.Draining, job.Finished}
	told := follower.until(t, func(n job.Notice) bool { return n.Phase == job.Finished })
	if got := phasesOf(told); !slices.Equal(got, want) {
		t.Errorf("phases %v, want %v", got, want)
	}
	for _, e := range told {
		if e.Job != "told" {
			t.Errorf("an event of %s", e.Job)
		}
	}
	all := eventsOf(t, w.ok(t, "job", "events", "--json"))
	if got := eventsOf(t, w.ok(t, "job", "events", "told", "--json")); !slices.Equal(phasesOf(got), want) || len(all) <= len(got) {
		t.Errorf("of told %+v, of all %d", got, len(all))
	}
	newest := eventsOf(t, w.ok(t, "job", "events", "told", "--limit", "2", "--json"))
	if len(newest) != 2 || newest[1].Phase != job.Finished {
		t.Errorf("the newest two: %+v", newest)
	}
	text := w.ok(t, "job", "events", "--since", "1h")
	if lines := strings.Split(strings.TrimSpace(text), "\n"); len(lines) != len(all) || !strings.Contains(lines[0], "  told          state     CREATED     attempt 0  SUBMITTED") {
		t.Errorf("%d events as text:\n%s", len(all), text)
	}
	if out := w.ok(t, "job", "events", "--since", time.Now().Add(time.Hour).Format(time.RFC3339)); out != "" {
		t.Errorf("since an hour from now:\n%s", out)
	}

	// What is deleted has events, what never was has none.
	w.ok(t, "job", "delete", "told", "--yes")
	if told := follower.until(t, func(n job.Notice) bool { return n.Phase == job.Deleted }); len(told) == 0 {
		t.Error("the deletion is not told")
	}
	if code := follower.stop(); code != 0 {
		t.Errorf("a follower that is stopped ends with %d", code)
	}
	if out := w.ok(t, "job", "events", "told"); !strings.Contains(out, "DELETED") {
		t.Errorf("events of a deleted job:\n%s", out)
	}
	wantError(t, w.run(t, "job", "events", "other", "--json"), 2, fault.CLINoJob)
	for _, since := range []string{"soon", "-1h", "2026-13-01T00:00:00Z"} {
		wantError(t, w.run(t, "job", "events", "--since="+since, "--json"), 2, fault.CLIUsage)
	}
	wantError(t, w.run(t, "job", "events", "--limit", "-1", "--json"), 2, fault.CLIUsage)
}

// follower is a command that goes on.
type follower struct {
	lines chan string
	stop  func() int
}

func (w world) follow(t *testing.T, args ...string) follower {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, pipe := io.Pipe()
	f := follower{lines: make(chan string, 1024)}
	ended := make(chan int, 1)
	go func() {
		var errs bytes.Buffer
		code := Run(ctx, append(args, "--nats", w.url), Std{Out: pipe, Err: &errs})
		pipe.Close()
		if errs.Len() > 0 {
			t.Errorf("weir %s: %s", strings.Join(args, " "), errs.String())
		}
		ended <- code
	}()
	go func() {
		defer close(f.lines)
		dec := json.NewDecoder(r)
		for {
			var line json.RawMessage
			if dec.Decode(&line) != nil {
				return
			}
			f.lines <- string(line)
		}
	}()
	f.stop = func() int {
		cancel()
		return <-ended
	}
	return f
}

// until takes events until one is as wanted.
func (f follower) until(t *testing.T, wanted func(job.Notice) bool) []job.Notice {
	t.Helper()
	deadline := time.After(time.Minute)
	var all []job.Notice
	for {
		select {
		case l, ok := <-f.lines:
			if !ok {
				t.Fatalf("the command has ended behind %+v", all)
			}
			n := eventsOf(t, l)[0]
			if all = append(all, n); wanted(n) {
				return all
			}
		case <-deadline:
			t.Fatalf("not told within a minute; told was %+v", all)
		}
	}
}

func TestAnEventAsText(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 30, 8, 0, 1, 123456, time.UTC)
	var b strings.Builder
	for _, n := range []job.Notice{
		{Kind: job.NoticeState, Job: "shop", Phase: job.Created, At: at, Reason: job.Reason{Code: "SUBMITTED"}},
		{
			Kind: job.NoticeRecovery, Job: "shop", Phase: job.Starting, Fence: 4, Epoch: 41, At: at,
			Reason: job.Reason{Code: "WEIR-JOB-014", Text: "first line\nsecond line", Remedy: "Wait."},
		},
	} {
		if err := eventText(&b, n, false); err != nil {
			t.Fatal(err)
		}
	}
	const want = "2026-11-30T08:00:01.000Z  state     CREATED     attempt 0  SUBMITTED\n" +
		"2026-11-30T08:00:01.000Z  recovery  STARTING    attempt 4  epoch 41  WEIR-JOB-014  first line second line\n" +
		"    do: Wait.\n"
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}
