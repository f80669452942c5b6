package job

import (
	"time"

	"weir.dev/weir/pkg/fence"
)

// View is one reading of a head record. A missing record is a View with a nil Head: it means stop, never "unlocked".
type View struct {
	Head *Head
	// Revision is the record's revision in the registry.
	Revision uint64
	// At is the reader's clock when it read.
	At time.Time
}

// Order is where a head record stands in the history of its job: it grows with every write.
type Order struct {
	Term     uint64
	Fence    fence.Token
	Revision uint64
}

// OrderOf returns the place of a reading. A missing record stands before every other.
func OrderOf(v View) Order {
	if v.Head == nil {
		return Order{}
	}
	return Order{Term: v.Head.Term, Fence: v.Head.Fence, Revision: v.Revision}
}

// Below reports whether o is older than p in any of its parts. On an intact registry the three parts only grow
// together, so one part that went back is proof that the registry did.
func (o Order) Below(p Order) bool {
	return o.Term < p.Term || o.Fence < p.Fence || o.Revision < p.Revision
}

// Freshness is what a holder must do with a reading.
type Freshness uint8

const (
	// Current: act on it.
	Current Freshness = iota + 1
	// Stale: a slow replica or a late notification; ignore it and read again.
	Stale
	// Regressed: nothing but older records for longer than a lease. The registry went back: stop everything of the
	// job with HEAD_REGRESSED and write nothing more.
	Regressed
)

// Seen remembers the newest record a process has acted on, for one job. The zero value has seen nothing.
type Seen struct {
	Newest Order
	// StaleSince is when older records began to come without a newer one in between; zero when the last was current.
	StaleSince time.Time
}

// Judge compares a reading with what was seen before. lease is how long older readings are taken for lateness.
func (s Seen) Judge(v View, lease time.Duration) (Seen, Freshness) {
	o := OrderOf(v)
	switch {
	case !o.Below(s.Newest):
		return Seen{Newest: o}, Current
	case s.StaleSince.IsZero():
		s.StaleSince = v.At
		return s, Stale
	case v.At.Sub(s.StaleSince) > lease:
		return s, Regressed
	}
	return s, Stale
}
