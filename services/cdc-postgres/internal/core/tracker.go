package core

import (
	"fmt"

	"weir.dev/weir/pkg/position"
)

// GapError says that the log does not continue where the reader left it.
type GapError struct {
	At   Position
	Seen position.LSN
	Why  string
}

func (e *GapError) Error() string {
	return fmt.Sprintf("log read from %s: at %s: %s", e.At.End, e.Seen, e.Why)
}

// Tracker follows the transactions of one log and says what is new. It sees every message in order.
//
//	between ──Begin──► open ──Change*──► open ──Commit──► between
//	                  (skipping: the transaction, or its first changes, were emitted before the position)
type Tracker struct {
	from Position // everything before it is skipped
	end  position.LSN

	open     bool
	skipping bool // the whole open transaction lies before from
	final    position.LSN
	time     int64
	xid      uint32
	changes  uint64
	replayed uint64 // changes of the open transaction that were emitted before
	ord      uint32
}

// NewTracker starts at a position.
func NewTracker(from Position) *Tracker { return &Tracker{from: from, end: from.End} }

// Begin opens a transaction. time is that of its commit in microseconds since 1970.
func (t *Tracker) Begin(final position.LSN, time int64, xid uint32) error {
	if t.open {
		return t.gap(final, "a transaction begins inside another")
	}
	t.open, t.final, t.time, t.xid = true, final, time, xid
	t.changes, t.replayed, t.ord = 0, 0, 0
	t.skipping = final < t.from.End
	if t.skipping || !t.from.IsTorn() {
		return nil
	}
	// The server sends transactions in the order of their commits, so the cut one is the first that is not skipped.
	if final != t.from.Torn.Final {
		return t.gap(final, "the rest of the transaction that ends at "+t.from.Torn.Final.String()+" is missing")
	}
	t.replayed, t.ord = t.from.Torn.Changes, t.from.Torn.Ord
	return nil
}

// Change counts one change message and reports whether its rows are new.
func (t *Tracker) Change() (fresh bool, err error) {
	if !t.open {
		return false, t.gap(t.end, "a change outside a transaction")
	}
	t.changes++
	return !t.skipping && t.changes > t.replayed, nil
}

// Row gives the next new row of the open transaction its ordinal.
func (t *Tracker) Row() uint32 {
	t.ord++
	return t.ord - 1
}

// Commit closes the transaction.
func (t *Tracker) Commit(final, end position.LSN) error {
	switch {
	case !t.open || final != t.final:
		return t.gap(final, "a commit without its begin")
	case end < final:
		return t.gap(final, "a commit that ends before it begins")
	case t.changes < t.replayed:
		return t.gap(final, fmt.Sprintf("the transaction has %d changes, %d were emitted before", t.changes, t.replayed))
	}
	t.open = false
	if !t.skipping {
		t.end = max(t.end, end)
		t.from = Position{End: t.end}
	}
	return nil
}

// Keepalive takes the server's statement that nothing before walEnd is left to send. Inside a transaction it says
// nothing about the transaction and is ignored.
func (t *Tracker) Keepalive(walEnd position.LSN) error {
	if t.open {
		return nil
	}
	if t.from.IsTorn() {
		if walEnd > t.from.Torn.Final {
			return t.gap(walEnd, "the rest of the transaction that ends at "+t.from.Torn.Final.String()+" is missing")
		}
		return nil
	}
	t.end = max(t.end, walEnd)
	return nil
}

// Open reports whether a transaction is open of which something is new.
func (t *Tracker) Open() bool { return t.open && !t.skipping }

// Cut reports whether the reader may stop here: between transactions, or inside one of which more than limit changes
// have been emitted since it began. A limit of 0 never cuts.
func (t *Tracker) Cut(limit int) bool {
	if !t.Open() {
		return true
	}
	return limit > 0 && t.changes > t.replayed && t.changes >= uint64(limit)
}

// Position is the resume point behind everything that was new so far.
func (t *Tracker) Position() Position {
	if !t.open || t.skipping {
		p := Position{End: t.end}
		if t.from.IsTorn() {
			p.Torn = t.from.Torn
		}
		return p
	}
	if t.changes <= t.replayed { // still among the rows emitted before
		return t.from
	}
	return Position{End: t.end, Torn: Torn{Final: t.final, Changes: t.changes, Ord: t.ord}}
}

// Rewind prepares for the same log to be sent again from Position, on a new connection.
func (t *Tracker) Rewind() {
	p := t.Position()
	*t = *NewTracker(p)
}

// Transaction is the identity of the open transaction: the LSN of its commit record, its id on the wire and its
// commit time in microseconds since 1970.
func (t *Tracker) Transaction() (final position.LSN, xid uint32, time int64) {
	return t.final, t.xid, t.time
}

func (t *Tracker) gap(seen position.LSN, why string) error {
	return &GapError{At: t.from, Seen: seen, Why: why}
}
