package mysql

import (
	"context"
	"strings"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/sink/internal/stage"
)

// statementBytes is how long a statement of rows becomes: long enough that its parts besides the rows do not matter.
const statementBytes = 1 << 20

// insert writes rows straight into the target.
func (a *apply) insert(ctx context.Context, t *target, batches []*rows.Batch) error {
	all := t.written(nil)
	bind := func(b *rows.Batch) []cell {
		cells := make([]cell, 0, len(all)+1)
		for _, i := range all {
			cells = append(cells, bindCell(b, i, t.columns[i].sqlType))
		}
		if t.mode == spec.Changelog {
			cells = append(cells, changeCells(b, a.epoch))
		}
		return cells
	}
	return a.send(ctx, t, t.insertHead(), t.insertTail(), batches, bind)
}

// stage writes rows into an empty staging table of their own.
func (a *apply) stage(ctx context.Context, t *target, g stage.Group, want []int) (staging, error) {
	moved := g.Kind == stage.Move
	shape := t.stagingOf(a.c.ledger.database, want, moved, 0, a.s.tableOptions())
	st := t.stagingOf(a.c.ledger.database, want, moved, a.inUse[shape.name], a.s.tableOptions())
	prepare := st.ddl
	if a.s.staging[st.name] {
		prepare = "DELETE FROM " + st.name
	}
	if _, err := a.s.exec(ctx, prepare); err != nil {
		return st, err
	}
	a.s.staging[st.name] = true
	if moved {
		a.inUse[shape.name]++
	}
	bind := func(b *rows.Batch) []cell {
		cells := make([]cell, 0, len(want)+len(t.schema.Key()))
		for _, i := range want {
			cells = append(cells, bindCell(b, i, t.columns[i].sqlType))
		}
		if moved {
			for n, i := range t.schema.Key() {
				cells = append(cells, bindCell(b, t.schema.NumColumns()+n, t.columns[i].sqlType))
			}
		}
		return cells
	}
	head := "INSERT INTO " + st.name + " (" + strings.Join(st.names(t), ", ") + ") VALUES "
	return st, a.send(ctx, t, head, "", g.Batches, bind)
}

// send writes rows between head and tail, as many to a statement as the server takes.
func (a *apply) send(ctx context.Context, t *target, head, tail string, batches []*rows.Batch, bind func(*rows.Batch) []cell) error {
	limit := a.s.packet - len(tail) - 1024
	buf := append(a.buf[:0], head...)
	flush := func(end int) error {
		// The comma behind the last row makes room for the tail.
		_, err := a.s.exec(ctx, string(buf[:end-1])+tail)
		return err
	}
	for _, b := range batches {
		cells := bind(b)
		for row := range b.NumRows() {
			at := len(buf)
			buf = append(buf, '(')
			for i, c := range cells {
				if i > 0 {
					buf = append(buf, ',')
				}
				var ok bool
				if buf, ok = c(buf, row); !ok {
					a.nulled++
				}
			}
			buf = append(buf, "),"...)
			if len(buf) > limit && at > len(head) {
				if err := flush(at); err != nil {
					return err
				}
				buf = append(buf[:len(head)], buf[at:]...)
			}
			if len(buf) > limit {
				return fault.New(fault.SinkRow, a.c.at.Sink+", table "+t.plain, "a row is longer than max_allowed_packet")
			}
			if len(buf) >= statementBytes {
				if err := flush(len(buf)); err != nil {
					return err
				}
				buf = buf[:len(head)]
			}
		}
	}
	a.buf = buf
	if len(buf) == len(head) {
		return nil
	}
	return flush(len(buf))
}
