package halves_test

import (
	"testing"

	"weir.dev/weir/pkg/cdc"
	"weir.dev/weir/pkg/cdc/halves"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/spec"
)

// What an enumerator wrote of its copy is resumed; anything else is refused with the place of the source.
func TestResume(t *testing.T) {
	t.Parallel()
	cfg := halves.Copying(spec.Snapshot{Mode: spec.SnapshotInitial, ChunkRows: 10}, 2)
	saved := cdc.NewAssigner(cfg, nil).Snapshot(1).Inline()
	a, err := halves.Resume(cfg, saved, nil, "sources.db")
	if err != nil || a.Log() != nil {
		t.Errorf("resumed: %v, the log at %q", err, a.Log())
	}
	for _, broken := range [][]byte{nil, {}, saved[:len(saved)-1], append([]byte{saved[0] + 1}, saved[1:]...)} {
		if a, err := halves.Resume(cfg, broken, nil, "sources.db"); fault.CodeOf(err) != fault.SrcPosition || a != nil {
			t.Errorf("%x: %v", broken, err)
		}
	}
}
