package app

import (
	"context"
	"errors"
	"os"
	"syscall"

	"weir.dev/weir/pkg/fault"
)

// ErrStopped is the cause of a context that ended because the process was asked to stop.
var ErrStopped = errors.New("stop was asked for")

// StoppedError is an [ErrStopped] that knows the signal.
type StoppedError struct{ Signal os.Signal }

// Error is that of ErrStopped.
func (StoppedError) Error() string { return ErrStopped.Error() }

// Is makes it an ErrStopped.
func (StoppedError) Is(target error) bool { return target == ErrStopped }

// ExitCode is that of a command which the signal interrupted.
func (s StoppedError) ExitCode() int { return forcedCode(s.Signal) }

// Signals returns a context that ends with a [StoppedError] as its cause at the first signal. At the second one force is called with
// the exit code of a forced stop, on a goroutine of its own. stop releases the goroutine; signals stay the caller's.
func Signals(parent context.Context, signals <-chan os.Signal, force func(code int)) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		select {
		case s := <-signals:
			cancel(StoppedError{s})
		case <-quit:
			return
		}
		select {
		case s := <-signals:
			force(forcedCode(s))
		case <-quit:
		}
	}()
	return ctx, func() {
		close(quit)
		<-done
		cancel(context.Canceled)
	}
}

func forcedCode(s os.Signal) int {
	if s == syscall.SIGTERM {
		return fault.ExitTerminate
	}
	return fault.ExitInterrupt
}
