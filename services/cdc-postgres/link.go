package cdcpostgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"weir.dev/weir/pkg/cdc/halves"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/position"
	"weir.dev/weir/services/cdc-postgres/internal/core"
	"weir.dev/weir/services/cdc-postgres/internal/pgrepl"
)

const (
	// queueBytes bounds what has been received and not yet emitted.
	queueBytes = 16 << 20
	// statusInterval is well below the server's time-out of 5 s, also when a status message is late once. calmInterval still
	// is; it is for logs without rows, where only every calmAsks-th message asks for an answer.
	statusInterval = 1500 * time.Millisecond
	calmInterval   = 2 * time.Second
	calmAsks       = 3
	// drainInterval is used while the end of the log is waited for: every status message asks the server how far it is.
	drainInterval = 100 * time.Millisecond
)

// errAsText ends a session that reads binary when a table appears whose columns have no binary form we know.
var errAsText = errors.New("the log must be read in text form")

// request asks the link for a session.
type request struct {
	number int
	from   core.Position
	text   bool     // ask for the text form of every value
	catch  bool     // the log catches up with the copy
	locate *locator // nil when no key has to be located
}

// link is a reader's side towards the server. One goroutine receives, one sends status messages on a timer of its own,
// one observes the head of the log; none of them waits for rows to be emitted but the receiver, on a bounded queue.
type link struct {
	target   *pgrepl.Target
	log      *slog.Logger
	queue    *halves.Queue[item]
	progress *progress
	requests chan struct{} // holds a token when there is a request
	kick     chan struct{} // wakes the status goroutine
	glance   chan struct{} // wakes the observer
	looks    *halves.Looks
	calm     atomic.Bool // no rows have come between the last two status messages
	end      *drainEnd
	remade   remade
	cancel   context.CancelFunc
	done     sync.WaitGroup

	source *enumeratorState // set before the first request, then only read

	mu       sync.Mutex
	feedback core.Feedback
	request  *request           // to be served next
	replace  context.CancelFunc // ends the present session
}

// startLink begins to serve requests; it stops at close.
func startLink(ctx context.Context, target *pgrepl.Target, log *slog.Logger, p *progress) *link {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	l := &link{
		target: target, log: log, queue: halves.NewQueue[item](queueBytes), progress: p,
		requests: make(chan struct{}, 1), replace: func() {}, kick: make(chan struct{}, 1), glance: make(chan struct{}, 1),
		looks: halves.NewLooks(), end: newDrainEnd(), cancel: cancel,
	}
	l.done.Go(func() { l.serve(ctx) })
	return l
}

// open begins to read the log of a source from a position, in place of what is being read. What arrives carries the request's number.
func (l *link) open(s *enumeratorState, req request) {
	l.mu.Lock()
	if l.source == nil {
		l.source = s
	}
	l.request = &req
	l.replace()
	l.mu.Unlock()
	halves.Token(l.requests)
}

// take returns what is to be read, and a context for its session.
func (l *link) take(ctx context.Context) (*request, context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	req := l.request
	l.request, l.replace = nil, cancel
	return req, ctx
}

func (l *link) drain() {
	l.end.want()
	halves.Token(l.kick)
}

// passed says that an epoch passes: somebody may wait for what the server says about its end, which is asked rarely while no
// rows come.
func (l *link) passed() {
	if l.calm.Load() {
		halves.Token(l.kick)
	}
	halves.Token(l.glance)
}

// drained reports whether everything before the end of a drain lies before at.
func (l *link) drained(at core.Position) bool { return l.end.reached(at) }

// serve runs one session after the other. Any end but that for the text form is the end of the reader: it goes on with
// the next attempt, from the last durable epoch.
func (l *link) serve(ctx context.Context) {
	observing := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.requests:
		}
		req, session := l.take(ctx)
		if req == nil {
			continue
		}
		if !observing {
			observing = true
			l.done.Go(func() { l.observe(ctx) })
		}
		err := l.session(session, *req)
		if session.Err() != nil && ctx.Err() == nil {
			continue // replaced by another
		}
		if errors.Is(err, errAsText) {
			err = l.queue.Push(ctx, item{session: req.number, asText: true}, 0)
		}
		if err != nil {
			l.queue.Fail(err)
			return
		}
	}
}

// session reads the log over one connection until that ends.
func (l *link) session(ctx context.Context, req request) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	conn, err := l.target.SQL(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	a := l.source
	if err := l.begin(ctx, conn, a, req); err != nil {
		return err
	}
	book, err := openBook(ctx, conn, l.target, a.Tables, req.catch)
	if err != nil {
		return err
	}
	book.binary = !req.text && book.allBinary()
	if req.catch {
		// The catch-up ends at a position behind the copy's marks; on an idle server nothing else would get there.
		if _, err := l.target.Heartbeat(ctx, conn); err != nil {
			return err
		}
	}
	stream, err := l.target.StartFree(ctx, conn, pgrepl.StartOptions{
		Slot: a.Slot, Publication: a.Publication, From: req.from.End, Binary: book.binary,
		AtWork: func(pid uint32) bool {
			working := l.target.AtWork(ctx, conn, pid)
			l.log.WarnContext(ctx, "the server has sent nothing for a while", slog.Bool("at_work", working))
			return working
		},
	})
	if err != nil {
		return err
	}
	if got := stream.System(); got.Identifier != a.System.Identifier {
		_ = stream.Close()
		return systemChanged(l.target.Where(), a.System, got)
	}
	l.log.InfoContext(ctx, "log opened", slog.String("slot", a.Slot), slog.String("from", req.from.End.String()), slog.Bool("binary", book.binary))
	var tasks sync.WaitGroup
	defer tasks.Wait()
	defer cancel()
	var statusErr error
	tasks.Go(func() {
		// Once the session has ended for a reason of its own, a status that finds it closed is not the reason.
		if err := l.status(ctx, stream); err != nil && ctx.Err() == nil {
			statusErr = err
			_ = stream.Close()
			cancel() // receive may be waiting for the catalog, over a connection that is as dead
		}
	})
	tasks.Go(func() {
		<-ctx.Done()
		_ = stream.Close() // ends a Receive
	})
	err = l.receive(ctx, conn, stream, book, req)
	cancel()
	tasks.Wait()
	if statusErr != nil {
		return statusErr
	}
	return err
}

