package harness

import (
	"context"
	"testing"
	"time"

	"weir.dev/weir/services/weir/verify/process"
)

// Await asks again and again until ask returns nil. When within is over it fails the test with ask's last error. what
// says in the failure what was waited for.
func Await(tb testing.TB, within time.Duration, what string, ask func(context.Context) error) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), within)
	defer cancel()
	if err := process.Await(ctx, nil, ask); err != nil {
		tb.Fatalf("wait for %s: %v", what, err)
	}
}

// Pause is [process.Pause]. It is for loads and for the moments of
// faults, never for a state that can be asked for: see [Await].
func Pause(ctx context.Context, d time.Duration) error { return process.Pause(ctx, d) }
