package task

import (
	"cmp"
	"fmt"
	"slices"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/position"
	"weir.dev/weir/pkg/sink"
)

// chain finds what lies between a sink's ledger and a durable epoch. It is a passive value that asks for manifests one by
// one, newest first, along the sink's own prev links: epochs that staged nothing for the sink are not on them.
type chain struct {
	sink   string
	ledger epoch.Ref
	// blank says that the sink keeps no ledger: nothing of it is visible, so what the head calls committed, up to floor,
	// counts as its row. Manifests below that may be gone.
	blank bool
	floor epoch.ID
	// todo are the epochs to commit, oldest first.
	todo []sink.Commit
}

// next is the first manifest to read: the durable one itself, unless the ledger already holds it.
func (c *chain) next(durable epoch.Ref) (epoch.Ref, bool) {
	return durable, durable != c.ledger && !durable.IsZero() && !c.below(durable)
}

// below reports whether a sink without a ledger has nothing to do for a manifest and those before it.
func (c *chain) below(ref epoch.Ref) bool { return c.blank && ref.Epoch <= c.floor }

// add takes a manifest and returns the next one to read; more is false when the ledger's own row is reached. ref names
// the manifest's bytes. A chain that misses the ledger's row means that the two histories have parted.
func (c *chain) add(ref epoch.Ref, m *epoch.Manifest) (prev epoch.Ref, more bool, err error) {
	st := m.Sinks[c.sink]
	if len(st.Staged) > 0 {
		c.todo = slices.Insert(c.todo, 0, commitOf(ref, m, c.sink))
	}
	switch {
	case st.Prev == c.ledger, c.below(st.Prev):
		return epoch.Ref{}, false, nil
	case st.Prev.IsZero() || st.Prev.Epoch <= c.ledger.Epoch:
		return epoch.Ref{}, false, fault.New(fault.JobLedgerDiverged, "sinks."+c.sink, fmt.Sprintf(
			"the ledger holds epoch %s with digest %s, the chain goes from epoch %s to epoch %s with digest %s",
			c.ledger.Epoch, brief(c.ledger.Digest), ref.Epoch, st.Prev.Epoch, brief(st.Prev.Digest)))
	}
	return st.Prev, true, nil
}

// brief is enough of a digest for people.
func brief(digest string) string { return digest[:min(len(digest), 16)] }

// commitOf is the part of a manifest that one sink applies.
func commitOf(ref epoch.Ref, m *epoch.Manifest, name string) sink.Commit {
	st := m.Sinks[name]
	c := sink.Commit{Ref: ref, Prev: st.Prev, Staged: slices.Clone(st.Staged), Positions: make(map[string]position.Position)}
	// Stable: the pieces of one writer stay in the order in which it staged them.
	slices.SortStableFunc(c.Staged, func(a, b epoch.Staged) int {
		return cmp.Compare(a.Subtask.Index, b.Subtask.Index)
	})
	for id, at := range m.Positions() {
		c.Positions[id.String()] = at
	}
	return c
}
