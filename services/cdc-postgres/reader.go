package cdcpostgres

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"weir.dev/weir/pkg/cdc"
	"weir.dev/weir/pkg/cdc/halves"
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

// reader copies chunks and, being the reader of the log, turns the log into batches, in the loop that calls it. Everything
// that talks to the server is in its copier and its link.
type reader struct {
	*opened
	rowLimit int // bytes of a change
	cutLimit int // changes after which a transaction may be cut; 0 never
	link     *link
	progress *progress
	batches  *halves.Batches

	source *enumeratorState // nil until the enumerator has said what is read
	share  *cdc.Share
	copier *copier
	ready  *copied // a chunk to be emitted
	spools *halves.Spooling
	over   bool // no chunk will follow

	tracker  *core.Tracker                     // nil until the log was handed over
	filter   *cdc.Filter[uint32, position.LSN] // nil when every change of the log counts
	locator  *locator                          // for the link; nil when no key has to be located
	only     bool                              // the log ends with the catch-up
	standing bool                              // the log waits until it is asked to pause
	paused   bool                              // the log stands still while tables are copied anew
	reopen   bool                              // the log is to be read in another form, from a place between two transactions
	schemas  map[rows.TableID]schemaVersion
	plans    map[cdc.TableID]*table // how tables that are to be emptied are read
	tables   map[uint32]*table      // by OID, as described on this connection
	retired  []*table               // bound before their table was described anew; their rows go first
	seq      uint64
	input    bool         // since the last cut
	cut      position.LSN // of the last cut: from there on the server keeps its log
	told     bool         // that there is input: epochs come for it, also amid a transaction that has no end yet
	stopped  bool         // the end of a drain is passed

	session   int // of the link; items of earlier ones are not looked at
	present   pgrepl.Chunk
	data      []byte // the rest of the present chunk
	described []*described
	located   []located
	place     located // of the message being applied
	row       pgoutput.Change
	masked    []pgoutput.Cell
	key       keyBuffer
}

// longestUncut is how much log of others an epoch without rows may wait for, which the server has to keep until then: two segments.
const longestUncut = 32 << 20

// ahead is how many chunks are at a reader: one being emitted or waiting to be, one being read.
const ahead = 2

func newReader(cfg source.Config, o *opened, l *link, p *progress) *reader {
	r := &reader{
		opened: o, cutLimit: cfg.MaxTransactionRows, rowLimit: rowLimit,
		link: l, progress: p, share: cdc.NewShare(ahead),
		plans: make(map[cdc.TableID]*table), schemas: make(map[rows.TableID]schemaVersion), tables: make(map[uint32]*table),
	}
	r.spools = halves.NewSpooling(cfg.Store, r.share)
	r.batches = halves.NewBatches(cfg.Batch, r.at)
	r.batches.Broken = r.undecodable
	r.batches.Emitted = func(ctx context.Context, b *rows.Batch) {
		r.input = true
		r.progress.emitted(ctx, b.Schema().Table(), b.NumRows(), b.Ts(b.NumRows()-1))
	}
	return r
}

// at is the position behind what was emitted; none for the rows of chunks.
func (r *reader) at() position.Position {
	if r.tracker == nil {
		return position.Position{}
	}
	return r.tracker.Position().Public()
}

// Receive takes what the enumerator says: what is read, chunks, the log. Connections are opened elsewhere; Poll sees what
// they yield.
func (r *reader) Receive(payload []byte) error {
	if len(payload) == 0 {
		return fmt.Errorf("receive from the enumerator: an empty message: %w", fault.Bug)
	}
	switch kind := payload[0]; {
	case kind == halves.TellSource && r.source == nil:
		s, err := decodeEnumeratorState(payload[1:], r.where)
		if err != nil {
			return err
		}
		s.cover(r.veil)
		r.source, r.standing = s, s.Standing
		r.copier = startCopier(r.opened, s.Tables)
		return nil
	case kind == halves.TellCopy && r.source != nil:
		if err := r.share.Receive(payload[1:]); err != nil {
			return fault.Wrap(err, fault.SrcPosition, r.where, err.Error())
		}
		if split, ok := r.share.Follow(); ok {
			return r.follow(split)
		}
		return nil
	case kind == halves.TellOver:
		r.over = true
		return nil
	}
	return fmt.Errorf("receive from the enumerator: message %q out of place: %w", payload[0], fault.Bug)
}

// Poll emits what has arrived. It returns at a safe point: between chunks, between transactions, or inside one that has
// grown past the limit; never with rows left in a builder.
func (r *reader) Poll(ctx context.Context, out source.Output, wake <-chan struct{}) (source.Status, error) {
	if err := r.tell(ctx, out); err != nil { // what Receive has to say must not wait for something to arrive
		return source.Status{}, err
	}
	if err := r.heed(ctx, out); err != nil {
		return source.Status{}, err
	}
	for {
		if done, err := r.copy(ctx, out); err != nil || done {
			return r.ended(ctx, out, err)
		}
		if r.tracker != nil && !r.paused && !r.standing {
			done, err := r.advance(ctx, out, wake)
			if err != nil || done {
				return r.ended(ctx, out, err)
			}
			if len(r.data) > 0 {
				continue
			}
		}
		done, err := r.wait(ctx, out, wake)
		if err != nil || done {
			return r.ended(ctx, out, err)
		}
	}
}

