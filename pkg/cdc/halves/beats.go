package halves

import (
	"time"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/report"
)

// Beats are the heartbeats of a reader of the log, one at a time: the end of the log, seen beside the flow, is followed
// through the flow to the sinks and back. Nothing is sent and nothing is asked for it: it goes with what passes anyway. P is the
// adapter's place in its log. The zero Beats is ready; it is for one goroutine, or under its owner's lock.
type Beats[P any] struct {
	way  *way[P]
	last *report.Beat
}

// way is a beat that is on its way. Times are zero until they are known.
type way[P any] struct {
	end              P
	began, read, cut time.Time
	epoch            epoch.ID
	quiet            bool
}

// See takes an end of the log that was asked for at a moment. It begins the next beat unless one is on its way.
func (b *Beats[P]) See(asked time.Time, end P) {
	if b.way == nil {
		b.way = &way[P]{end: end, began: asked}
	}
}

// Unread is the end that the reader has not reached yet.
func (b *Beats[P]) Unread() (end P, ok bool) {
	if b.way == nil || !b.way.read.IsZero() {
		return end, false
	}
	return b.way.end, true
}

// Reach says that everything before the end of [Beats.Unread] has been emitted; rows, that the reader has emitted some since the
// last barrier: without, whatever comes behind it is what asks for the next epoch.
func (b *Beats[P]) Reach(now time.Time, rows bool) {
	if _, ok := b.Unread(); ok {
		b.way.read, b.way.quiet = now, !rows
	}
}

// Cut says that the barrier of an epoch passes the reader.
func (b *Beats[P]) Cut(now time.Time, n epoch.ID) {
	if w := b.way; w != nil && !w.read.IsZero() && w.cut.IsZero() {
		w.cut, w.epoch = now, n
	}
}

// Confirm says that every sink has committed an epoch.
func (b *Beats[P]) Confirm(now time.Time, n epoch.ID) {
	w := b.way
	if w == nil || w.cut.IsZero() || n < w.epoch {
		return
	}
	b.last = &report.Beat{
		Began: w.began.UTC(), Read: w.read.Sub(w.began), Waited: w.cut.Sub(w.read), Landed: now.Sub(w.cut),
		Epoch: uint64(n), Quiet: w.quiet,
	}
	b.way = nil
}

// Report writes the beats into a report.
func (b *Beats[P]) Report(r *report.Reader) {
	if b.last != nil {
		r.Beat = report.ExactOf(*b.last)
	}
	w := b.way
	if w == nil {
		return
	}
	r.UnderWay = &report.Way{Began: w.began.UTC(), Leg: report.Landing, Quiet: w.quiet}
	switch {
	case w.read.IsZero():
		r.UnderWay.Leg = report.Reading
	case w.cut.IsZero():
		r.UnderWay.Leg = report.Waiting
	}
}
