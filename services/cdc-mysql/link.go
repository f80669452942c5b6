package cdcmysql

import (
	"cmp"
	"context"
	"sync"
	"time"

	"weir.dev/weir/pkg/cdc/halves"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/position"
	"weir.dev/weir/pkg/telemetry"
	"weir.dev/weir/services/cdc-mysql/internal/core"
	"weir.dev/weir/services/cdc-mysql/internal/server"
)

const (
	// queueBytes bounds what was received and not emitted yet.
	queueBytes = 16 << 20
	// observeInterval is the pause between two looks at the head of the log; more often tells nothing new.
	observeInterval = 2 * time.Second
	// wantedObserve is the pause when somebody waits for a look.
	wantedObserve = 100 * time.Millisecond
	// historyInterval is the pause between two looks whether the log behind the committed position is still there.
	historyInterval = 10 * time.Second
)

// link is the reader's side towards the server: it receives the log and looks at its head.
type link struct {
	*opened
	progress *progress
	queue    *halves.Queue[item]
	end      *drainEnd
	looks    *halves.Looks
	lost     chan error      // holds why the job cannot go on from where it is committed
	ctx      context.Context //nolint:containedctx // of the goroutines, which Close ends
	cancel   context.CancelFunc
	done     sync.WaitGroup

	stop context.CancelFunc // of the present stream

	mu        sync.Mutex
	committed core.Point // whatever lies behind it is needed until more is committed
	copied    core.Point // what rows of the copy were read behind, and the log has not passed; of no family when nothing is
}

// item is a step of the log, as one of the link's streams received it.
type item struct {
	step

	session int
}

func startLink(o *opened, p *progress) *link {
	ctx, cancel := context.WithCancel(context.Background())
	return &link{opened: o, progress: p, queue: halves.NewQueue[item](queueBytes), end: newDrainEnd(), looks: halves.NewLooks(), lost: make(chan error, 1), ctx: ctx, cancel: cancel}
}

// begin looks at the server beside the log, until the link is closed.
func (l *link) begin(s *enumeratorState) {
	l.keep(s.Resume)
	l.done.Go(func() { l.observe(l.ctx, s) })
}

// keep says up to where the log is not needed any more.
func (l *link) keep(at core.Point) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.committed = at
}

func (l *link) kept() core.Point {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.committed
}

// expect says behind what rows of the copy were read that the log has yet to pass; a point of no family ends that.
func (l *link) expect(at core.Point) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.copied = at
}

func (l *link) expected() core.Point {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.copied
}

// open reads the log from a point on; what earlier streams still bring has another session number.
func (l *link) open(s *enumeratorState, session int, from core.Point, seen *seen, locate *locator) {
	if l.stop != nil {
		l.stop()
	}
	ctx, stop := context.WithCancel(l.ctx)
	l.stop = stop
	l.done.Go(func() {
		if err := l.receive(ctx, s, session, from, seen, locate); err != nil && ctx.Err() == nil {
			l.queue.Fail(err)
		}
	})
}

func (l *link) receive(ctx context.Context, s *enumeratorState, session int, from core.Point, seen *seen, locate *locator) error {
	if locate != nil {
		defer locate.sql.close()
	}
	ctx, release, id, err := l.replica(ctx, l.serverName(s), "log", true)
	if err != nil {
		return err
	}
	defer release()
	whole, err := l.unbroken(ctx, s)
	if err != nil {
		return err
	}
	stream, err := l.target.Dump(ctx, id, &from)
	if err != nil {
		return err
	}
	defer func() { stream.Close() }()
	v := newEvents(l.opened, s)
	for {
		st, err := v.next(stream)
		if err != nil {
			return cmp.Or(context.Cause(ctx), l.kicked(err))
		}
		if seen.lacks(&st) {
			stream.Close()
			next, w, err := l.search(ctx, s, id, seen.open, &st)
			if err != nil {
				return cmp.Or(context.Cause(ctx), l.kicked(err))
			}
			stream, v = next, w
		}
		steps, err := whole.take(st, stream.At(), l.where)
		if err != nil {
			return err
		}
		for i := range steps {
			if locate != nil {
				if err := locate.locate(ctx, &steps[i]); err != nil {
					return err
				}
			}
			if err := l.queue.Push(ctx, item{steps[i], session}, steps[i].size); err != nil {
				return err
			}
		}
	}
}

// unbroken begins what lets only whole transactions of a stream through, which is to begin now.
func (l *link) unbroken(ctx context.Context, s *enumeratorState) (*unbroken, error) {
	if s.Start.Family != position.MariaDBGTID {
		return &unbroken{}, nil
	}
	session, err := l.target.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer session.Close()
	facts, err := session.Facts(ctx)
	if err != nil {
		return nil, err
	}
	newest, err := session.Status(ctx, facts)
	return &unbroken{newest: newest}, err
}

