package mesh

import (
	"context"
	"testing"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/services/weir/verify/process"
)

// Metrics returns what a member says at /metrics.
func (m *Member) Metrics(ctx context.Context, tb testing.TB) string {
	tb.Helper()
	text, err := harness.Get(ctx, m.HTTP+"/metrics")
	if err != nil {
		tb.Fatalf("metrics of %s: %v", m.Node, err)
	}
	return string(text)
}

// Sum adds up every series of a metric in a member's /metrics, whatever its labels; zero when there is none yet.
func Sum(metrics, name string) float64 { return process.Sum(metrics, name) }
