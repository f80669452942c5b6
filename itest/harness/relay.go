package harness

import (
	"fmt"
	"testing"

	"weir.dev/weir/services/weir/verify/relay"
)

// StartRelay puts a relay before servers, whose URLs have commas between them, until the test ends.
func StartRelay(tb testing.TB, servers string) *relay.Relay {
	tb.Helper()
	r, err := relay.Start(tb.Context(), servers)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(r.Close)
	return r
}

// StartCutter is StartRelay for a server on a loopback port.
func StartCutter(tb testing.TB, port int) *relay.Relay {
	tb.Helper()
	return StartRelay(tb, fmt.Sprintf("tcp://127.0.0.1:%d", port))
}
