package harness

import (
	"context"
	"errors"
	"testing"
)

// private is a server that belongs to one test.
type private interface {
	LogTail(n int) string
	Close() error
}

// lasting ends a server with its test, and shows the end of its log when that has failed. err is that of its start.
func lasting[S private](tb testing.TB, name string, server S, err error) S {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("end of %s's log:\n%s", name, server.LogTail(8<<10))
		}
		if err := server.Close(); err != nil {
			tb.Error(err)
		}
	})
	return server
}

// onFreePort starts a server. Another process may take the port between its choice and the start, hence the further tries.
func onFreePort(ctx context.Context, start func(port int) error) error {
	var failures []error
	for range 3 {
		port, err := FreePort(ctx)
		if err != nil {
			return err
		}
		if err = start(port); err == nil {
			return nil
		}
		failures = append(failures, err)
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(failures...)
}
