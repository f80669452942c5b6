package sourcetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/position"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/source"
)

// errCrash is why an attempt ends that the suite ends.
var errCrash = errors.New("crashed by the suite")

// cut is one epoch: the states of all subtasks, and what the sink had.
type cut struct {
	epoch      epoch.ID
	enumerator source.Cut
	readers    []source.Cut
	sink       *sink
	done       chan struct{}
}

// attempt is one deployment: a loop for the enumerator, one for each reader, one for the sink.
type attempt struct {
	m          *mesh
	ctx        context.Context //nolint:containedctx // it is the attempt's life, which its owner ends
	cancel     context.CancelCauseFunc
	group      *errgroup.Group
	failed     <-chan struct{}
	enumerator *mailbox
	readers    []*mailbox
	shelves    []*shelf // of the readers
	merge      *merge
	drained    atomic.Int64 // halves that are
	rows       atomic.Int64 // batches at the sink

	mu     sync.Mutex
	flight *cut
}

// start opens the halves and lets them run.
func (m *mesh) start(ctx context.Context, readers int) (*attempt, error) {
	m.fence++
	ctx, cancel := context.WithCancelCause(ctx)
	group, ctx := errgroup.WithContext(ctx)
	a := &attempt{m: m, ctx: ctx, cancel: cancel, group: group, failed: ctx.Done(), enumerator: newMailbox(), merge: newMerge(readers, m.rnd.Uint64())}
	cfg := source.Config{
		Identity: source.Identity{Job: "suite", Life: "suitelife", Fence: m.fence, Subtask: plan.SubtaskID{Vertex: plan.EnumeratorOf("db")}},
		Source:   m.source, Resolve: m.h.Resolve, Readers: readers, MaxTransactionRows: cutRows, Batch: 4 << 10, Logger: m.h.Logger,
		Segment: segmentSize,
	}
	m.sink = newSink()
	if m.durable != nil {
		m.sink = m.durable.sink.clone()
		cfg.Restore = m.durable.enumerator.State
		for _, r := range m.durable.readers {
			cfg.Parts = append(cfg.Parts, r.State)
		}
	}
	for range readers {
		s := &shelf{objects: &m.objects, fence: m.fence}
		if m.durable != nil {
			s.pass(m.durable.epoch)
		}
		a.shelves = append(a.shelves, s)
	}
	h := halves{}
	if err := h.open(ctx, m, cfg, a.shelves); err != nil {
		cancel(errCrash)
		return nil, errors.Join(err, h.close(), group.Wait())
	}
	for range readers {
		a.readers = append(a.readers, newMailbox())
	}
	group.Go(func() error { return closed(a.enumerate(h.enumerator), h.enumerator.Close) })
	for i, r := range h.readers {
		group.Go(func() error { return closed(a.read(i, r, a.readers[i]), r.Close) })
	}
	group.Go(func() error { return a.merge.run(ctx, a.apply, a.complete) })
	return a, nil
}

// halves are what a connector opens for one attempt.
type halves struct {
	enumerator source.Enumerator
	readers    []source.Reader
}

// open opens the enumerator and then the readers. What was opened before an error is to be closed.
func (h *halves) open(ctx context.Context, m *mesh, cfg source.Config, shelves []*shelf) (err error) {
	if h.enumerator, err = m.h.Connector.OpenEnumerator(ctx, cfg); err != nil {
		return fmt.Errorf("open enumerator: %w", err)
	}
	for i := range cfg.Readers {
		cfg.Subtask, cfg.Parts, cfg.Restore, cfg.Store = plan.SubtaskID{Vertex: "db", Index: i}, nil, nil, shelves[i]
		if m.durable != nil && i < len(m.durable.readers) {
			cfg.Restore = m.durable.readers[i].State
		}
		r, err := m.h.Connector.OpenReader(ctx, cfg)
		if err != nil {
			return fmt.Errorf("open reader %d: %w", i, err)
		}
		h.readers = append(h.readers, r)
	}
	return nil
}

func (h *halves) close() (err error) {
	if h.enumerator != nil {
		err = h.enumerator.Close()
	}
	for _, r := range h.readers {
		err = errors.Join(err, r.Close())
	}
	return err
}

// closed closes a half behind its loop. The end that the suite made is none.
func closed(err error, half func() error) error {
	if errors.Is(err, errCrash) || errors.Is(err, context.Canceled) {
		err = nil
	}
	return errors.Join(err, half())
}

// crash ends the attempt; what it had is gone. An error is one that the halves had before.
func (a *attempt) crash() error {
	a.cancel(errCrash)
	return a.group.Wait()
}

func (a *attempt) apply(b *rows.Batch) error {
	a.m.load.more(2)
	a.rows.Add(1)
	return a.m.sink.apply(b)
}

// complete keeps what the sink has at the barrier.
func (a *attempt) complete(e epoch.ID) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.flight == nil || a.flight.epoch != e {
		return fmt.Errorf("epoch %s is complete and not under way", e)
	}
	a.flight.sink = a.m.sink.clone()
	close(a.flight.done)
	return nil
}

// barrier begins an epoch.
func (a *attempt) barrier() *cut {
	a.m.epoch++
	c := &cut{epoch: a.m.epoch, readers: make([]source.Cut, len(a.readers)), done: make(chan struct{})}
	a.mu.Lock()
	a.flight = c
	a.mu.Unlock()
	a.enumerator.put(letter{kind: barrierLetter, epoch: c.epoch})
	return c
}

