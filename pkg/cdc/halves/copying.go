package halves

import (
	"weir.dev/weir/pkg/cdc"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/spec"
)

// Copying is how the first copy is divided among readers.
func Copying(s spec.Snapshot, readers int) cdc.Config {
	return cdc.Config{Mode: Mode(s), Readers: readers, ChunkRows: int64(s.ChunkRows)}
}

// Mode is whether the rows that exist before the log begins are copied.
func Mode(s spec.Snapshot) cdc.Mode {
	switch s.Mode {
	case spec.SnapshotNever:
		return cdc.Never
	case spec.SnapshotOnly:
		return cdc.Only
	case spec.SnapshotInitial:
	}
	return cdc.Initial
}

// Resume goes on with the copy of a durable epoch: from what the enumerator wrote of it inline and the parts of all readers. What
// is not readable is fault.SrcPosition.
func Resume(cfg cdc.Config, saved []byte, parts [][]byte, where string) (*cdc.Assigner, error) {
	head, segments, err := cdc.OpenInline(saved)
	var a *cdc.Assigner
	if err == nil {
		a, err = cdc.RestoreAssigner(cfg, head, segments, parts)
	}
	if err != nil {
		return nil, fault.Wrap(err, fault.SrcPosition, where, "the saved state of the copy is not readable")
	}
	return a, nil
}
