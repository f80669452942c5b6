package core

import (
	"fmt"

	"weir.dev/weir/pkg/position"
)

// Tracker follows the transactions of one log and says what is new. It sees every event in order.
//
//	between ──Begin──► open ──Event*──► open ──Commit──► between
//	                  (the first events of a cut transaction were emitted before the position)
type Tracker struct {
	from Position // everything before it was emitted

	open     bool
	txn      Txn
	time     int64
	events   uint64
	replayed uint64 // events of the open transaction that were emitted before
	ord      uint32
}

// NewTracker starts at a position; nobody else may move its point.
func NewTracker(from Position) *Tracker { return &Tracker{from: from} }

func gap(at any, why string) error { return fmt.Errorf("log at %v: %s", at, why) }

// Begin opens a transaction. time is that of its commit in microseconds since 1970.
func (t *Tracker) Begin(txn Txn, time int64) error {
	if t.open {
		return gap(txn, "a transaction begins inside "+t.txn.String())
	}
	t.open, t.txn, t.time, t.events, t.replayed, t.ord = true, txn, time, 0, 0, 0
	if !t.from.IsTorn() {
		return nil
	}
	if txn.String() != t.from.Torn.Txn {
		return gap(txn, "the rest of transaction "+t.from.Torn.Txn+" is missing")
	}
	t.replayed, t.ord = t.from.Torn.Events, t.from.Torn.Ord
	return nil
}

// Event counts one rows event, or a statement that counts as one, and reports whether its rows are new.
func (t *Tracker) Event() (fresh bool, err error) {
	if !t.open {
		return false, gap(t.from.Public(), "a change outside a transaction")
	}
	t.events++
	return t.events > t.replayed, nil
}

// Row gives the next new row of the open transaction its ordinal.
func (t *Tracker) Row() uint32 {
	t.ord++
	return t.ord - 1
}

// Commit closes the transaction, which ends at a place in the server's files.
func (t *Tracker) Commit(end position.BinlogPos) error {
	switch {
	case !t.open:
		return gap(end, "a commit without its begin")
	case t.events < t.replayed:
		return gap(end, fmt.Sprintf("transaction %s has %d rows events, %d were emitted before", t.txn, t.events, t.replayed))
	}
	t.open = false
	t.from.Before.Pass(t.txn, end)
	t.from.Torn = Torn{}
	return nil
}

// Idle takes the server's statement that it is at a place in its files, and nothing open.
func (t *Tracker) Idle(at position.BinlogPos) {
	if !t.open && !t.from.IsTorn() {
		t.from.Before.Idle(at)
	}
}

// Open reports whether a transaction is open.
func (t *Tracker) Open() bool { return t.open }

// Cut reports whether the reader may stop here: between transactions, or inside one of which more than limit rows have been
// emitted. A limit of 0 never cuts.
func (t *Tracker) Cut(limit int) bool {
	return !t.open || (limit > 0 && t.events > t.replayed && t.ord >= uint32(limit))
}

// Before is the point behind the last whole transaction. The tracker moves it.
func (t *Tracker) Before() *Point { return &t.from.Before }

// Position is the resume point behind everything that was new so far; its point is the caller's.
func (t *Tracker) Position() Position {
	p := Position{Before: t.from.Before.Clone(), Torn: t.from.Torn}
	if t.open && t.events > t.replayed {
		p.Torn = Torn{Txn: t.txn.String(), Events: t.events, Ord: t.ord}
	}
	return p
}

// Public is the public form of Position.
func (t *Tracker) Public() position.Position {
	p := Position{Before: t.from.Before, Torn: t.from.Torn}
	if t.open && t.events > t.replayed {
		p.Torn = Torn{Txn: t.txn.String(), Events: t.events, Ord: t.ord}
	}
	return p.Public()
}

// Rewind prepares for the same log to be sent again from Position, on a new connection.
func (t *Tracker) Rewind() { *t = *NewTracker(t.Position()) }

// Transaction is the open transaction and the time of its commit, in microseconds since 1970.
func (t *Tracker) Transaction() (txn Txn, time int64) { return t.txn, t.time }
