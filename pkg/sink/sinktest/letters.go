package sinktest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/sink"
)

// Letters keeps dead letters in memory, for one attempt at a time.
type Letters map[sink.LetterID]sink.Letter

// Stored implements sink.DeadLetters.
func (l Letters) Stored(_ context.Context, e epoch.ID) ([]sink.LetterID, error) {
	return slices.DeleteFunc(slices.Collect(maps.Keys(l)), func(id sink.LetterID) bool { return id.Epoch != e }), nil
}

// Put implements sink.DeadLetters.
func (l Letters) Put(_ context.Context, d sink.Letter) error {
	l[d.LetterID] = d
	return nil
}

// letters keep dead letters as the bus does: for the newest attempt only, and no more than there is room for.
type letters struct {
	mu    sync.Mutex
	owner fence.Token
	all   Letters
	// room is how many more letters fit; negative: any number.
	room int
	// puts counts calls; at the number of crash the attempt dies, before the letter is safe or after.
	puts, crash int
	before      bool
	// stop is called at the beginning of each put. Optional.
	stop func()
}

// errDied is the end of an attempt in the middle of a call.
var errDied = errors.New("the process was killed")

func (l *letters) hold(f fence.Token) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.owner = f
}

func (l *letters) of(e epoch.ID) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id := range l.all {
		if id.Epoch == e {
			n++
		}
	}
	return n
}

// heldLetters are the letters as one attempt sees them.
type heldLetters struct {
	*letters
	own fence.Token
}

// Stored implements sink.DeadLetters.
func (h heldLetters) Stored(ctx context.Context, e epoch.ID) ([]sink.LetterID, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.all.Stored(ctx, e)
}

// Put implements sink.DeadLetters.
func (h heldLetters) Put(_ context.Context, d sink.Letter) error {
	if h.stop != nil {
		h.stop()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.own != h.owner {
		return fault.Mark(fault.Fenced, fence.ErrFenced)
	}
	h.puts++
	if h.puts == h.crash && h.before {
		return errDied
	}
	if _, again := h.all[d.LetterID]; !again {
		if h.room == 0 {
			return fault.New(fault.SinkDLQFull, "sinks."+d.Sink, "no room")
		}
		h.room--
	}
	if h.all == nil {
		h.all = make(Letters)
	}
	h.all[d.LetterID] = d
	if h.puts == h.crash {
		return errDied
	}
	return nil
}

// discard removes all letters and makes room for any number.
func (l *letters) discard() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.all)
	l.room = -1
}

// sorted are the letters in the order of their names.
func (l *letters) sorted() []sink.Letter {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.SortedFunc(maps.Values(l.all), func(x, y sink.Letter) int {
		if x.Epoch != y.Epoch {
			return int(x.Epoch) - int(y.Epoch)
		}
		return x.Index - y.Index
	})
}
