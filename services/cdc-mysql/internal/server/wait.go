package server

import (
	"slices"
	"sync"
	"time"

	"weir.dev/weir/pkg/report"
)

// tellAfter is how old a wait has to be so that it is worth a word: most end within a moment.
const tellAfter = 3 * time.Second

// waits are those of a target. It is safe for concurrent use.
type waits struct {
	mu  sync.Mutex
	all map[*report.Wait]struct{}
}

// begin notes a wait until the returned function is called.
func (w *waits) begin(since time.Time, what string) (end func()) {
	one := &report.Wait{Since: since.UTC(), What: what}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all == nil {
		w.all = make(map[*report.Wait]struct{})
	}
	w.all[one] = struct{}{}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.all, one)
	}
}

// Wait notes, for people, what is waited for until the returned function is called.
func (t *Target) Wait(what string) (end func()) { return t.waits.begin(time.Now(), what) }

// Waits are what is waited for at the server for longer than a moment, the oldest first.
func (t *Target) Waits() []report.Wait {
	t.waits.mu.Lock()
	defer t.waits.mu.Unlock()
	var all []report.Wait
	for w := range t.waits.all {
		if time.Since(w.Since) >= tellAfter {
			all = append(all, *w)
		}
	}
	slices.SortFunc(all, func(a, b report.Wait) int { return a.Since.Compare(b.Since) })
	return all
}
