package halves

import (
	"sync"
	"time"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/report"
)

// Beats are the heartbeats of a reader of the log, one at a time: the end of the log, seen beside the flow, is followed
// through the flow to the sinks and back. Nothing is sent and nothing is asked for it: it goes with what passes anyway. P is the
// adapter's place in its log. The zero Beats is ready, and for any number of goroutines.
type Beats[P any] struct {
	mu   sync.Mutex
	way  *way[P]
	last *report.Beat
	rows bool // were emitted since the last barrier
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
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.way == nil {
		b.way = &way[P]{end: end, began: asked}
	}
}

// Emit says that the reader has emitted rows.
func (b *Beats[P]) Emit() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rows = true
}

// Pass says that everything before a place has been emitted; behind reports whether that place is not before an end. Without rows
// since the last barrier, whatever comes behind the end is what asks for the next epoch.
func (b *Beats[P]) Pass(now time.Time, behind func(end P) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if w := b.way; w != nil && w.read.IsZero() && behind(w.end) {
		w.read, w.quiet = now, !b.rows
	}
}

// Cut says that the barrier of an epoch passes the reader.
func (b *Beats[P]) Cut(now time.Time, n epoch.ID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rows = false
	if w := b.way; w != nil && !w.read.IsZero() && w.cut.IsZero() {
		w.cut, w.epoch = now, n
	}
}

// Confirm says that every sink has committed an epoch.
func (b *Beats[P]) Confirm(now time.Time, n epoch.ID) {
	b.mu.Lock()
	defer b.mu.Unlock()
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
	b.mu.Lock()
	defer b.mu.Unlock()
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
