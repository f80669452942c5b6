package core

import "weir.dev/weir/pkg/position"

// Feedback is what a reader may tell the server. Only flushed lets the server forget.
type Feedback struct {
	written, flushed position.LSN
}

// NewFeedback starts from the slot's own confirmed_flush, which is true without any epoch.
func NewFeedback(confirmed position.LSN) Feedback {
	return Feedback{written: confirmed, flushed: confirmed}
}

// Received says that the log up to lsn has arrived.
func (f *Feedback) Received(lsn position.LSN) { f.written = max(f.written, lsn) }

// Committed says that an epoch with this position is committed at every sink. It never moves back: Confirm may be
// repeated. The emitted part of a cut transaction is not confirmed; the server sends the transaction again whole.
func (f *Feedback) Committed(p Position) (moved bool) {
	if p.End <= f.flushed {
		return false
	}
	f.flushed = p.End
	f.written = max(f.written, p.End)
	return true
}

// Flushed is the position that the server may forget before.
func (f *Feedback) Flushed() position.LSN { return f.flushed }

// Written is the position up to which the log has arrived; never behind Flushed.
func (f *Feedback) Written() position.LSN { return f.written }
