package meshtest

import (
	"context"
	"fmt"
	"strconv"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/position"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/pkg/source/generator"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/pkg/verdict"
)

// Generated is what a generator has made up to the positions of a manifest: the truth against which a target is judged.
// Per key the changes are in the source's order. It is made by one reader after the other that read from the start
// without a mesh; so [verdict.FinalRows] holds the columns too against what a source without faults gives.
func Generated(cfg spec.GeneratorSource, name string, at *epoch.Manifest) ([]verdict.Change, error) {
	var all []verdict.Change
	for r := range cfg.Readers {
		st := at.Subtasks[plan.SubtaskID{Vertex: plan.VertexID(name), Index: r}]
		if st.Position.Type != position.Generator {
			return nil, fmt.Errorf("reader %d of %s has position %s", r, name, st.Position)
		}
		next, err := strconv.ParseInt(st.Position.Fields["next"], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("position of reader %d: %w", r, err)
		}
		if all, err = generated(all, cfg, r, next); err != nil {
			return nil, fmt.Errorf("rows of reader %d: %w", r, err)
		}
	}
	return all, nil
}

// generated appends the first n changes of reader r.
func generated(all []verdict.Change, cfg spec.GeneratorSource, r int, n int64) ([]verdict.Change, error) {
	if n == 0 {
		return all, nil
	}
	// The total of which this reader's share is n; rows do not depend on it, nor on the rate.
	cfg.Rate, cfg.Rows = 0, (n-1)*int64(cfg.Readers)+int64(r)+1
	ctx := context.Background()
	reader, err := generator.Connector{}.OpenReader(ctx, source.Config{
		Identity: source.Identity{Subtask: plan.SubtaskID{Index: r}}, Source: spec.Source{Config: &cfg},
		Readers: cfg.Readers, MaxTransactionRows: 1 << 20, Batch: 1 << 20,
	})
	if err != nil {
		return nil, err
	}
	defer func() { _ = reader.Close() }() // a generator has nothing to free
	to := &transcript{}
	for before := -1; len(to.changes) > before; {
		before = len(to.changes)
		if int64(before) == n {
			return append(all, to.changes...), nil
		}
		if _, err := reader.Poll(ctx, to, nil); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%d of %d", len(to.changes), n)
}

// transcript writes down what a reader emits.
type transcript struct{ changes []verdict.Change }

func (t *transcript) Emit(_ context.Context, b rows.Batch, _ position.Position) error {
	for i := range b.NumRows() {
		t.changes = append(t.changes, changeOf(&b, i))
	}
	return nil
}

func (t *transcript) Tell(context.Context, []byte) error { return nil }
