package task

import (
	"time"

	"weir.dev/weir/pkg/plan"
)

// Asking again: at once while the channel drains, ever slower while it does not.
const (
	askSoon = 2 * time.Millisecond
	askLate = 50 * time.Millisecond
)

// Window bounds what one channel has sent and its receiver has not consumed. The sender learns of consumption only by
// asking the stream how many messages of the subject are left; so it counts for itself and asks from half-full on. It is
// a passive value; barriers are sent whatever it says, the reserve of the stream's own limit is theirs.
type Window struct {
	limit plan.Window
	// open are the messages not known to be consumed; first is the number of open[0].
	open  []sent
	first uint64
	bytes int64
	delay time.Duration
}

// sent is a message under way: its number at the publisher and its size.
type sent struct {
	publish uint64
	size    int64
}

// NewWindow makes the window of one channel.
func NewWindow(limit plan.Window) *Window {
	return &Window{limit: limit, first: 1, delay: askSoon}
}

// Room reports whether a message of rows may be sent now. An empty window takes a message of any size.
func (w *Window) Room(size int64) bool {
	return len(w.open) == 0 || len(w.open) < w.limit.Messages && w.bytes+size <= w.limit.Bytes
}

// Half reports whether it is time to ask.
func (w *Window) Half() bool {
	return 2*len(w.open) >= w.limit.Messages || 2*w.bytes >= w.limit.Bytes
}

// Sent adds the next message of the channel. publish is the publisher's number for it.
func (w *Window) Sent(publish uint64, size int64) {
	w.open = append(w.open, sent{publish, size})
	w.bytes += size
}

// Stored is the number of the channel's last message that is surely in the stream, given what the publisher has
// acknowledged. Ask for the count after taking it, never before: the count covers at least these messages.
func (w *Window) Stored(acked uint64) uint64 {
	n := uint64(0)
	for _, s := range w.open {
		if s.publish > acked {
			break
		}
		n++
	}
	return w.first + n - 1
}

// Left tells that of the messages up to stored at most left are unconsumed. It returns how long to wait before asking
// again.
func (w *Window) Left(stored, left uint64) time.Duration {
	consumed := uint64(0)
	if stored > left {
		consumed = stored - left
	}
	k := uint64(0)
	for w.first+k <= consumed && k < uint64(len(w.open)) {
		w.bytes -= w.open[k].size
		k++
	}
	if k == 0 {
		w.delay = min(2*w.delay, askLate)
		return w.delay
	}
	w.open = append(w.open[:0], w.open[k:]...)
	w.first += k
	w.delay = askSoon
	return w.delay
}
