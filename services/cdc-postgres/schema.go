package cdcpostgres

import (
	"errors"
	"fmt"
	"slices"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/cdc-postgres/internal/catalog"
	"weir.dev/weir/services/cdc-postgres/internal/core"
	"weir.dev/weir/services/cdc-postgres/internal/pgrepl"
)

// liveOf is what the catalog knows about a table's columns and the log does not.
func liveOf(t *catalog.Table) *core.Live {
	live := &core.Live{Width: t.Width, Storage: t.Storage}
	for _, c := range t.Columns {
		live.Columns = append(live.Columns, core.LiveColumn{
			Number: c.Number, Name: c.Name, Unsent: c.Generated, Fill: c.Fill, Default: c.Default, Required: c.NotNull,
		})
	}
	return live
}

// sent are the columns that leave the source.
func (d *described) sent() []core.Sent {
	sent := make([]core.Sent, len(d.columns))
	for i, c := range d.columns {
		sent[i] = core.Sent{Name: c.Name, Source: c.Source}
	}
	for _, m := range d.masks {
		sent[m.column].Masked = true
	}
	return sent
}

// evolved gives the columns of a table that is described anew the identities that they have had, and what rows from before
// have in those that are new. It says what cannot be followed.
func (o *opened) evolved(d *described, last core.Columns) (core.Columns, *described, error) {
	sent := d.sent()
	if len(last.List) == 0 {
		return core.First(sent, d.live), d, nil
	}
	next, err := core.Follow(last, sent, d.live)
	if err != nil {
		return next, nil, unlike(o.target, d, err)
	}
	for _, m := range d.masks {
		c := &next.List[m.column]
		if c.Fill != nil && m.mask != spec.MaskNull {
			return next, nil, differs(o.target, d, nil, fmt.Sprintf("column %q was added with a value for the rows that were there, and is masked", c.Name))
		}
		c.Fill = nil // it would get past the mask
	}
	now := *d
	now.columns = slices.Clone(d.columns)
	adopt(&now, next)
	return next, &now, nil
}

// unlike is the fault of columns that cannot be followed.
func unlike(target *pgrepl.Target, d *described, err error) error {
	if e, ok := errors.AsType[*core.DiffersError](err); ok {
		return differs(target, d, err, e.Why)
	}
	return fmt.Errorf("follow the columns of %s: %w", d.id(), err)
}

// differs is the fault of a table whose rows can no longer be followed in the log.
func differs(target *pgrepl.Target, d *described, err error, why string) error {
	table := string(d.id())
	e := fault.New(fault.PGTableDiffers, target.Where()+", table "+table, why, "job", target.Job(), "table", table)
	e.Err = err
	return e
}

// unchanged reports whether a table that is described again with the same columns still has the very same ones, and takes
// note of where its rows are now.
func (r *reader) unchanged(d *described) bool {
	version := r.schemas[d.id()]
	next, err := core.Follow(version.Columns, d.sent(), d.live)
	if err != nil || !slices.EqualFunc(next.List, version.Columns.List, func(a, b core.Column) bool { return a.ID == b.ID }) {
		return false // the next row says why
	}
	version.Columns = next
	r.schemas[d.id()] = version
	return true
}
