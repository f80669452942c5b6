package notify

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/meshtest"
	"weir.dev/weir/pkg/position"
	"weir.dev/weir/pkg/progress"
	"weir.dev/weir/pkg/report"
	"weir.dev/weir/services/progress/internal/view"
)

func TestMain(m *testing.M) { meshtest.Main(m) }

// receiver is what events are posted to. It is away while down, and takes an event without saying so while deaf.
type receiver struct {
	mu         sync.Mutex
	got        []Event
	down, deaf bool
	tries      int
	posting    func() // is called within a post
}

func (r *receiver) Post(_ context.Context, e *Event) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tries++
	if r.posting != nil {
		r.posting()
	}
	if r.down {
		return fault.New(fault.APIWebhookAway, "webhook test", "down")
	}
	r.got = append(r.got, *e)
	if r.deaf {
		return fault.New(fault.APIWebhookAway, "webhook test", "the answer is lost")
	}
	return nil
}

// kinds are the events received, each id once, as "kind why".
func (r *receiver) kinds() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	ids := make(map[string]bool)
	for _, e := range r.got {
		if ids[e.ID] {
			continue
		}
		ids[e.ID] = true
		text := string(e.Kind)
		for _, f := range e.Findings {
			text += " " + string(f.Kind)
		}
		if e.Notice != nil {
			text += " " + e.Notice.Reason.Code
		}
		all = append(all, text)
	}
	return all
}

func (r *receiver) set(change func(*receiver)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(r)
}

type world struct {
	*testing.T

	conn  *bus.Conn
	board *view.Board
	work  sync.WaitGroup
}

func inBubble(t *testing.T, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := meshtest.StartServer(t, meshtest.ServerOptions{})
		conn, err := bus.Connect(t.Context(), bus.Options{Name: "test", InProcess: srv})
		if err != nil {
			t.Fatal(err)
		}
		w := &world{T: t, conn: conn, board: view.NewBoard(time.Hour)}
		defer func() {
			w.work.Wait()
			conn.Close()
			srv.Shutdown()
		}()
		if err := conn.EnsureBase(t.Context(), bus.BaseConfig{MemoryState: true}); err != nil {
			t.Fatal(err)
		}
		f(w)
	})
}

