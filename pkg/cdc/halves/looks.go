package halves

import (
	"sync/atomic"

	"weir.dev/weir/pkg/epoch"
)

// Looks joins the loop of a reader, past which barriers go, to the goroutine that looks at its source's head beside it.
type Looks struct {
	passed atomic.Uint64
	wanted chan struct{} // holds a token
}

// NewLooks makes one.
func NewLooks() *Looks { return &Looks{wanted: make(chan struct{}, 1)} }

// Pass says that the barrier of an epoch has passed.
func (l *Looks) Pass(e epoch.ID) { l.passed.Store(uint64(e)) }

// Passed is the epoch of the last barrier. What is asked of the source behind this call is asked behind that barrier, see
// [weir.dev/weir/pkg/report.SourceHead].
func (l *Looks) Passed() uint64 { return l.passed.Load() }

// Want asks for a look at once.
func (l *Looks) Want() { Token(l.wanted) }

// Wanted is readable when one was asked for.
func (l *Looks) Wanted() <-chan struct{} { return l.wanted }