// wait returns when the epoch is complete.
func (a *attempt) wait(ctx context.Context, c *cut) error {
	select {
	case <-c.done:
		return nil
	case <-a.failed:
		return a.end()
	case <-ctx.Done():
		return fmt.Errorf("epoch %s does not complete: %w", c.epoch, ctx.Err())
	}
}

// end is why the attempt ended by itself.
func (a *attempt) end() error {
	if err := a.group.Wait(); err != nil {
		return err
	}
	return context.Cause(a.ctx)
}

// durable tells the enumerator, confirm everyone.
func (a *attempt) durable(c *cut) {
	a.enumerator.put(letter{kind: durableLetter, epoch: c.epoch})
}

func (a *attempt) confirm(c *cut) {
	a.enumerator.put(letter{kind: confirmLetter, epoch: c.epoch, cut: c.enumerator})
	for i, r := range a.readers {
		r.put(letter{kind: confirmLetter, epoch: c.epoch, cut: c.readers[i]})
	}
}

func (a *attempt) drain() {
	for _, b := range append(slices.Clone(a.readers), a.enumerator) {
		b.put(letter{kind: drainLetter})
	}
}

// directory lets the enumerator speak to its readers.
type directory struct{ a *attempt }

func (d directory) Tell(_ context.Context, reader int, payload []byte) error {
	if reader < 0 || reader >= len(d.a.readers) {
		return fmt.Errorf("there is no reader %d", reader)
	}
	d.a.readers[reader].put(letter{payload: slices.Clone(payload)})
	return nil
}

func (a *attempt) enumerate(e source.Enumerator) error {
	drained := false
	for {
		letters := a.enumerator.take()
		for _, l := range letters {
			if err := a.tellEnumerator(e, l); err != nil {
				return fmt.Errorf("enumerator: %w", err)
			}
		}
		if drained && len(letters) == 0 {
			if err := pause(a.ctx, a.enumerator.wake); err != nil {
				return err
			}
			continue
		}
		st, err := e.Poll(a.ctx, directory{a}, a.enumerator.wake)
		if err != nil {
			return fmt.Errorf("enumerator: poll: %w", err)
		}
		_ = e.Report()
		drained = a.heed(drained, st.Drained)
	}
}

func (a *attempt) tellEnumerator(e source.Enumerator, l letter) error {
	switch l.kind {
	case messageLetter:
		return e.Receive(l.reader, l.payload)
	case barrierLetter:
		c, err := e.Snapshot(l.epoch)
		if err != nil {
			return err
		}
		a.mu.Lock()
		a.flight.enumerator = c
		a.mu.Unlock()
		for _, r := range a.readers {
			r.put(l)
		}
	case durableLetter:
		e.Durable(l.epoch)
	case confirmLetter:
		e.Confirm(l.epoch, l.cut)
	case drainLetter:
		return e.Drain(a.ctx)
	}
	return nil
}

// output is how a reader emits.
type output struct {
	a      *attempt
	reader int
}

func (o output) Emit(ctx context.Context, b rows.Batch, at position.Position) error {
	if at.IsZero() && b.NumRows() > 0 && b.Op(0) != rows.OpRead {
		return errors.New("a change without a position")
	}
	o.a.merge.put(o.reader, passage{batch: &b})
	if at.IsZero() {
		o.a.m.load.turn(ctx)
	}
	return context.Cause(ctx)
}

func (o output) Tell(_ context.Context, payload []byte) error {
	o.a.enumerator.put(letter{reader: o.reader, payload: slices.Clone(payload)})
	return nil
}

func (a *attempt) read(i int, r source.Reader, box *mailbox) error {
	drained := false
	for {
		letters := box.take()
		for _, l := range letters {
			if err := a.tellReader(i, r, l); err != nil {
				return fmt.Errorf("reader %d: %w", i, err)
			}
		}
		if drained && len(letters) == 0 {
			if err := pause(a.ctx, box.wake); err != nil {
				return err
			}
			continue
		}
		st, err := r.Poll(a.ctx, output{a, i}, box.wake)
		if err != nil {
			return fmt.Errorf("reader %d: poll: %w", i, err)
		}
		_ = r.Report()
		drained = a.heed(drained, st.Drained)
	}
}

func (a *attempt) tellReader(i int, r source.Reader, l letter) error {
	switch l.kind {
	case messageLetter:
		return r.Receive(l.payload)
	case barrierLetter:
		c, err := r.Snapshot(l.epoch)
		if err != nil {
			return err
		}
		a.mu.Lock()
		a.flight.readers[i] = c
		a.mu.Unlock()
		a.shelves[i].pass(l.epoch)
		a.merge.put(i, passage{barrier: l.epoch})
	case confirmLetter:
		r.Confirm(l.epoch, l.cut)
	case drainLetter:
		return r.Drain(a.ctx)
	case durableLetter:
	}
	return nil
}

// heed counts the halves that are drained.
func (a *attempt) heed(was, is bool) bool {
	switch {
	case is && !was:
		a.drained.Add(1)
	case was && !is:
		a.drained.Add(-1)
	}
	return is
}

// pause waits for letters. Their signal is used up, but a drained half has no other use for it.
func pause(ctx context.Context, wake <-chan struct{}) error {
	select {
	case <-wake:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
