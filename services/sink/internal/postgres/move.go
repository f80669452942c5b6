package postgres

import (
	"context"
	"slices"
	"strings"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/pgcodec"
	"weir.dev/weir/services/sink/internal/stage"
)

// moves reports whether a piece has rows that take columns from the target. Such a piece cannot be replayed row by row: the
// rows it reads may be the ones it has just changed. Its violation stands.
func moves(parts []part) bool {
	return slices.ContainsFunc(parts, func(p part) bool { return p.Kind == stage.Move })
}

// complete fills the columns that staged rows lack with those of the target's row under the old key. It runs before
// anything else of the piece, so that it reads what the source had before the change; afterwards the rows are whole.
func (a *apply) complete(ctx context.Context, t *target, p *part) error {
	if p.staging == "" {
		if err := a.stage(ctx, p.Batches[0].Schema(), p); err != nil {
			return err
		}
	}
	hit, err := a.exec(ctx, t.completeSQL(p.staging, p.Absent))
	if err != nil {
		return err
	}
	if hit != int64(p.N) {
		column := t.schema.Column(int(p.Absent[0])).Name
		return fault.New(fault.SinkPartialMiss, a.c.at.Sink+", table "+t.plain,
			"a key changed, the source did not send column "+column+" and the target has no row under the old key",
			"table", string(t.schema.Table()))
	}
	return nil
}

// completeSQL copies the absent columns of the rows with the staged old keys into the staging table.
func (t *target) completeSQL(staging string, absent []uint16) string {
	var set, on []string
	for _, i := range absent {
		if t.columns[i].name == "" {
			continue
		}
		set = append(set, stagingColumn(int(i))+" = t."+t.columns[i].name+"::"+pgcodec.StageType(t.schema.Column(int(i))))
	}
	if len(set) == 0 {
		set = append(set, stagingColumn(0)+" = s."+stagingColumn(0)) // the rows are counted all the same
	}
	for n, i := range t.schema.Key() {
		on = append(on, "t."+t.columns[i].name+" = s."+stagingColumn(len(t.columns)+n)+t.columns[i].cast)
	}
	return "UPDATE " + staging + " s SET " + strings.Join(set, ", ") + " FROM " + t.name + " t WHERE " + strings.Join(on, " AND ")
}
