package cdcmysql

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"weir.dev/weir/pkg/cdc"
	"weir.dev/weir/pkg/cdc/halves"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/position"
	"weir.dev/weir/pkg/report"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/services/cdc-mysql/internal/core"
)

// ahead is how many chunks are at a reader: one being emitted or waiting to be, one being read, and one that is read next in the
// same snapshot.
const ahead = 3

// reader copies chunks and, being the reader of the log, turns the log into batches, in the loop that calls it. Everything
// that talks to the server is in its copier and its link.
type reader struct {
	*opened
	cutLimit int // rows after which a transaction may be cut; 0 never
	link     *link
	progress *progress
	batches  *halves.Batches

	source *enumeratorState // nil until the enumerator has said what is read
	share  *cdc.Share
	copier *copier
	ready  *copied // a chunk to be emitted
	spools *halves.Spooling
	over   bool // no chunk will follow

	tracker  *core.Tracker                      // nil until the log was handed over
	prepared *prepared                          // as the tracker
	filter   *cdc.Filter[core.Txn, *core.Point] // nil when every change of the log counts
	locator  *locator                           // for the link; nil when no key has to be located
	only     bool                               // the log ends with the catch-up
	standing bool                               // the log waits until it is asked to pause
	paused   bool                               // the log stands still while tables are copied anew
	schemas  map[rows.TableID]schemaVersion
	plans    map[cdc.TableID]*scanPlan // how tables that are to be emptied are read
	tables   map[cdc.TableID]*table    // as last described in the log
	seq      uint64
	input    bool // since the last cut
	told     bool // that there is input: epochs come for it, also amid a transaction that has no end yet
	stopped  bool // the end of a drain, or of the catch-up, is passed
	session  int  // of the link; items of earlier ones are not looked at
	key      cdc.Key
	cuts     map[epoch.ID]core.Point // where the log was at the epochs that are not committed
}

var _ source.Reader = (*reader)(nil)

func newReader(cfg source.Config, o *opened) *reader {
	r := &reader{
		opened: o, cutLimit: cfg.MaxTransactionRows, progress: newProgress(cfg.Subtask.Index != cdc.LogReader), share: cdc.NewShare(ahead),
		schemas: make(map[rows.TableID]schemaVersion), plans: make(map[cdc.TableID]*scanPlan), tables: make(map[cdc.TableID]*table), cuts: make(map[epoch.ID]core.Point),
	}
	r.spools = halves.NewSpooling(cfg.Store, r.share)
	r.link = startLink(o, r.progress)
	r.batches = halves.NewBatches(cfg.Batch, r.at)
	r.batches.Broken = r.undecodable
	r.batches.Emitted = func(_ context.Context, b *rows.Batch) {
		r.input = true
		r.progress.emitted(b.Schema().Table(), b.NumRows(), b.Ts(b.NumRows()-1))
	}
	return r
}

// at is the position behind what was emitted; none for the rows of chunks.
func (r *reader) at() position.Position {
	if r.tracker == nil {
		return position.Position{}
	}
	return r.tracker.Public()
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
		r.source, r.standing = s, s.Standing
		if r.cfg.Subtask.Index == cdc.LogReader {
			r.link.begin(s)
		}
		r.copier = startCopier(r.opened, s, r.progress)
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
		if r.following() {
			more, err := r.advance(ctx, out)
			if err == nil && more {
				err = r.batches.FlushOld(ctx, out)
			}
			if err != nil || (r.safe() && (woken(wake) || r.paused || r.stopped || r.input && !r.told)) {
				return r.ended(ctx, out, err)
			}
			if more {
				continue
			}
			// Nothing is at hand: what was read is told, once.
			if r.safe() && !r.batches.Pending() && !r.progress.knows(r.at()) {
				return r.ended(ctx, out, nil)
			}
		}
		done, err := r.wait(ctx, out, wake)
		if err != nil || done {
			return r.ended(ctx, out, err)
		}
	}
}

// following reports whether the log is to be read on.
func (r *reader) following() bool { return r.tracker != nil && !r.paused && !r.standing && !r.stopped }

// advance applies the next step of the log; more is false when none has come.
func (r *reader) advance(ctx context.Context, out source.Output) (more bool, err error) {
	for {
		it, ok, err := r.link.queue.Pop()
		if err != nil || !ok {
			return false, err
		}
		if it.session != r.session {
			continue
		}
		return true, r.apply(ctx, out, &it.step)
	}
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
	r.told = r.input
	s := source.Status{Input: r.input, Drained: r.over && !r.share.Following()}
	if r.tracker != nil {
		r.progress.consume(r.at(), r.tracker.Before())
		s.Drained = r.stopped || (r.only && r.filter == nil)
	}
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

// wait blocks until there is something to do. done says that Poll is to return.
func (r *reader) wait(ctx context.Context, out source.Output, wake <-chan struct{}) (done bool, err error) {
	if !r.safe() {
		wake = nil
	}
	var arrived <-chan struct{}
	if r.following() {
		arrived = r.link.queue.Ready
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
	case err := <-r.link.lost:
		return false, err
	case <-r.link.end.news: // a drain has found its end, which may be here
		r.drainReached()
		return r.safe(), nil
	case <-wake:
		return true, nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}

// drainReached stops at the end of a drain.
func (r *reader) drainReached() {
	if r.tracker != nil && !r.tracker.Open() && r.link.end.reached(r.tracker.Before()) {
		r.stopped = true // what follows is not emitted
	}
}

// Snapshot returns the reader's part of the copy and, of the reader of the log, the position between everything emitted
// and everything to come.
func (r *reader) Snapshot(e epoch.ID) (source.Cut, error) {
	r.input, r.told = false, false
	r.progress.beats.Cut(time.Now(), e)
	r.link.looks.Pass(e)
	if r.batches.Pending() {
		return source.Cut{}, fmt.Errorf("snapshot epoch %s: rows in builders: %w", e, fault.Bug)
	}
	objects := r.spools.Cut()
	if r.tracker == nil { // the log was not handed over yet: the enumerator's state says where it begins
		return source.Cut{State: r.share.State(nil), Objects: objects}, nil
	}
	at := r.tracker.Position()
	r.cuts[e] = oldest(r.prepared.list, at.Before)
	log, err := json.Marshal(readerState{Version: stateVersion, Position: at, Schemas: r.schemas, Pending: r.prepared.list})
	if err != nil {
		return source.Cut{}, fmt.Errorf("snapshot epoch %s: %w", e, err)
	}
	return source.Cut{State: r.share.State(log), Position: at.Public(), Torn: at.IsTorn(), Objects: objects}, nil
}

// Look has the link look at the head of the log at once.
func (r *reader) Look() { r.link.looks.Want() }

// Confirm notes what of the log is needed no more; the server keeps its log as long as it was told to, whoever reads it.
func (r *reader) Confirm(e epoch.ID, _ source.Cut) {
	r.progress.beats.Confirm(time.Now(), e)
	if at, ok := r.cuts[e]; ok {
		r.link.keep(at)
	}
	maps.DeleteFunc(r.cuts, func(n epoch.ID, _ core.Point) bool { return n <= e })
}

// Drain fixes the end at what the server has now; the link finds out where that is.
func (r *reader) Drain(context.Context) error {
	r.link.end.want()
	return nil
}

// Report returns the latest progress.
func (r *reader) Report() report.Reader {
	latest := r.progress.report()
	latest.Waits = r.target.Waits()
	return latest
}

// Close ends the connections.
func (r *reader) Close() error {
	if r.copier != nil {
		r.copier.close()
	}
	r.link.close()
	return nil
}