// instance runs one notifier until it is stopped.
func (w *world) instance(name string, to Poster) (stop func()) {
	w.Helper()
	n, err := New(w.Context(), Config{Name: name, Conn: w.conn, Board: w.board, To: to, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		w.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.Context())
	w.work.Go(func() { _ = n.Run(ctx) })
	return cancel
}

// show shows a job of an attempt with what it waits for; without anything it has caught up.
func (w *world) show(fence uint64, kinds ...progress.FindingKind) {
	behind := uint64(0)
	j := view.Job{Detail: progress.Detail{Status: progress.Status{Job: "shop", Life: "aa", Fence: fence, Phase: job.Running, Epoch: progress.Epochs{Durable: 3, Committed: 3}}}}
	for _, k := range kinds {
		behind = 7
		j.Findings = append(j.Findings, progress.Finding{Kind: k, About: "x", Text: "text of " + string(k)})
	}
	j.Findings = append(j.Findings, progress.Finding{Kind: progress.LettersKept, Note: true, About: "x"})
	j.Sources = []progress.Source{{Name: "db", Lifecycle: report.Incremental, Readers: []progress.Reader{
		{Behind: progress.Behind{Value: report.BestEffortOf(behind), Unit: position.Bytes}}, {Reader: report.Reader{Copies: true}},
	}}}
	w.board.Show(view.View{At: time.Now(), Jobs: []view.Job{j}})
}

func (w *world) tell(code string) {
	w.Helper()
	b, err := json.Marshal(job.Notice{Kind: job.NoticeRecovery, Job: "shop", Life: "aa", Fence: 1, Reason: job.Reason{Code: code}, At: time.Now()})
	if err != nil {
		w.Fatal(err)
	}
	if err := w.conn.PublishEvent(w.Context(), "shop", string(job.NoticeRecovery), b); err != nil {
		w.Fatal(err)
	}
}

func (w *world) want(r *receiver, kinds ...string) {
	w.Helper()
	if got := r.kinds(); !slices.Equal(got, kinds) {
		w.Errorf("told %q, want %q", got, kinds)
	}
}

func pass(d time.Duration) { <-time.After(d) }

// What the leader tells, that a job has caught up and why it does not move are told once each, and what comes and goes is not.
func TestChangesAreTold(t *testing.T) {
	inBubble(t, func(w *world) {
		w.tell("BEFORE-ANYBODY-ASKED")
		pass(time.Second)
		var r receiver
		w.show(1, progress.Starting)
		defer w.instance("a", &r)()
		pass(3 * time.Second)
		w.want(&r)
		pass(5 * time.Second)
		w.want(&r, "why starting")
		w.show(1)
		pass(10 * time.Second)
		w.want(&r, "why starting", "caught_up", "why")
		w.show(1, progress.SinkBlocked)
		pass(2 * time.Second)
		w.show(1) // it was nothing
		pass(10 * time.Second)
		w.tell("WEIR-PG-001")
		pass(3 * time.Second)
		w.show(2, progress.SinkBlocked, progress.EpochWaits)
		pass(30 * time.Second)
		w.show(2)
		pass(10 * time.Second)
		w.want(&r, "why starting", "caught_up", "why", "recovery WEIR-PG-001", "why sink_blocked epoch_waits", "caught_up", "why")
		w.board.Show(view.View{At: time.Now()})
		pass(3 * time.Second)
		if e, err := w.outbox(); err != nil || strings.Contains(e, `"shop"`) {
			t.Errorf("a job that is gone: %s, %v", e, err)
		}
		for _, e := range r.got {
			if e.ID == "" || e.Version != EventVersion || e.Job != "shop" || e.At.IsZero() {
				t.Errorf("%+v", e)
			}
		}
	})
}

// A finding that lasts is told while another one comes and goes.
func TestOneFindingDoesNotHideAnother(t *testing.T) {
	inBubble(t, func(w *world) {
		var r receiver
		w.show(1)
		defer w.instance("a", &r)()
		pass(2 * time.Second)
		for range 10 {
			w.show(1, progress.SinkBlocked, progress.EpochWaits)
			pass(3 * time.Second)
			w.show(1, progress.SinkBlocked)
			pass(3 * time.Second)
		}
		told := r.kinds()
		if len(told) < 2 || !strings.HasPrefix(told[1], "why sink_blocked") || len(told) > 3 {
			t.Errorf("told %q", told)
		}
		if at := r.got[1].At.Sub(r.got[0].At); at > settle+3*interval {
			t.Errorf("told after %s", at)
		}
	})
}

func (w *world) outbox() (string, error) {
	b, err := w.conn.Bucket(w.Context(), bus.ProgressBucket)
	if err != nil {
		return "", err
	}
	e, err := b.Get(w.Context(), Key)
	return string(e.Value), err
}

// N1: whatever ends an instance, and whenever, each event arrives, with one id however often, and in order.
func TestAtLeastOnceOverRestarts(t *testing.T) {
	inBubble(t, func(w *world) {
		var r receiver
		w.show(1)
		stop := w.instance("a0", &r)
		pass(3 * time.Second)
		w.want(&r, "caught_up")
		want := []string{"caught_up"}
		for i := range 8 {
			switch i % 4 {
			case 0: // killed while the receiver is away
				r.set(func(r *receiver) { r.down = true })
			case 1: // killed in the middle of a post
				r.set(func(r *receiver) { r.posting = stop })
			case 2: // the receiver has it, and the answer is lost
				r.set(func(r *receiver) { r.deaf = true })
			}
			code := fmt.Sprint("N", i)
			w.tell(code)
			want = append(want, "recovery "+code)
			pass(3 * time.Second)
			stop()
			code += "-while-nobody-ran"
			w.tell(code)
			want = append(want, "recovery "+code)
			pass(time.Second)
			r.set(func(r *receiver) { r.down, r.deaf, r.posting = false, false, nil })
			stop = w.instance(fmt.Sprint("a", i+1), &r)
			pass(hold + 5*time.Second)
			w.want(&r, want...)
		}
		stop()
		if len(r.got) <= len(want) {
			t.Error("nothing was repeated: the test does not test what it says")
		}
		if o, err := w.outbox(); err != nil || !strings.Contains(o, `"pending":[]`) {
			t.Errorf("%s, %v", o, err)
		}
	})
}

// N2: of two instances one sends; when it is gone, the other one does, and tells nothing twice.
func TestOneInstanceSends(t *testing.T) {
	inBubble(t, func(w *world) {
		var a, b receiver
		w.show(1)
		stop := w.instance("a", &a)
		pass(2 * time.Second)
		defer w.instance("b", &b)()
		for i := range 10 {
			w.tell(fmt.Sprint("N", i))
			pass(10 * time.Second)
		}
		if len(a.got) != 11 || len(b.got) != 0 {
			t.Errorf("a has sent %d, b %d", len(a.got), len(b.got))
		}
		stop()
		w.tell("AFTER")
		pass(hold + 3*time.Second)
		w.want(&b, "recovery AFTER")
	})
}

// N3: a receiver that is away for long costs nothing but time: the outbox stays bounded, notices wait in their stream, and the
// pauses grow.
func TestAFullOutboxTakesNothingIn(t *testing.T) {
	inBubble(t, func(w *world) {
		var r receiver
		r.down = true
		w.show(1)
		defer w.instance("a", &r)()
		pass(2 * time.Second)
		want := []string{"caught_up"}
		for i := range mostEvents + 100 {
			w.tell(fmt.Sprint("N", i))
			want = append(want, fmt.Sprint("recovery N", i))
		}
		pass(10 * time.Minute)
		w.show(1, progress.SinkBlocked)
		pass(5 * time.Minute)
		w.show(1, progress.EpochWaits)
		pass(5 * time.Minute)
		o, err := w.outbox()
		if n := strings.Count(o, `"id"`); err != nil || n > mostEvents || n < mostEvents-1 {
			t.Errorf("%d events are pending, %v", n, err)
		}
		if r.tries > 15 {
			t.Errorf("%d tries in twenty minutes", r.tries)
		}
		r.set(func(r *receiver) { r.down = false })
		pass(longestPause + 10*time.Second)
		got := r.kinds()
		if n := len(want); len(got) != n+1 || !slices.Equal(got[:1], want[:1]) || !slices.Contains(got, "why epoch_waits") || slices.Contains(got, "why sink_blocked") {
			t.Errorf("%d events, want %d and one change: %q", len(got), n, got[max(0, len(got)-5):])
		}
		got = slices.DeleteFunc(got, func(k string) bool { return strings.HasPrefix(k, "why") })
		if !slices.Equal(got, want) {
			t.Error("notices are missing or out of order")
		}
	})
}
