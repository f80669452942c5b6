package cdcpostgres

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"time"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/position"
	"weir.dev/weir/pkg/report"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/pkg/telemetry"
	"weir.dev/weir/services/cdc-postgres/internal/core"
	"weir.dev/weir/services/cdc-postgres/internal/pgoutput"
	"weir.dev/weir/services/cdc-postgres/internal/pgrepl"
)

// linger is how long a row waits for others to share its batch.
const linger = 5 * time.Millisecond

// reader is the log split: it turns the log into batches, in the loop that calls it. Everything that talks to the
// server is in its link.
type reader struct {
	where    string
	before   bool
	batch    int64 // target size of a batch, in bytes
	look     int   // bytes on the wire after which the size of a builder is asked
	cutLimit int   // changes after which a transaction may be cut; 0 never
	log      *slog.Logger
	link     *link
	progress *progress

	restored *readerState // until the log is assigned
	tracker  *core.Tracker
	schemas  map[rows.TableID]schemaVersion
	tables   map[uint32]*table // by OID, as described on this connection
	retired  []*table          // bound before their table was described anew; their rows go first
	pending  []*table          // tables with rows in their builders
	seq      uint64
	input    bool
	idle     bool // another reader has the log
	stopped  bool // the end of a drain is passed

	present   pgrepl.Chunk
	data      []byte // the rest of the present chunk
	described []*described
	row       pgoutput.Change
	masked    []pgoutput.Cell
}

func newReader(cfg source.Config, where string, before bool, restored *readerState, l *link, p *progress) *reader {
	return &reader{
		where: where, before: before, batch: cfg.Batch, look: int(max(cfg.Batch/8, 1024)), cutLimit: cfg.MaxTransactionRows,
		log: cfg.Logger, link: l, progress: p, restored: restored, idle: cfg.Subtask.Index != logReader,
		schemas: make(map[rows.TableID]schemaVersion), tables: make(map[uint32]*table),
	}
}

// Receive takes the assignment of the log. The connection is opened elsewhere; Poll sees what it yields.
func (r *reader) Receive(payload []byte) error {
	a, err := decodeState(payload, r.where, func(a *assignment) int { return a.Version })
	if err != nil {
		return err
	}
	if r.tracker != nil {
		return fmt.Errorf("receive assignment: the log is already being read: %w", fault.Bug)
	}
	if r.restored != nil { // the same as in the assignment, unless the readers were counted anew
		a.Log = r.restored
	}
	if a.Log != nil {
		maps.Copy(r.schemas, a.Log.Schemas)
	}
	from := a.position()
	r.tracker = core.NewTracker(from)
	r.progress.start(from)
	r.link.assign(a)
	return nil
}

// Poll emits what has arrived. It returns at a safe point: between transactions, or inside one that has grown past the
// limit; never with rows left in a builder.
func (r *reader) Poll(ctx context.Context, out source.Output, wake <-chan struct{}) (source.Status, error) {
	for {
		if err := r.chunk(ctx, out, wake); err != nil {
			return source.Status{}, err
		}
		if len(r.data) > 0 || (r.safe() && woken(wake)) {
			return r.rest(ctx, out)
		}
		more, err := r.next()
		if err != nil {
			return source.Status{}, err
		}
		if more {
			if err := r.flushOld(ctx, out); err != nil {
				return source.Status{}, err
			}
			continue
		}
		if r.tracker != nil && len(r.pending) == 0 && r.safe() && r.progress.moved(r.tracker.Position()) {
			return r.rest(ctx, out)
		}
		done, err := r.wait(ctx, out, wake)
		if err != nil {
			return source.Status{}, err
		}
		if done {
			return r.rest(ctx, out)
		}
	}
}

// safe reports whether a barrier may pass here.
func (r *reader) safe() bool { return r.tracker == nil || r.tracker.Cut(r.cutLimit) }

// woken asks without waiting whether the caller wants Poll to return. It takes nothing out of a buffered channel.
func woken(wake <-chan struct{}) bool {
	if cap(wake) > 0 {
		return len(wake) > 0
	}
	select {
	case <-wake:
		return true
	default:
		return false
	}
}

// rest ends a Poll: rows in builders leave, so that the position covers exactly what was emitted.
func (r *reader) rest(ctx context.Context, out source.Output) (source.Status, error) {
	if err := r.flushAll(ctx, out); err != nil {
		return source.Status{}, err
	}
	s := source.Status{Input: r.input, Drained: r.idle && r.link.end.asked()}
	if r.tracker != nil {
		at := r.tracker.Position()
		r.progress.consume(at)
		s.Drained = r.link.drained(at)
	}
	return s, nil
}

// next takes the next item from the link.
func (r *reader) next() (bool, error) {
	it, ok, err := r.link.queue.pop()
	if err != nil || !ok {
		return false, err
	}
	r.present.Release() // rows were copied into builders
	r.present, r.data, r.described = it.chunk, it.chunk.Data, it.tables
	if it.asText {
		r.log.Info("log read again in text form", slog.String("position", r.tracker.Position().Public().String()))
		r.tracker.Rewind()
		r.link.restart(r.tracker.Position())
	}
	return true, nil
}

