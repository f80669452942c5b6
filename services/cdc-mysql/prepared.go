package cdcmysql

import (
	"context"
	"fmt"
	"slices"

	"weir.dev/weir/pkg/cdc"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/services/cdc-mysql/internal/core"
)

// The rows of a distributed transaction are logged when it is prepared, and count when it is committed, as a transaction of its
// own far behind:
//
//	GTID 7, rows, XA PREPARE x  ─ … other transactions … ─  GTID 12, XA COMMIT x: the rows leave, as those of 12
//
// In between they are held in memory. A state has only where the log has them: an attempt that begins with some prepared reads the
// log again from there, and leaves out everything else that it has passed already. Of one that was prepared before the log of the
// job begins the link searches the rows there, see search.

// heldBytes bounds what is held.
const heldBytes = 64 << 20

// held are steps of a transaction.
type held struct {
	steps []step
	bytes int
}

// add keeps a step, unless there are too many already: then only their size grows.
func (h *held) add(st step) {
	if h.bytes += len(st.image); h.bytes > heldBytes {
		h.steps = nil
	}
	h.steps = append(h.steps, st)
}

// pending is a distributed transaction that is prepared.
type pending struct {
	XID string `json:"xid"`
	// From is the point before the transaction that has its rows of captured tables; none when there are no such rows.
	From *core.Point `json:"from,omitempty"`
}

// prepared are the distributed transactions whose outcome is to come.
type prepared struct {
	list  []pending       // in the order of the log
	rows  map[string]held // of those that were read in this attempt
	open  held            // of the open transaction
	back  bool            // the log is read again, and has not come to where it was
	again bool            // the open transaction was passed before
}

func newPrepared(list []pending) *prepared {
	return &prepared{list: slices.Clone(list), rows: make(map[string]held)}
}

// from is where the log has to be read again so that nothing that is pending is missing; nil when nothing is.
func (p *prepared) from() *core.Point {
	for _, x := range p.list {
		if _, ok := p.rows[x.XID]; x.From != nil && !ok {
			return x.From
		}
	}
	return nil
}

// oldest is the first point that an attempt to come would read from, being at a point now.
func oldest(list []pending, at core.Point) core.Point {
	for _, x := range list {
		if x.From != nil {
			return *x.From
		}
	}
	return at
}

func (p *prepared) find(xid string) int {
	return slices.IndexFunc(p.list, func(x pending) bool { return x.XID == xid })
}

// passedBefore takes a step of a transaction that was passed already; false for other steps.
func (r *reader) passedBefore(st *step) bool {
	p := r.prepared
	if st.kind == stepBegin {
		p.open = held{}
		p.back = p.back && r.tracker.Before().Contains(st.txn)
		p.again = p.back
		return p.again
	}
	if !p.again {
		return false
	}
	switch st.kind {
	case stepRows:
		r.hold(st)
	case stepPrepare:
		if i := p.find(st.xid); i >= 0 && p.list[i].From != nil {
			p.rows[st.xid] = p.open
		}
		p.again = false
	case stepCommit, stepTruncate, stepRemove, stepOutcome:
		p.again = false
	case stepBegin, stepIdle, stepBroken:
	}
	return true
}

// hold keeps the rows of a distributed transaction. It reports whether these are such.
func (r *reader) hold(st *step) bool {
	if st.xa && st.table.captured != nil {
		r.prepared.open.add(*st)
	}
	return st.xa
}

// prepare ends a transaction whose outcome is to come.
func (r *reader) prepare(st *step) error {
	p := r.prepared
	if p.open.bytes > heldBytes {
		return r.distributed(p.open.steps[0].table.name, fmt.Sprintf("it has more than %d MiB of captured rows", heldBytes>>20))
	}
	x := pending{XID: st.xid}
	if len(p.open.steps) > 0 {
		from := r.tracker.Before().Clone()
		x.From, p.rows[st.xid] = &from, p.open
	}
	p.list = append(p.list, x)
	return r.commit(st)
}

// outcome emits the rows of a distributed transaction that is committed, and forgets those of one that is rolled back.
func (r *reader) outcome(ctx context.Context, out source.Output, st *step) error {
	p := r.prepared
	h, at := p.open, -1 // prepared and committed in one
	if len(h.steps) == 0 {
		if at = p.find(st.xid); at >= 0 {
			h = p.rows[st.xid]
		} else if st.rows != nil {
			h = *st.rows
		} else if st.committed && !st.once {
			if err := r.unknown(st); err != nil {
				return err
			}
		}
	}
	if h.bytes > heldBytes {
		return r.distributed(h.steps[0].table.name, fmt.Sprintf("it has more than %d MiB of captured rows", heldBytes>>20))
	}
	if st.committed {
		for i := range h.steps {
			if err := r.change(ctx, out, &h.steps[i]); err != nil {
				return err
			}
		}
	}
	if at >= 0 {
		p.list = slices.Delete(p.list, at, at+1)
		delete(p.rows, st.xid)
	}
	return r.commit(st)
}

// unknown judges the commit of a transaction whose rows the log has nowhere: they are in the copies, or lost.
func (r *reader) unknown(st *step) error {
	txn, _ := r.tracker.Transaction()
	for _, t := range r.source.Tables {
		if r.filter == nil {
			return r.distributed(t.Name, "distributed transaction "+st.xid+" was prepared in log that the server has purged, and committed at "+st.end.String())
		}
		if f := r.filter.Table(t.ID); f != nil && f.Truncate(txn) != cdc.Drop {
			return r.distributed(t.Name, "distributed transaction "+st.xid+" was prepared in log that the server has purged, and committed behind the copy, at "+st.end.String())
		}
	}
	return nil
}

func (r *reader) distributed(table core.Name, why string) error {
	return fault.New(fault.MYXA, r.where, why, "table", table.String(), "job", r.cfg.Job)
}