// observe looks at the head of the log, for people, finds the end a drain asks for, and sees to it that the server keeps what the
// job would need to begin again. What it cannot find out it tries again.
func (l *link) observe(ctx context.Context, source *enumeratorState) {
	s := sql{target: l.target}
	defer s.close()
	var judged time.Time
	for {
		looked := time.Now()
		history := looked.Sub(judged) >= historyInterval
		err := l.look(ctx, &s, source, history)
		switch code := fault.CodeOf(err); {
		case code == fault.MYPurged || code == fault.MYOtherHistory:
			l.lost <- err
			return
		case err == nil && history:
			judged = looked
		case err != nil && ctx.Err() == nil:
			l.cfg.Logger.WarnContext(ctx, "source head not observed", telemetry.Err(err))
			s.close()
		}
		if !l.rest(ctx, looked) {
			return
		}
	}
}

// rest waits until the next look is due; false when ctx has ended.
func (l *link) rest(ctx context.Context, looked time.Time) bool {
	pause := observeInterval // since the last look
	for {
		select {
		case <-ctx.Done():
			return false
		case <-l.end.ask:
			return true
		case <-time.After(pause - time.Since(looked)):
			return true
		case <-l.looks.Wanted():
			pause = wantedObserve
		}
	}
}

func (l *link) look(ctx context.Context, s *sql, source *enumeratorState, history bool) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	session, err := s.open(ctx)
	if err != nil {
		return err
	}
	look := setup{opened: l.opened, session: session}
	if look.facts, err = session.Facts(ctx); err != nil {
		return err
	}
	if look.facts.Family != source.Start.Family {
		return l.foreign("the server names transactions otherwise than before")
	}
	if history {
		if err := l.lookBack(ctx, session, look.facts, source); err != nil {
			return err
		}
		l.retention(ctx, session)
	}
	missing := l.end.missing() // before the head is read: an end that lies before the question would leave rows out
	asked, after := time.Now(), l.looks.Passed()
	head, err := look.head(ctx)
	if err != nil {
		return err
	}
	l.progress.observe(asked, after, &head)
	if missing {
		l.end.fix(&head)
	}
	return nil
}

// lookBack looks whether the server still has what the job would begin again from, and what rows of the copy were read behind: a log
// that has lost that would never pass it, and the copy would catch up without end.
func (l *link) lookBack(ctx context.Context, session *server.Session, now *server.Facts, source *enumeratorState) error {
	copied, before := l.expected(), l.kept() // before the history: what is logged meanwhile is not in it
	h, err := session.History(ctx, now)
	if err != nil {
		return err
	}
	at := l.kept() // behind the history: what is committed meanwhile may be purged
	err = l.judge(now, h, source.UUID, &at)
	if fault.CodeOf(err) == fault.MYOtherHistory && fault.CodeOf(l.judge(now, h, source.UUID, &before)) != fault.MYOtherHistory {
		err = nil // it was logged, read and committed behind the history
	}
	if err != nil || copied.Family == "" {
		return err
	}
	if verdict, why := h.Judge(&copied); verdict == core.Foreign {
		return l.foreign("rows of the copy are behind what the server no longer knows of: " + why)
	}
	return nil
}

// retention looks how much of the log the server keeps behind the reader and for how long, for people. A server that does not say
// leaves it unknown.
func (l *link) retention(ctx context.Context, session *server.Session) {
	at := l.progress.place()
	if at.IsZero() {
		return // no transaction was read yet
	}
	bytes, ok, err := session.Kept(ctx, at)
	if err == nil && ok {
		var age time.Duration
		if age, err = session.Expiry(ctx); err == nil {
			l.progress.keep(time.Now(), bytes, age)
			return
		}
	}
	if err != nil && ctx.Err() == nil {
		l.cfg.Logger.DebugContext(ctx, "log that is kept not observed", telemetry.Err(err))
	}
}

func (l *link) close() {
	l.cancel()
	l.done.Wait()
}

// drainEnd is the end of the log fixed by a drain. It is found by SQL, so not in the loop that asks for it.
type drainEnd struct {
	news chan struct{} // holds a token when the end was asked for or has become known
	ask  chan struct{} // holds a token for the observer

	mu     sync.Mutex
	wanted bool
	at     *core.Point
}

func newDrainEnd() *drainEnd {
	return &drainEnd{news: make(chan struct{}, 1), ask: make(chan struct{}, 1)}
}

// want asks for the end; the observer finds it at its next look.
func (d *drainEnd) want() {
	d.mu.Lock()
	d.wanted = true
	d.mu.Unlock()
	halves.Token(d.ask)
	halves.Token(d.news)
}

// missing reports whether the end is wanted and not known yet.
func (d *drainEnd) missing() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.wanted && d.at == nil
}

// fix takes where the log was after the end was found missing.
func (d *drainEnd) fix(at *core.Point) {
	d.mu.Lock()
	d.at = at
	d.mu.Unlock()
	halves.Token(d.news)
}

// reached reports whether everything up to the end lies before a point.
func (d *drainEnd) reached(p *core.Point) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.at != nil && p.Has(d.at)
}
