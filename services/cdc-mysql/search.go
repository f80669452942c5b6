package cdcmysql

import (
	"context"
	"fmt"
	"log/slog"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/services/cdc-mysql/internal/core"
	"weir.dev/weir/services/cdc-mysql/internal/server"
)

// seen are the distributed transactions that a stream has prepared, or that were pending where it began.
type seen struct {
	passed core.Point // what lies before it was applied by an attempt before
	open   core.Txn
	xids   map[string]bool
}

func newSeen(passed core.Point, waiting []pending) *seen {
	s := &seen{passed: passed, xids: make(map[string]bool)}
	for _, x := range waiting {
		s.xids[x.XID] = true
	}
	return s
}

// lacks takes the next step of the stream. It reports whether that commits a distributed transaction whose rows neither the stream
// nor an attempt before had: it was prepared before the log of the job begins.
func (s *seen) lacks(st *step) bool {
	switch st.kind {
	case stepBegin:
		s.open = st.txn
	case stepPrepare:
		s.xids[st.xid] = true
	case stepOutcome:
		known := s.xids[st.xid] || s.passed.Contains(s.open)
		delete(s.xids, st.xid)
		return st.committed && !st.once && !known
	case stepRows, stepTruncate, stepCommit, stepIdle, stepRemove, stepBroken:
	}
	return false
}

// search looks for the rows of a distributed transaction in the part of the log before that of the job, and puts them into the
// step that commits it. It reads from the oldest event that the server has, under the server id of the stream before, which is
// closed, and leaves a stream that goes on behind the step. Where the rows are not found the step stays as it is.
func (l *link) search(ctx context.Context, s *enumeratorState, id uint32, txn core.Txn, st *step) (*server.Stream, *events, error) {
	l.cfg.Logger.InfoContext(ctx, "the log is searched for the rows of a distributed transaction that was prepared before the job began",
		slog.String("xid", st.xid), slog.String("committed", txn.String()))
	session, err := l.target.Open(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer session.Close()
	facts, err := session.Facts(ctx)
	if err != nil {
		return nil, nil, err
	}
	h, err := session.History(ctx, facts)
	if err != nil {
		return nil, nil, err
	}
	from := h.Oldest()
	stream, err := l.target.Dump(ctx, id, &from)
	if err != nil {
		return nil, nil, err
	}
	v := newEvents(l.opened, s)
	if err := v.prepare(stream, txn, st); err != nil {
		stream.Close()
		if class := fault.ClassOf(err); class != fault.Transient {
			err = fault.Wrap(err, fault.MYXA, l.where, fmt.Sprintf("distributed transaction %s was prepared before the log of the job begins, and what lies there cannot be read: %v", st.xid, err), "job", l.cfg.Job)
		}
		return nil, nil, err
	}
	return stream, v, nil
}

// prepare reads up to the commit of a distributed transaction, and gives it the rows that it was last prepared with.
func (v *events) prepare(stream *server.Stream, commit core.Txn, st *step) error {
	var at core.Txn
	var open held
	for {
		next, err := v.next(stream)
		if err != nil {
			return err
		}
		switch next.kind {
		case stepBegin:
			at, open = next.txn, held{}
		case stepRows:
			if next.xa && next.table.captured != nil {
				open.add(next)
			}
		case stepPrepare:
			if next.xid == st.xid {
				rows := open
				st.rows = &rows
			}
		case stepOutcome:
			if at == commit {
				if st.rows != nil {
					st.size += st.rows.bytes
				}
				return nil
			}
			if next.xid == st.xid { // of an earlier one with that name
				st.rows = nil
			}
		case stepTruncate, stepCommit, stepIdle, stepRemove, stepBroken:
		}
	}
}
