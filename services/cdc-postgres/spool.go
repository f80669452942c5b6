package cdcpostgres

import (
	"context"

	"weir.dev/weir/pkg/cdc"
	"weir.dev/weir/pkg/cdc/halves"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/source"
	"weir.dev/weir/services/cdc-postgres/internal/core"
)

// spoolForm tells spools apart whose cells would be read otherwise.
func (p *copyPlan) spoolForm() string {
	return halves.SpoolForm("tuples of " + p.scan.List())
}

// keep stores a segment of a table without a key.
func (r *reader) keep(ctx context.Context, c *copied) error {
	p := halves.Piece{Chunk: c.Chunk, Step: c.step, Part: c.part, Form: c.plan.spoolForm(), Data: c.data, Rows: c.rows}
	r.input = true // nothing of it is emitted, or outlives this reader, before an epoch has it
	if c.step == halves.Filled {
		p.Mark = c.mark.Encode()
	}
	if err := r.spools.Keep(ctx, p); err != nil {
		return err
	}
	r.copier.recycle(c)
	return nil
}

// emitSegment emits a segment of a spool, and the spool is over with the last one.
func (r *reader) emitSegment(ctx context.Context, out source.Output, c *copied) error {
	rows := c.rows
	if err := r.emitChunk(ctx, out, c); err != nil {
		return err
	}
	r.spools.Emitted(c.ChunkID, c.spool, rows)
	return nil
}

// fetch reads the rest of a spool back, segment by segment.
func (c *copier) fetch(ctx context.Context, w cdc.Work) error {
	s, err := halves.DecodeSpool(w.Resume, c.target.Where())
	if err != nil {
		return err
	}
	t, plan, err := c.plan(ctx, w.Table)
	if err != nil {
		return c.target.Fault(err)
	}
	if plan.spoolForm() != s.Form {
		return columnsChanged(c.target.Where(), t)
	}
	mark, err := core.ParseMark(s.Mark)
	if err != nil {
		return fault.Wrap(err, fault.SrcPosition, c.target.Where(), err.Error())
	}
	return s.Fetch(ctx, c.store, func(data []byte, rows, first uint64, own *halves.Spool) error {
		got := &copied{Work: w, plan: plan, data: data, rows: rows, mark: mark, step: halves.Fetched, first: first, spool: own}
		if !c.send(ctx, got) {
			return ctx.Err()
		}
		return nil
	})
}
