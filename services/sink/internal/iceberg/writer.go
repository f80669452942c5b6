package iceberg

import (
	"context"
	"encoding/json"
	"fmt"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/sink/internal/stage"
)

const (
	// runLimit is the size at which a table's open rows become files, before the epoch ends. Files of it are not small. While they
	// are made, the rows are there once more as columns of the changelog and once as files.
	runLimit = 32 << 20
	// openLimit bounds what all tables together hold.
	openLimit = 64 << 20
)

// writer turns rows into data files, and into pieces on the bus where it cannot.
type writer struct {
	place
	tables  *tables
	codec   *stage.Codec
	changes stage.Fold

	open   stage.Runs
	pieces []sink.Piece
	staged int64
	files  int      // counts names of this attempt
	epoch  epoch.ID // of the rows that come; zero while nobody has said
}

// Number implements sink.Numbered.
func (w *writer) Number(e epoch.ID) { w.epoch = e }

// Write takes a batch of the open epoch.
func (w *writer) Write(ctx context.Context, b rows.Batch) error {
	if b.NumRows() == 0 {
		return nil
	}
	if err := w.check(&b); err != nil {
		return err
	}
	r, ended := w.open.Add(&b)
	if ended != nil {
		if err := w.seal(ctx, ended); err != nil {
			return err
		}
	}
	switch {
	case w.epoch == 0: // a changelog's rows say their epoch
		return nil
	case r.Raw >= runLimit:
		return w.seal(ctx, w.open.Take(r))
	case w.open.Raw() >= openLimit:
		return w.seal(ctx, w.open.TakeLargest())
	}
	return nil
}

// check refuses what the mode forbids, so that a job stops where the row is, not an epoch later.
func (w *writer) check(b *rows.Batch) error {
	if w.cfg.Sink.Mode != spec.Upsert {
		return nil
	}
	table := string(b.Schema().Table())
	where := w.where + ", table " + table
	if len(b.Schema().Key()) == 0 {
		return fault.New(fault.SinkNoKey, where, "the source declares no primary key or usable unique index for it")
	}
	if w.ice.Allows(spec.AllowTruncate) {
		return nil
	}
	for i := range b.NumRows() {
		if b.Op(i) == rows.OpTruncate {
			return fault.New(fault.SinkTruncateRefused, where, "TRUNCATE "+table)
		}
	}
	return nil
}

// seal turns a run into a piece.
func (w *writer) seal(ctx context.Context, r *stage.Run) error {
	parts, truncated, changes, err := w.fold(r)
	if err != nil {
		return fmt.Errorf("fold rows of %s: %w", r.Schema.Table(), err)
	}
	if truncated {
		if err := w.add(piece{Table: r.Schema.Table(), Truncate: true}, 0); err != nil {
			return err
		}
	}
	if len(parts) == 0 {
		return nil
	}
	p := piece{Table: r.Schema.Table(), Version: r.Schema.Version(), Changes: changes}
	layouts, err := w.tables.layouts(ctx, r.Schema)
	if err != nil {
		return w.translate(err)
	}
	if layouts != nil {
		if parts, err = w.write(ctx, layouts, parts, &p); err != nil {
			return w.translate(err)
		}
	}
	if len(parts) > 0 {
		if p.Parts, err = ship(ctx, w.cfg.Store, w.codec, r.Schema, parts); err != nil {
			return err
		}
	}
	var n uint64
	if w.cfg.Sink.Mode == spec.Changelog {
		n = changes
	} else {
		for _, b := range r.Batches {
			n += uint64(b.NumRows())
		}
	}
	return w.add(p, n)
}

// fold turns a run into the parts that the sink's tables need.
func (w *writer) fold(r *stage.Run) (parts []stage.Part, truncated bool, changes uint64, err error) {
	for _, role := range w.roles() {
		if role == current {
			var net []stage.Part
			if net, truncated, err = stage.Upserts(r.Batches); err != nil {
				return nil, false, 0, err
			}
			parts = append(parts, net...)
			continue
		}
		images, _, err := w.changes(r.Batches)
		if err != nil {
			return nil, false, 0, err
		}
		for _, p := range images {
			changes += uint64(p.Rows.NumRows())
		}
		parts = append(parts, images...)
	}
	return parts, truncated, changes, nil
}

// write puts parts into files of the warehouse, and returns those that only the committer can complete.
func (w *writer) write(ctx context.Context, layouts map[role]*layout, parts []stage.Part, p *piece) (rest []stage.Part, err error) {
	s := sortParts(parts)
	for _, r := range w.roles() {
		made, err := layouts[r].files(ctx, s, w.epoch)
		if err == nil {
			err = w.put(layouts[r], made, p)
		}
		if err != nil {
			return nil, err
		}
	}
	return s.rest, nil
}

// sorted are a piece's rows by what becomes of them.
type sorted struct {
	images []*rows.Batch // for the changelog
	keys   []*rows.Batch // whose older rows go
	whole  []*rows.Batch // rows that come
	rest   []stage.Part  // rows that lack columns
}

func sortParts(parts []stage.Part) (s sorted) {
	for _, p := range parts {
		switch p.Kind {
		case stage.Change:
			s.images = append(s.images, p.Rows)
		case stage.Delete:
			s.keys = append(s.keys, p.Rows)
		case stage.Fresh, stage.Upsert:
			s.keys, s.whole = append(s.keys, p.Rows), append(s.whole, p.Rows)
		case stage.Partial, stage.Move:
			s.rest = append(s.rest, p)
		}
	}
	return s
}

// put makes files safe for a piece. Their names say which attempt wrote them; nothing points at them before a commit does.
func (w *writer) put(l *layout, made []content, p *piece) error {
	for _, c := range made {
		w.files++
		path := stagedName(l.root, w.cfg.Identity, w.files)
		e, err := c.entry(path)
		if err != nil {
			return err
		}
		if err := w.fs.WriteFile(path, c.data); err != nil {
			return fmt.Errorf("write a file of %s: %w", e.ContentType(), err)
		}
		w.staged += int64(len(c.data))
		f, err := l.describe(e)
		if err != nil {
			return err
		}
		p.Files = append(p.Files, f)
	}
	return nil
}

func (w *writer) add(p piece, n uint64) error {
	p.Fence = w.cfg.Fence
	data, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("describe staged rows of %s: %w", p.Table, err)
	}
	out := sink.Piece{Data: data, Rows: n}
	if p.Parts != nil && p.Parts.Object != nil {
		out.Objects = append(out.Objects, *p.Parts.Object)
	}
	w.pieces = append(w.pieces, out)
	return nil
}

// Stage makes everything safe that Write took and describes it.
func (w *writer) Stage(ctx context.Context, e epoch.ID) ([]sink.Piece, error) {
	w.epoch = e
	for r := w.open.TakeFirst(); r != nil; r = w.open.TakeFirst() {
		if err := w.seal(ctx, r); err != nil {
			return nil, err
		}
	}
	pieces := w.pieces
	w.pieces, w.staged, w.epoch = nil, 0, 0
	return pieces, nil
}

// Pending is the size of the open epoch: raw bytes of open rows and those of files.
func (w *writer) Pending() int64 { return w.open.Raw() + w.staged }

// Close lets go of the catalog. Files that no commit names are collected by a later attempt.
func (w *writer) Close() error { return w.tables.close() }
