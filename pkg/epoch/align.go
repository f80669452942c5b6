package epoch

// Align finds the cut of one receiving subtask: the moment when the barrier of an epoch has arrived on every input.
//
// It is a passive value owned by one goroutine. The owner offers every message and every barrier in the order of arrival
// and does what it is told: a message is delivered at once or held, a barrier may complete an alignment, abandon one, or
// be dropped. Held messages come back with the barrier that frees them.
//
// Invariants:
//   - At a completed alignment of N exactly the messages before barrier N of each channel have been delivered.
//   - Messages of a channel are delivered in their order; nothing is held while no alignment is open.
//   - A barrier M ends every alignment of N < M (⚑): a channel whose sender never saw N cannot stop the flow. So no
//     barrier is ever held, and held messages are always free up to their channel's next barrier.
//
// M is the message type; Align never looks inside.
type Align[M any] struct {
	// top is the highest barrier seen on any channel; open tells whether its alignment is incomplete.
	top     ID
	open    bool
	passed  []bool
	missing int
	held    [][]M
	drops   uint64
}

// NewAlign makes the value for a number of input channels, which the owner numbers from 0. after is the last epoch
// whose barrier lies before the input (the epoch an attempt was restored from); barriers up to it are dropped.
func NewAlign[M any](channels int, after ID) *Align[M] {
	return &Align[M]{top: after, passed: make([]bool, channels), held: make([][]M, channels)}
}

// Outcome is what a barrier did. At most one of Aligned and Abandoned is set.
type Outcome[M any] struct {
	// Aligned is the epoch whose cut is complete now: take the snapshot, then deliver Released.
	Aligned ID
	// Abandoned is an epoch whose alignment a newer barrier has ended: it is not acknowledged. Deliver Released.
	Abandoned ID
	// Dropped says that the barrier was not above the last one handled and changed nothing.
	Dropped bool
	// Released are the messages that were held, channel by channel, each channel in its order.
	Released []M
}

// Message offers the next message of a channel. True means deliver it now, false that it is held.
func (a *Align[M]) Message(channel int, m M) bool {
	if !a.open || !a.passed[channel] {
		return true
	}
	a.held[channel] = append(a.held[channel], m)
	return false
}

// Barrier offers the barrier that ends epoch n on a channel.
func (a *Align[M]) Barrier(channel int, n ID) Outcome[M] {
	if n < a.top || n == a.top && (!a.open || a.passed[channel]) {
		a.drops++
		return Outcome[M]{Dropped: true}
	}
	var out Outcome[M]
	if n > a.top {
		if a.open {
			out.Abandoned = a.top
			out.Released = a.release()
		}
		a.top, a.open, a.missing = n, true, len(a.passed)
		clear(a.passed)
	}
	a.passed[channel] = true
	if a.missing--; a.missing == 0 {
		a.open = false
		out.Aligned = n
		out.Released = a.release()
	}
	return out
}

// release empties the queues. No queue holds a barrier, so all of it is free.
func (a *Align[M]) release() []M {
	var all []M
	for i, q := range a.held {
		all = append(all, q...)
		a.held[i] = nil
	}
	return all
}

// Last is the highest epoch whose barrier has been seen; open tells whether its alignment is still incomplete.
func (a *Align[M]) Last() (last ID, open bool) { return a.top, a.open }

// Drops counts barriers that were dropped.
func (a *Align[M]) Drops() uint64 { return a.drops }
