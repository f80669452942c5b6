package coordinator

import (
	"errors"

	"weir.dev/weir/pkg/fault"
)

// errDeposed ends a leadership because a head carries a newer term.
var errDeposed = fault.Mark(fault.Fenced, errors.New("a newer leader has taken over"))

// errLease ends a leadership because its lease could not be renewed in time.
var errLease = fault.Mark(fault.Fenced, errors.New("the leader's lease has run out"))
