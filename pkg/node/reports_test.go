package node

import (
	"testing"

	"weir.dev/weir/pkg/config"
	"weir.dev/weir/pkg/job"
)

// Only the benchmark's own word leaves reports out, and then none is made.
func TestReportsAreLeftOutForBenchmarksOnly(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]bool{"": false, "on": false, "0": false, "off": true} {
		got := silent(config.Lookup{Env: func(name string) (string, bool) { return word, name == silencer && word != "" }})
		if got != want {
			t.Errorf("%q: silent is %t", word, got)
		}
	}
	if silent(config.Lookup{}) {
		t.Error("silent without an environment")
	}
	n := newNode(Config{Silent: true}, job.NodeLease{}, Mesh{}, nil, nil)
	n.report(t.Context())
	if !n.published.IsZero() {
		t.Error("a silent node has published")
	}
}