// wait blocks until there is something to do. done says that Poll is to return.
func (r *reader) wait(ctx context.Context, out source.Output, wake <-chan struct{}) (done bool, err error) {
	if !r.safe() {
		wake = nil
	}
	var late <-chan time.Time
	if len(r.pending) > 0 {
		timer := time.NewTimer(time.Until(r.pending[0].since.Add(linger)))
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-r.link.queue.ready:
		return false, nil
	case <-late:
		return false, r.flushOld(ctx, out)
	case <-r.link.end.news: // a drain has found its end, which may be here
		return r.safe(), nil
	case <-wake:
		return true, nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}

// chunk applies messages until the chunk is used up, or until the caller wants a safe point and here is one.
func (r *reader) chunk(ctx context.Context, out source.Output, wake <-chan struct{}) error {
	for len(r.data) > 0 {
		if r.stopped {
			r.data = nil
			return nil
		}
		n := int(binary.BigEndian.Uint32(r.data[1:])) + 1 // the link cuts at whole messages
		body := r.data[5:n]
		r.data = r.data[n:]
		switch {
		case len(body) >= 25 && body[0] == 'w': // XLogData: start, end and time, then a message
			if err := r.message(ctx, out, body[25:]); err != nil {
				return err
			}
			if body[25] == pgoutput.KindCommit && woken(wake) {
				return nil
			}
		case len(body) == 18 && body[0] == 'k': // keepalive: end, time, whether an answer is wanted
			at := position.LSN(binary.BigEndian.Uint64(body[1:]))
			if err := r.undecodable(r.tracker.Keepalive(at)); err != nil {
				return err
			}
		default:
			return r.undecodable(errors.New("unknown message of the replication protocol"))
		}
		if len(r.data) == 0 {
			r.link.received(r.tracker.Position().End)
		}
	}
	return nil
}

// flushOld ends the batches that have waited long enough.
func (r *reader) flushOld(ctx context.Context, out source.Output) error {
	now := time.Now()
	for len(r.pending) > 0 && now.Sub(r.pending[0].since) >= linger {
		if err := r.flush(ctx, out, r.pending[0]); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) flushAll(ctx context.Context, out source.Output) error {
	for len(r.pending) > 0 {
		if err := r.flush(ctx, out, r.pending[0]); err != nil {
			return err
		}
	}
	return nil
}

// flush emits the rows of one table.
func (r *reader) flush(ctx context.Context, out source.Output, t *table) error {
	for i := range r.pending {
		if r.pending[i] == t {
			r.pending = append(r.pending[:i], r.pending[i+1:]...)
			break
		}
	}
	t.since, t.unseen = time.Time{}, 0
	n := t.builder.Rows()
	if n == 0 {
		return nil
	}
	b, err := t.builder.Flush()
	if err != nil {
		return r.undecodable(err)
	}
	at := r.tracker.Position()
	if err := out.Emit(ctx, *b, at.Public()); err != nil {
		return fmt.Errorf("emit rows of %s: %w", t.id(), err)
	}
	r.input = true
	r.progress.emitted(ctx, t.counter, n, b.Ts(n-1))
	return nil
}

// Snapshot returns the position between everything emitted and everything to come.
func (r *reader) Snapshot(e epoch.ID) (source.Cut, error) {
	s := r.restored
	if r.tracker != nil {
		s = &readerState{Version: stateVersion, Position: r.tracker.Position(), Schemas: r.schemas}
	}
	r.input = false
	if s == nil { // the log was not handed out yet: the enumerator's state says where it begins
		return source.Cut{}, nil
	}
	if len(r.pending) > 0 {
		return source.Cut{}, fmt.Errorf("snapshot epoch %s: rows in builders: %w", e, fault.Bug)
	}
	state, err := json.Marshal(s)
	if err != nil {
		return source.Cut{}, fmt.Errorf("snapshot epoch %s: %w", e, err)
	}
	return source.Cut{State: state, Position: s.Position.Public(), Torn: s.Position.IsTorn()}, nil
}

// Confirm lets the server forget what lies before a committed epoch.
func (r *reader) Confirm(_ epoch.ID, cut source.Cut) {
	if cut.Position.IsZero() {
		return
	}
	p, err := core.ParsePosition(cut.Position)
	if err != nil {
		// Not confirming is always safe; the server keeps more than it needs to.
		r.log.Error("confirmed position is not readable", telemetry.Err(err))
		return
	}
	r.link.committed(p)
}

// Drain fixes the end at what the server has written now; the link finds out where that is.
func (r *reader) Drain(context.Context) error {
	r.link.drain()
	return nil
}

// Report returns the latest progress.
func (r *reader) Report() report.Reader { return r.progress.report() }

// Close ends the connections.
func (r *reader) Close() error { return r.link.close() }
