package iceberg

import (
	"context"

	"github.com/apache/iceberg-go"
)

// upsert replaces rows by key. Equality deletes reach only files of older snapshots, so what one writer staged for a table in turn
// becomes one snapshot after the other; writers have disjoint keys and share them. Readers see the last one only.
func (w *work) upsert(ctx context.Context, ordered []*piece) error {
	var turns [][]*piece
	next := make(map[int]int)
	for _, p := range ordered {
		n := next[p.writer]
		next[p.writer]++
		if n == len(turns) {
			turns = append(turns, nil)
		}
		turns[n] = append(turns[n], p)
	}
	for _, turn := range turns {
		if err := w.turn(ctx, turn); err != nil {
			return err
		}
	}
	return nil
}

func (w *work) turn(ctx context.Context, pieces []*piece) error {
	var data, deletes []iceberg.DataFile
	for _, p := range pieces {
		d, k, err := w.staged(p)
		if err != nil {
			return err
		}
		data, deletes = append(data, d...), append(deletes, k...)
		if w.layouts[p] == nil {
			continue
		}
		if d, k, err = w.written(ctx, p); err != nil {
			return err
		}
		data, deletes = append(data, d...), append(deletes, k...)
	}
	if w.empty() {
		deletes = nil // there is nothing that they could reach
	}
	if len(data)+len(deletes) == 0 {
		return nil
	}
	return w.tx.NewRowDelta(w.summary()).AddRows(data...).AddDeletes(deletes...).Commit(ctx)
}

// written are files of a piece's rows that came over the bus.
func (w *work) written(ctx context.Context, p *piece) (data, deletes []iceberg.DataFile, err error) {
	l := w.layouts[p]
	_, keys, whole, rest := sortParts(w.b.parts[p])
	records, err := l.records(ctx, l.data, whole, 0)
	if err != nil {
		return nil, nil, err
	}
	for _, part := range rest {
		full, err := w.complete(ctx, l, part)
		if err != nil {
			return nil, nil, err
		}
		keys, records = append(keys, part.Rows), append(records, full)
	}
	if len(keys) == 0 {
		return nil, nil, nil
	}
	made, err := l.deletes(ctx, keys)
	if err != nil {
		return nil, nil, err
	}
	if deletes, err = w.b.c.put(l, made); err != nil {
		return nil, nil, err
	}
	if made, err = l.divided(ctx, l.data, iceberg.EntryContentData, records); err != nil {
		return nil, nil, err
	}
	data, err = w.b.c.put(l, made)
	return data, deletes, err
}
