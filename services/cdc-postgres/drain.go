package cdcpostgres

import (
	"sync"

	"weir.dev/weir/pkg/cdc/halves"
	"weir.dev/weir/pkg/position"
	"weir.dev/weir/services/cdc-postgres/internal/core"
)

// drainEnd is the end of the log fixed by a drain. It is found by SQL, so not in the loop that asks for it.
type drainEnd struct {
	news chan struct{} // holds a token when the end was asked for, has become known, or was passed
	ask  chan struct{} // holds a token for the observer

	mu     sync.Mutex
	wanted bool
	lsn    position.LSN
	passed bool
}

func newDrainEnd() *drainEnd {
	return &drainEnd{news: make(chan struct{}, 1), ask: make(chan struct{}, 1)}
}

// want asks for the end; the observer finds it.
func (d *drainEnd) want() {
	d.mu.Lock()
	d.wanted = true
	d.mu.Unlock()
	halves.Token(d.ask)
	halves.Token(d.news)
}

// asked reports whether a drain is under way.
func (d *drainEnd) asked() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.wanted
}

// missing reports whether the end is wanted and not known yet.
func (d *drainEnd) missing() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.wanted && d.lsn == 0
}

func (d *drainEnd) fix(lsn position.LSN) {
	d.mu.Lock()
	if d.lsn == 0 {
		d.lsn = lsn
	}
	d.mu.Unlock()
	halves.Token(d.news)
}

// past reports whether a transaction whose commit record lies at final comes after the end, and remembers it: then
// nothing before the end is left.
func (d *drainEnd) past(final position.LSN) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lsn != 0 && final >= d.lsn && !d.passed {
		d.passed = true
		halves.Token(d.news) // nothing else may ever arrive
	}
	return d.passed
}

// reached reports whether everything up to the end lies before at.
func (d *drainEnd) reached(at core.Position) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.passed || (d.lsn != 0 && !at.IsTorn() && at.End >= d.lsn)
}
