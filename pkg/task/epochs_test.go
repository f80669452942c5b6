package task_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/envelope"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/meshtest"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/pkg/task"
)

// I5, T5: a committer that is told of a durable epoch which the head record, read afresh, does not name commits nothing
// and says so.
func TestCommitWaitsForTheHead(t *testing.T) {
	t.Parallel()
	var target meshtest.Target
	inBubble(t, flowSpec, &target, func(ctx context.Context, l *leader) {
		l.start(ctx)
		l.change(func(h *job.Head) { h.Phase = job.Running })
		pass(200 * time.Millisecond)
		l.epoch(ctx)
		committed := len(target.Log())
		pass(200 * time.Millisecond)
		target.SetDown(true)
		l.mu.Lock()
		before := l.head.Durable
		l.mu.Unlock()
		l.durable(ctx, l.trigger())
		pass(10 * time.Second)
		l.mu.Lock()
		l.head.Durable = before
		l.mu.Unlock()
		target.SetDown(false)
		pass(time.Minute)
		if log := target.Log(); len(log) != committed {
			t.Errorf("committed before durable: %+v", log[committed:])
		}
		select {
		case err := <-l.run.failed:
			if !strings.Contains(err.Error(), "I5") {
				t.Errorf("the committer ended with: %v", err)
			}
		default:
			t.Error("the committer says nothing")
		}
	})
}

// ⚑ Every open fact is told again each second, and at once when asked for, until it is closed.
func TestOpenFactsAreRepeated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var to ear
		b := task.NewBoard(&to, "shop", 3, subtaskID("gen", 0), slog.New(slog.DiscardHandler))
		done := make(chan struct{})
		go func() {
			defer close(done)
			b.Run(ctx)
		}()
		to.deaf(true)
		b.Open(envelope.Ready, 0, job.ReadyFact{Fence: 3})
		pass(1500 * time.Millisecond)
		to.deaf(false)
		pass(time.Second)
		if n := to.heard(envelope.Ready); n != 1 {
			t.Errorf("a fact that could not be told was told %d times in the next second, want 1", n)
		}
		b.Open(envelope.Ack, 7, job.AckFact{Fence: 3, Epoch: 7})
		synctest.Wait()
		if n := to.heard(envelope.Ack); n != 1 {
			t.Errorf("a new fact was told %d times at once, want 1", n)
		}
		b.Repeat()
		synctest.Wait()
		if ready, ack := to.heard(envelope.Ready), to.heard(envelope.Ack); ready != 2 || ack != 2 {
			t.Errorf("after a reconnect ready was told %d times and ack %d times, want 2 and 2", ready, ack)
		}
		b.Close(envelope.Ready)
		pass(3 * time.Second)
		if ready, ack := to.heard(envelope.Ready), to.heard(envelope.Ack); ready != 2 || ack != 5 {
			t.Errorf("3 s later ready (closed) was told %d times and ack (open) %d times, want 2 and 5", ready, ack)
		}
		cancel()
		<-done
	})
}

// ear takes facts, or does not.
type ear struct {
	mu     sync.Mutex
	silent bool
	all    []string
}

func (e *ear) PutFact(_ context.Context, subject string, _ bus.Header, _ []byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.silent {
		return bus.ErrUnknown
	}
	_, _, kind, _, err := bus.ParseAckSubject(subject)
	e.all = append(e.all, kind)
	return err
}

func (e *ear) deaf(yes bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.silent = yes
}

func (e *ear) heard(k envelope.Kind) (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, x := range e.all {
		if x == string(k) {
			n++
		}
	}
	return n
}

// ⚑ Only a committed epoch's position is ever confirmed to the source: not a durable one, not a skipped one.
func TestOnlyCommittedEpochsAreConfirmed(t *testing.T) {
	t.Parallel()
	var target meshtest.Target
	inBubble(t, flowSpec, &target, func(ctx context.Context, l *leader) {
		spy := &confirmations{Connector: l.src}
		l.src = spy
		l.start(ctx)
		l.change(func(h *job.Head) { h.Phase = job.Running })
		pass(200 * time.Millisecond)
		first := l.epoch(ctx)
		pass(200 * time.Millisecond)
		skipped := l.trigger()
		l.await(ctx, envelope.Ack, len(l.part.Ackers()), skipped)
		l.change(func(h *job.Head) { h.InFlight = nil })
		pass(200 * time.Millisecond)
		target.SetDown(true)
		last := l.durable(ctx, l.trigger())
		pass(time.Minute)
		want := []epoch.ID{first.Epoch, first.Epoch}
		if got := spy.epochs(); !slices.Equal(got, want) {
			t.Errorf("while epoch %s is durable and not committed the two readers were told of %v, want %v", last.Epoch, got, want)
		}
		target.SetDown(false)
		l.committed(ctx, last.Epoch)
		pass(time.Second)
		want = append(want, last.Epoch, last.Epoch)
		if got := spy.epochs(); !slices.Equal(got, want) {
			t.Errorf("the two readers were told of %v, want %v", got, want)
		}
		for _, c := range spy.told {
			position := last.Subtasks[subtaskID("gen", c.reader)].Position
			if c.epoch == last.Epoch && c.at.String() != position.String() {
				t.Errorf("reader %d was told to confirm %s, the manifest has %s", c.reader, c.at, position)
			}
		}
	})
}

// confirmations is a source whose readers write down what they may confirm.
type confirmations struct {
	source.Connector
	mu   sync.Mutex
	told []confirmation
}

type confirmation struct {
	reader int
	epoch  epoch.ID
	at     interface{ String() string }
}

func (c *confirmations) OpenReader(ctx context.Context, cfg source.Config) (source.Reader, error) {
	r, err := c.Connector.OpenReader(ctx, cfg)
	return confirmed{r, c, cfg.Subtask.Index}, err
}

func (c *confirmations) epochs() []epoch.ID {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []epoch.ID
	for _, t := range c.told {
		all = append(all, t.epoch)
	}
	return all
}

type confirmed struct {
	source.Reader
	c     *confirmations
	index int
}

func (r confirmed) Confirm(e epoch.ID, cut source.Cut) {
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	r.c.told = append(r.c.told, confirmation{r.index, e, cut.Position})
	r.Reader.Confirm(e, cut)
}
