package postgres

import (
	"context"

	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/sink/internal/stage"
)

// loaded is a piece whose parts are where the next statement needs them.
type loaded struct {
	schema *rows.Schema
	parts  []part
}

// part is a group: in a staging table, or still in memory for a COPY straight into the target.
type part struct {
	stage.Group
	staging string // empty: not staged yet
}

// partsOf are groups of which nothing is staged.
func partsOf(groups []stage.Group) []part {
	all := make([]part, len(groups))
	for i, g := range groups {
		all[i].Group = g
	}
	return all
}

// deletes takes out the states under the keys of a part's rows.
func (p part) deletes() part {
	return part{Group: stage.Group{Kind: stage.Delete, Batches: p.Batches, N: p.N}}
}

// groups are those of the parts, as if nothing were staged.
func (l loaded) groups() []stage.Group {
	all := make([]stage.Group, len(l.parts))
	for i, p := range l.parts {
		all[i] = p.Group
	}
	return all
}

// load groups a piece's batches by what is done with them and copies into staging tables what has to go there whatever
// the target looks like.
func (a *apply) load(ctx context.Context, o stage.Opened) (loaded, error) {
	if o.Err != nil {
		return loaded{}, o.Err
	}
	schema, err := o.Parts[0].Rows.Schema().Unmoved()
	if err != nil {
		return loaded{}, err
	}
	var groups []stage.Group
	for _, p := range o.Parts {
		batches, first := []*rows.Batch{p.Rows}, []int{0}
		if a.dead != nil {
			batches, first = a.dead.Without(schema, p.Rows)
		}
		for i, b := range batches {
			groups = stage.Gather(groups, p.Kind, b, first[i])
		}
	}
	l := loaded{schema: schema, parts: partsOf(groups)}
	for i := range l.parts {
		p := &l.parts[i]
		if p.Kind == stage.Fresh || p.Kind == stage.Change {
			continue
		}
		if a.dead == nil {
			if err := a.stage(ctx, p.Batches[0].Schema(), p); err != nil {
				return loaded{}, err
			}
			continue
		}
		err := a.savepoint(ctx, func() error { return a.stage(ctx, p.Batches[0].Schema(), p) })
		if err != nil {
			if !poisonous(err) {
				return loaded{}, err
			}
			p.staging = "" // part meets the row again and can tell which it is
		}
	}
	return l, nil
}

// stage copies a part into a staging table of its own.
func (a *apply) stage(ctx context.Context, schema *rows.Schema, p *part) error {
	keysOnly := p.Kind == stage.Delete
	name, err := a.table(ctx, schema, keysOnly)
	if err != nil {
		return err
	}
	a.staged[stagingName(schema, keysOnly, 0)]++
	change := a.c.cfg.Sink.Mode == spec.Changelog
	p.staging = name
	var want []int
	var columns []string
	for i, c := range schema.Columns() {
		if keysOnly && c.KeyPos == 0 || p.Lacks(i) {
			continue
		}
		want = append(want, i)
		columns = append(columns, stagingColumn(i))
	}
	epoch := int64(0)
	if change {
		epoch = a.epoch
		for _, c := range changeColumns {
			columns = append(columns, c.name)
		}
	}
	return a.copy(ctx, name, columns, newCopyStream(p.Batches, want, epoch))
}

// table makes the next staging table of a shape, when it is not there, and names it.
func (a *apply) table(ctx context.Context, schema *rows.Schema, keysOnly bool) (name string, err error) {
	name = stagingName(schema, keysOnly, a.staged[stagingName(schema, keysOnly, 0)])
	if a.s.staging[name] {
		return name, nil
	}
	if _, err := a.s.Exec(ctx, stagingDDL(schema, keysOnly, a.c.cfg.Sink.Mode == spec.Changelog, name)); err != nil {
		return "", err
	}
	a.s.staging[name] = true
	a.made = append(a.made, name)
	return name, nil
}

func (a *apply) copy(ctx context.Context, table string, columns []string, stream *copyStream) error {
	err := a.s.copyInto(ctx, table, columns, stream)
	a.nulled += stream.nulled
	return err
}
