package cdcmysql

import (
	"context"
	"fmt"

	"weir.dev/weir/pkg/cdc"
	"weir.dev/weir/pkg/cdc/halves"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/source"
)

// pass hands over a segment of a table that is read as a whole, and begins the next one.
func (c *copier) pass(ctx context.Context, got *copied) (next *copied, err error) {
	if got.part+1 == halves.SpoolSegments {
		return nil, fault.New(fault.MYKeylessBusy, c.where, fmt.Sprintf("table %s has more than %d MiB and no key to read it by in parts",
			got.plan.name, int64(c.segment)*halves.SpoolSegments>>20), "table", got.plan.name.String())
	}
	got.step, got.room = halves.Fill, got.data
	if !c.send(ctx, got) {
		return nil, ctx.Err()
	}
	return &copied{Work: got.Work, plan: got.plan, step: halves.Fill, part: got.part + 1, data: c.spare.Take()}, nil
}

// spoolForm tells spools apart whose cells would be read otherwise.
func (p *scanPlan) spoolForm() string {
	return halves.SpoolForm(p.list() + " " + p.captured.Fingerprint)
}

// fetch reads the rest of a spool back, segment by segment.
func (c *copier) fetch(ctx context.Context, w cdc.Work) error {
	s, err := halves.DecodeSpool(w.Resume, c.where)
	if err != nil {
		return err
	}
	plan, err := c.plan(ctx, w.Table)
	if err != nil {
		return err
	}
	if plan.spoolForm() != s.Form {
		return columnsChanged(c.where, plan.captured)
	}
	return s.Fetch(ctx, c.store, func(data []byte, rows, first uint64, own *halves.Spool) error {
		got := &copied{Work: w, plan: plan, data: data, count: rows, mark: s.Mark, step: halves.Fetched, first: first, spool: own}
		if !c.send(ctx, got) {
			return ctx.Err()
		}
		return nil
	})
}

// keep stores a segment.
func (r *reader) keep(ctx context.Context, c *copied) error {
	p := halves.Piece{Chunk: c.Chunk, Step: c.step, Part: c.part, Mark: c.mark, Form: c.plan.spoolForm(), Data: c.data, Rows: c.count}
	r.input = true // nothing of it is emitted, or outlives this reader, before an epoch has it
	if err := r.spools.Keep(ctx, p); err != nil {
		return err
	}
	r.copier.recycle(c)
	return nil
}

// emitSegment emits a segment of a spool, and the spool is over with the last one.
func (r *reader) emitSegment(ctx context.Context, out source.Output, c *copied) error {
	if err := r.emitChunk(ctx, out, c); err != nil {
		return err
	}
	r.spools.Emitted(c.ChunkID, c.spool, c.count)
	return nil
}
