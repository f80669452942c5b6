package cdcmysql

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"weir.dev/weir/pkg/position"
	"weir.dev/weir/services/cdc-mysql/internal/core"
	"weir.dev/weir/services/cdc-mysql/internal/server"
)

// follower reads the log beside a copy and knows, at every place between two transactions, which transactions lie before it.
// While a window is open it keeps the changes of captured tables.
//
// The server is asked for everything but what it had executed. What it had executed was logged before, so from the place where
// the log was when it said so on, what was asked not to be sent and what was sent together are what the log has. Where
// transactions have no names the log is read from that place on.
type follower struct {
	target *server.Target
	uuid   string // of the server
	stop   func()
	done   sync.WaitGroup

	mu    sync.Mutex
	moved chan struct{} // closed, and made anew, when something has changed
	point core.Point
	at    position.BinlogPos
	txn   core.Txn
	open  bool // a transaction is
	lost  bool // and some of its changes went by unkept
	part  []step
	keep  *capturedTable // of which changes are kept; nil for none
	xa    held
	// prepared are the changes of distributed transactions, as far as they were seen.
	prepared map[string]held
	kept     []step
	err      error
}

// follow starts a follower. It is of use from the place on that await is first asked for.
func follow(ctx context.Context, o *opened, life int, s *enumeratorState, from core.Point) (*follower, error) {
	ctx, release, id, err := o.replica(ctx, o.serverName(s), fmt.Sprintf("copy %d", life), false)
	if err != nil {
		return nil, err
	}
	stream, err := o.target.Dump(ctx, id, &from)
	if err != nil {
		release()
		return nil, err
	}
	f := &follower{target: o.target, uuid: stream.UUID(), stop: release, moved: make(chan struct{}), point: from.Clone(), prepared: make(map[string]held)}
	f.done.Go(func() {
		defer stream.Close()
		v := newEvents(o, s)
		for {
			st, err := v.next(stream)
			if err != nil {
				err = cmp.Or(context.Cause(ctx), o.kicked(err))
			}
			f.take(st, err)
			if err != nil {
				return
			}
		}
	})
	return f, nil
}

func (f *follower) close() {
	if f != nil {
		f.stop()
		f.done.Wait()
	}
}

func (f *follower) take(st step, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		f.err = err
		f.wake()
		return
	}
	switch st.kind {
	case stepBegin:
		f.txn, f.open, f.lost, f.part, f.xa = st.txn, true, false, f.part[:0], held{}
	case stepRows:
		switch {
		case st.table.captured == nil:
		case st.xa:
			f.xa.add(st)
		case f.keep == nil:
			f.lost = true
		case st.table.captured.ID == f.keep.ID:
			f.part = append(f.part, st)
		}
	case stepTruncate, stepRemove:
		f.part = append(f.part, st)
		f.commit(st.end)
	case stepPrepare:
		if f.xa.bytes <= heldBytes {
			f.prepared[st.xid] = f.xa
		}
		f.commit(st.end)
	case stepOutcome:
		f.outcome(st)
		f.commit(st.end)
	case stepCommit:
		f.commit(st.end)
	case stepBroken:
		f.open, f.lost, f.part, f.xa = false, false, f.part[:0], held{}
		f.wake()
	case stepIdle:
		f.at = st.end
		if !f.open {
			f.point.Idle(st.end)
		}
		f.wake()
	}
}

// outcome has the changes of a distributed transaction come to pass, or not. Of one that was not seen the step itself is kept.
func (f *follower) outcome(st step) {
	h, seen := f.prepared[st.xid]
	delete(f.prepared, st.xid)
	if len(f.xa.steps) > 0 { // prepared and committed in one
		h, seen = f.xa, f.xa.bytes <= heldBytes
	}
	if f.keep == nil || !st.committed {
		return
	}
	if !seen {
		f.part = append(f.part, st)
	}
	for _, s := range h.steps {
		if s.table.captured.ID == f.keep.ID {
			f.part = append(f.part, s)
		}
	}
}

func (f *follower) commit(end position.BinlogPos) {
	f.point.Pass(f.txn, end)
	f.at, f.open, f.lost = end, false, false
	if f.keep != nil {
		f.kept = append(f.kept, f.part...)
	}
	f.part = f.part[:0]
	f.wake()
}

func (f *follower) wake() {
	close(f.moved)
	f.moved = make(chan struct{})
}

// ended is why the log is not read on; nil while it is.
func (f *follower) ended() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// await waits until the log was read up to a place where its server said that it is. Much may lie before it, and a server sends only
// what has reached its disk, so the wait has no limit as long as the log is read: it ends with the server's stream.
func (f *follower) await(ctx context.Context, at position.BinlogPos) error {
	defer f.target.Wait("the log that is read beside the copy, up to " + at.String())()
	for {
		f.mu.Lock()
		order, ok := f.at.Compare(at)
		err, moved := f.err, f.moved
		f.mu.Unlock()
		switch {
		case ok && order >= 0:
			return nil
		case err != nil:
			return err
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// begin opens a window for the changes of a table and returns the point where it begins. A transaction of which changes went by
// unkept is waited for.
func (f *follower) begin(ctx context.Context, t *capturedTable) (core.Point, error) {
	for {
		f.mu.Lock()
		f.keep, f.kept = t, nil
		lost, point, err, moved := f.open && f.lost, f.point.Clone(), f.err, f.moved
		f.mu.Unlock()
		if err != nil || !lost {
			return point, err
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return core.Point{}, ctx.Err()
		}
	}
}

// window returns the point where the log is now, and the changes since the window began or was last looked at.
func (f *follower) window() (core.Point, []step) {
	f.mu.Lock()
	defer f.mu.Unlock()
	kept := f.kept
	f.kept = nil
	return f.point.Clone(), kept
}

// end closes the window.
func (f *follower) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.keep, f.kept = nil, nil
	f.lost = f.open
}