// advance applies what has arrived of the log. done says that Poll is to return; otherwise more is at hand when data is
// left, and nothing is when none is.
func (r *reader) advance(ctx context.Context, out source.Output, wake <-chan struct{}) (done bool, err error) {
	if err := r.chunk(ctx, out, wake); err != nil {
		return false, err
	}
	if r.reopen {
		r.reopen = false
		r.again(false)
	}
	if r.paused || len(r.data) > 0 || (r.safe() && (woken(wake) || r.input && !r.told)) {
		return true, nil
	}
	if err := r.link.remade.passed(r.tracker.Position(), r.where); err != nil {
		return false, err
	}
	more, err := r.next()
	if err != nil {
		return false, err
	}
	if more {
		return false, r.batches.FlushOld(ctx, out)
	}
	return !r.batches.Pending() && r.safe() && r.progress.moved(r.tracker.Position()), nil
}

// safe reports whether a barrier may pass here.
func (r *reader) safe() bool { return r.tracker == nil || r.paused || r.tracker.Cut(r.cutLimit) }

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

// ended ends a Poll: rows in builders leave, so that the position covers exactly what was emitted, and the enumerator hears
// of it.
func (r *reader) ended(ctx context.Context, out source.Output, err error) (source.Status, error) {
	if err != nil {
		return source.Status{}, err
	}
	if err := r.batches.FlushAll(ctx, out); err != nil {
		return source.Status{}, err
	}
	if err := r.tell(ctx, out); err != nil {
		return source.Status{}, err
	}
	s := source.Status{Drained: r.over && !r.share.Following()}
	if r.tracker != nil {
		at := r.tracker.Position()
		r.progress.consume(at)
		r.input = r.input || r.cut != 0 && at.End > r.cut+longestUncut
		s.Drained = r.link.drained(at) || (r.only && r.filter == nil)
	}
	r.told, s.Input = r.input, r.input
	return s, nil
}

func (r *reader) tell(ctx context.Context, out source.Output) error {
	for _, m := range r.share.Outbox() {
		if err := out.Tell(ctx, m); err != nil {
			return fmt.Errorf("tell the enumerator: %w", err)
		}
	}
	return nil
}

// next takes the next item from the link.
func (r *reader) next() (bool, error) {
	for {
		it, ok, err := r.link.queue.Pop()
		if err != nil || !ok {
			return false, err
		}
		if it.session != r.session {
			it.chunk.Release()
			continue
		}
		r.present.Release() // rows were copied into builders
		r.present, r.data, r.described, r.located = it.chunk, it.chunk.Data, it.tables, it.located
		if it.asText {
			r.cfg.Logger.Info("log read again in text form", slog.String("position", r.tracker.Position().Public().String()))
			r.again(true)
		}
		return true, nil
	}
}

// again reads the log anew from where the reader is.
func (r *reader) again(text bool) {
	r.present.Release()
	r.present, r.data, r.described, r.located = pgrepl.Chunk{}, nil, nil, nil
	r.tracker.Rewind()
	r.session++
	r.link.open(r.source, request{number: r.session, from: r.tracker.Position(), text: text, catch: r.filter != nil, locate: r.locator})
}

// wait blocks until there is something to do. done says that Poll is to return.
func (r *reader) wait(ctx context.Context, out source.Output, wake <-chan struct{}) (done bool, err error) {
	if !r.safe() {
		wake = nil
	}
	arrived := r.link.queue.Ready
	if r.paused || r.standing || r.tracker == nil {
		arrived = nil
	}
	var chunk <-chan *copied
	if r.copier != nil {
		chunk = r.copier.done
	}
	var late <-chan time.Time
	if timer := r.batches.Late(); timer != nil {
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-arrived:
		return false, nil
	case r.ready = <-chunk:
		return false, nil
	case <-late:
		return false, r.batches.FlushOld(ctx, out)
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
		if r.paused || r.reopen {
			return nil
		}
		if len(r.located) > 0 {
			r.find(len(r.present.Data) - len(r.data))
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
			r.passed()
			if body[17] != 0 { // nothing but the end of the server makes it ask, as often as it is told
				r.link.passed()
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

// Snapshot returns the reader's part of the copy and, of the reader of the log, the position between everything emitted
// and everything to come.
func (r *reader) Snapshot(e epoch.ID) (source.Cut, error) {
	r.input = false
	r.progress.beats.Cut(time.Now(), e)
	r.link.looks.Pass(e)
	r.link.passed()
	if r.batches.Pending() {
		return source.Cut{}, fmt.Errorf("snapshot epoch %s: rows in builders: %w", e, fault.Bug)
	}
	objects := r.spools.Cut()
	if r.tracker == nil { // the log was not handed over yet: the enumerator's state says where it begins
		return source.Cut{State: r.share.State(nil), Objects: objects}, nil
	}
	at := r.tracker.Position()
	r.cut = at.End
	log, err := json.Marshal(readerState{Version: stateVersion, Position: at, Schemas: r.schemas})
	if err != nil {
		return source.Cut{}, fmt.Errorf("snapshot epoch %s: %w", e, err)
	}
	return source.Cut{State: r.share.State(log), Position: at.Public(), Torn: at.IsTorn(), Objects: objects}, nil
}

// Look has the link look at the head of the log at once.
func (r *reader) Look() { r.link.looks.Want() }

// Confirm lets the server forget what lies before a committed epoch.
func (r *reader) Confirm(e epoch.ID, cut source.Cut) {
	r.progress.beats.Confirm(time.Now(), e)
	if cut.Position.IsZero() {
		return
	}
	p, err := core.ParsePosition(cut.Position)
	if err != nil {
		// Not confirming is always safe; the server keeps more than it needs to.
		r.cfg.Logger.Error("confirmed position is not readable", telemetry.Err(err))
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
func (r *reader) Close() error {
	if r.copier != nil {
		r.copier.close()
	}
	return r.link.close()
}