// begin checks that the slot still holds everything from the position on, and starts what may be confirmed from what
// the slot has confirmed itself.
func (l *link) begin(ctx context.Context, conn *pgx.Conn, a *enumeratorState, req request) error {
	slot, err := checkSlot(ctx, conn, l.target, a.Slot, req.from)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.feedback.Flushed() == 0 {
		l.feedback = core.NewFeedback(slot.Confirmed)
	}
	return nil
}

// receive moves the log into the queue.
func (l *link) receive(ctx context.Context, conn *pgx.Conn, stream *pgrepl.Stream, book *book, req request) error {
	for {
		chunk, err := stream.Receive()
		if err != nil {
			return err
		}
		l.progress.metrics.arrived(ctx, len(chunk.Data))
		it := item{session: req.number, chunk: chunk}
		for _, r := range chunk.Relations {
			book.reach(chunk, r.At)
			d, err := book.describe(ctx, conn, chunk.Message(r.At), r.Xid)
			if errors.Is(err, errAsText) {
				return err
			}
			if err != nil {
				return l.target.Fault(err)
			}
			it.tables = append(it.tables, d)
		}
		book.reach(chunk, len(chunk.Data))
		if req.locate != nil {
			if it.located, err = req.locate.chunk(ctx, conn, chunk, it.tables); err != nil {
				return l.target.Fault(err)
			}
		}
		if err := l.queue.Push(ctx, it, it.size()); err != nil {
			return l.target.Fault(err)
		}
	}
}

// status tells the server how far we are, on a timer that nothing delays.
func (l *link) status(ctx context.Context, stream *pgrepl.Stream) error {
	rows, calm := uint64(0), 0
	for {
		l.mu.Lock()
		written, flushed := l.feedback.Written(), l.feedback.Flushed()
		l.mu.Unlock()
		now, n := time.Now(), l.progress.count()
		interval, ask := statusInterval, true
		switch {
		case l.end.asked():
			interval = drainInterval
		case n == rows: // no rows since the last message
			interval, ask = untilTick(now, calmInterval), calm%calmAsks == 0
			calm++
		default:
			calm = 0
		}
		l.calm.Store(n == rows)
		rows = n
		if err := stream.Status(written, flushed, ask, now); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-l.kick:
			calm = 0
		case <-time.After(interval):
		}
	}
}

// untilTick is the time until the next whole multiple of d: what the jobs of a process do rarely they do at the same moments, which
// wakes the process once.
func untilTick(now time.Time, d time.Duration) time.Duration { return now.Truncate(d).Add(d).Sub(now) }

// received notes that the log up to at has arrived.
func (l *link) received(at position.LSN) {
	l.mu.Lock()
	l.feedback.Received(at)
	l.mu.Unlock()
}

// committed lets the server forget what lies before the position of a committed epoch.
func (l *link) committed(p core.Position) {
	l.mu.Lock()
	known := l.feedback.Flushed() != 0 // else the slot has not been seen yet
	moved := known && l.feedback.Committed(p)
	l.mu.Unlock()
	if moved {
		halves.Token(l.kick)
	}
}

// close ends the connections and waits for the goroutines.
func (l *link) close() error {
	l.cancel()
	l.done.Wait()
	return nil
}

func systemChanged(where string, want, got pgrepl.System) error {
	return fault.New(fault.PGSystemChanged, where,
		fmt.Sprintf("the system identifier is %s, the positions belong to %s", got.Identifier, want.Identifier), "where", where)
}

// checkSlot reports why a slot cannot be read from a position.
func checkSlot(ctx context.Context, conn *pgx.Conn, target *pgrepl.Target, name string, from core.Position) (pgrepl.Slot, error) {
	slot, ok, err := target.Slot(ctx, conn, name)
	if err != nil {
		return slot, err
	}
	if !ok {
		return slot, fault.New(fault.PGSlotMissing, target.Where(), fmt.Sprintf("there is no slot %q; the log is needed from %s on", name, from.End), "slot", name, "job", target.Job())
	}
	if err := target.CheckUsable(slot); err != nil {
		return slot, err
	}
	if slot.Confirmed > from.End {
		return slot, fault.New(fault.PGBehind, target.Where(), fmt.Sprintf(
			"slot %q has confirmed %s, the position is %s: %d bytes of log are missing", name, slot.Confirmed, from.End, slot.Confirmed-from.End), "slot", name, "job", target.Job())
	}
	// The server would wait without a word until its log has grown up to the position, and skip what comes before.
	end, err := target.End(ctx, conn)
	if err == nil && end < from.End {
		err = fault.New(fault.PGAhead, target.Where(), fmt.Sprintf("the log ends at %s, the position is %s", end, from.End), "job", target.Job())
	}
	return slot, err
}
