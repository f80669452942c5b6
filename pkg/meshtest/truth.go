package meshtest

import (
	"encoding/json"
	"fmt"
	"strconv"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/plan"
	"weir.dev/weir/pkg/position"
	"weir.dev/weir/pkg/source/generator"
	"weir.dev/weir/pkg/spec"
)

// Generated is what a generator has made up to the positions of a manifest: the truth against which a target is judged.
// Per key the changes are in the source's order. Rows are left empty; compare them between runs, or by [Target.Rows].
func Generated(cfg spec.GeneratorSource, source string, at *epoch.Manifest) ([]Change, error) {
	q := generator.NewSequence(cfg)
	var all []Change
	for r := range cfg.Readers {
		st := at.Subtasks[plan.SubtaskID{Vertex: plan.VertexID(source), Index: r}]
		if st.Position.Type != position.Generator {
			return nil, fmt.Errorf("reader %d of %s has position %s", r, source, st.Position)
		}
		next, err := strconv.ParseInt(st.Position.Fields["next"], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("position of reader %d: %w", r, err)
		}
		for n := range next {
			row := q.At(r, n)
			key, err := json.Marshal([]int64{row.Key})
			if err != nil {
				return nil, err
			}
			all = append(all, Change{
				Table: string(generator.TableName(row.Table)), Key: string(key), Op: row.Op, Txn: row.Txn, Ord: row.Ord,
			})
		}
	}
	return all, nil
}
