package iceberg

import (
	"context"

	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"

	"weir.dev/weir/pkg/fault"
)

// upsert replaces rows by key. Equality deletes reach only files of older snapshots, so what one writer staged for a table in turn
// becomes one snapshot after the other; writers have disjoint keys and share them, within one schema version: another one may have
// another key. Readers see the last one only.
func (w *work) upsert(ctx context.Context, ordered []*piece) error {
	var turns [][]*piece
	var version uint32
	first, next := 0, make(map[int]int) // turns: of the version, and of each writer
	for _, p := range ordered {
		if p.Version != version {
			version, first = p.Version, len(turns)
		}
		n := max(next[p.writer], first)
		next[p.writer] = n + 1
		if n == len(turns) {
			turns = append(turns, nil)
		}
		turns[n] = append(turns[n], p)
	}
	held, err := specsIn(w.meta, w.b.c.fs)
	if err != nil {
		return err
	}
	for _, turn := range turns {
		if err := w.turn(ctx, turn, held); err != nil {
			return err
		}
	}
	return nil
}

// turn adds what the writers staged in one turn. held are the partition specs of data files that are there.
func (w *work) turn(ctx context.Context, pieces []*piece, held map[int]bool) error {
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
	for _, d := range deletes {
		if !reaches(w.meta, d, held) {
			return fault.New(fault.SinkSchemaChange, w.b.c.where, "another engine has divided table "+w.base.name+" anew: it has data files of another partition spec "+
				"than the epoch's deletes, which do not reach them. Rewrite all data files in the partition spec that the table has now",
				"table", string(w.id), "choice", "ignore", "job", w.b.c.cfg.Job)
		}
	}
	for _, f := range data {
		held[int(f.SpecID())] = true
	}
	return w.tx.NewRowDelta(w.summary()).AddRows(data...).AddDeletes(deletes...).Commit(ctx)
}

// written are files of a piece's rows that came over the bus.
func (w *work) written(ctx context.Context, p *piece) (data, deletes []iceberg.DataFile, err error) {
	l := w.layouts[p]
	s := sortParts(w.b.parts[p])
	records, err := l.records(ctx, l.data, s.whole, 0)
	if err != nil {
		return nil, nil, err
	}
	for _, part := range s.rest {
		full, err := w.complete(ctx, l, part)
		if err != nil {
			return nil, nil, err
		}
		s.keys, records = append(s.keys, part.Rows), append(records, full)
	}
	if len(s.keys) == 0 {
		return nil, nil, nil
	}
	made, err := l.deletes(ctx, s.keys)
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

// specsIn are the partition specs in which a table has data files. One that has always been divided in one way needs no look.
func specsIn(meta table.Metadata, fs iceio.IO) (map[int]bool, error) {
	held := make(map[int]bool)
	s := meta.CurrentSnapshot()
	if s == nil || len(meta.PartitionSpecs()) == 1 {
		return held, nil
	}
	list, err := s.Manifests(fs)
	if err != nil {
		return nil, err
	}
	for _, m := range list {
		if m.ManifestContent() == iceberg.ManifestContentData && (m.HasAddedFiles() || m.HasExistingFiles()) {
			held[int(m.PartitionSpecID())] = true
		}
	}
	return held, nil
}

// reaches reports whether a delete of a key reaches its row in each of some partition specs: it is of no partition, or they are its own.
func reaches(meta table.Metadata, d iceberg.DataFile, held map[int]bool) bool {
	own := meta.PartitionSpecByID(int(d.SpecID()))
	if own != nil && own.IsUnpartitioned() {
		return true
	}
	for id := range held {
		if id != int(d.SpecID()) {
			return false
		}
	}
	return own != nil
}
