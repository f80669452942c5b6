package coordinator

import (
	"errors"

	"weir.dev/weir/pkg/fault"
)

// errDeposed ends a leadership because a head carries a newer term.
var errDeposed = fault.Mark(fault.Fenced, errors.New("a newer leader has taken over"))
