package postgres

import (
	"context"
	"slices"

	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/sink/internal/stage"
)

// loaded is a piece whose parts are where the next statement needs them.
type loaded struct {
	schema *rows.Schema
	parts  []part
}

// part is rows of one kind: in a staging table, or still in memory for a COPY straight into the target.
type part struct {
	kind    stage.Kind
	batches []*rows.Batch
	// first are the indexes of the batches' first rows among all that the commit has for the table.
	first   []int
	absent  []uint16
	n       int
	staging string // empty: not staged yet
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
	l := loaded{schema: schema}
	for _, p := range o.Parts {
		batches, first := []*rows.Batch{p.Rows}, []int{0}
		if a.dead != nil {
			batches, first = a.dead.Without(schema, p.Rows)
		}
		for i, b := range batches {
			l.add(p.Kind, b, first[i])
		}
	}
	for i := range l.parts {
		p := &l.parts[i]
		if p.kind == stage.Fresh || p.kind == stage.Change {
			continue
		}
		if a.dead == nil {
			if err := a.stage(ctx, p.batches[0].Schema(), p); err != nil {
				return loaded{}, err
			}
			continue
		}
		err := a.savepoint(ctx, func() error { return a.stage(ctx, p.batches[0].Schema(), p) })
		if err != nil {
			if !poisonous(err) {
				return loaded{}, err
			}
			p.staging = "" // part meets the row again and can tell which it is
		}
	}
	return l, nil
}

// add groups batches by what is done with them.
func (l *loaded) add(kind stage.Kind, b *rows.Batch, first int) {
	var absent []uint16
	if kind == stage.Partial || kind == stage.Move {
		absent = b.Absent(0)
	}
	if n := len(l.parts); n > 0 && l.parts[n-1].kind == kind && slices.Equal(l.parts[n-1].absent, absent) {
		p := &l.parts[n-1]
		p.batches, p.first, p.n = append(p.batches, b), append(p.first, first), p.n+b.NumRows()
		return
	}
	l.parts = append(l.parts, part{kind: kind, batches: []*rows.Batch{b}, first: []int{first}, absent: absent, n: b.NumRows()})
}

// stage copies a part into a staging table of its own.
func (a *apply) stage(ctx context.Context, schema *rows.Schema, p *part) error {
	keysOnly := p.kind == stage.Delete
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
		if keysOnly && c.KeyPos == 0 || containsColumn(p.absent, i) {
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
	return a.copy(ctx, name, columns, newCopyStream(p.batches, want, epoch))
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
