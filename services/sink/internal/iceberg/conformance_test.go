//go:build !race

package iceberg

import (
	"testing"

	"weir.dev/weir/pkg/sink/sinktest"
	"weir.dev/weir/pkg/spec"
)

func TestConformanceOnREST(t *testing.T) {
	t.Parallel()
	for _, how := range []spec.RESTCommit{spec.CommitTransaction, spec.CommitOrdered} {
		t.Run(string(how), func(t *testing.T) {
			t.Parallel()
			sinktest.Run(t, func(t *testing.T) sinktest.Fixture {
				t.Helper()
				s := startREST(t).spec(t, how, func(i *spec.IcebergSink) {
					i.Changelog, i.Buckets, i.Allow = "{schema}_{table}_log", 3, []spec.Allowance{spec.AllowTruncate}
				})
				return sinktest.Fixture{
					Connector: Connector{}, Resolve: resolve, Spec: s, TinyEpochs: 10, Truncates: true, Read: newReader(t, s).read,
				}
			})
		})
	}
}
