package node

import (
	"slices"
	"testing"

	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/source"
)

// The flows of a node are in the suite of the assembled mesh, services/weir/internal/bubble.

func TestCapabilitiesAreOrdered(t *testing.T) {
	t.Parallel()
	c := Config{
		Sources: map[string]source.Connector{"postgres": nil, "generator": nil},
		Sinks:   map[string]sink.Connector{"files": nil},
	}
	want := []string{"sink:files", "source:generator", "source:postgres"}
	if got := c.capabilities(); !slices.Equal(got, want) {
		t.Errorf("capabilities %v, want %v", got, want)
	}
}
