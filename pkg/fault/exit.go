package fault

import (
	"context"
	"errors"
)

// Exit codes of every command.
const (
	ExitOK          = 0   // done
	ExitInternal    = 1   // a defect of Weir, or an error nobody classified
	ExitRequest     = 2   // bad request or configuration
	ExitEnvironment = 3   // cannot reach something, or a right is missing
	ExitVerify      = 4   // a verification failed
	ExitTimeout     = 5   // a wait ran out of time
	ExitInterrupt   = 130 // a command that SIGINT interrupted, a service that a second one forced
	ExitTerminate   = 143 // the same by SIGTERM
)

// ExitCode returns the exit code of a command that ends with err: 0 for nil, the code's own for an [Error], 5 for a bare
// deadline, 3 for an uncoded transient error, else 1.
func ExitCode(err error) int {
	if err == nil {
		return ExitOK
	}
	if e, ok := errors.AsType[*Error](err); ok {
		if entry, ok := Lookup(e.Code); ok {
			return entry.Exit
		}
		return ExitInternal
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return ExitTimeout
	}
	if c, ok := explicit(err); ok && c == Transient {
		return ExitEnvironment
	}
	return ExitInternal
}
