package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/sink/internal/core"
	"weir.dev/weir/services/sink/internal/durable"
	"weir.dev/weir/services/sink/internal/stage"
)

// writer writes data files: for each table and schema version one, until Stage.
type writer struct {
	place
	cfg   sink.Config
	files int // counts names of this attempt

	open  map[string]*dataFile // by directory
	order []*dataFile          // in the order of their first row, those that a schema change ended included
	fold  stage.Fold
}

// dataFile is one file being written.
type dataFile struct {
	table rows.TableID
	dir   string
	name  string // .open-…tmp
	f     *os.File
	shape shape
	enc   encoder
	rows  uint64
	size  int64 // estimated until it is closed
	ended bool
}

// encoder writes batches of one shape into a file.
type encoder interface {
	write(b *rows.Batch) error
	// close writes the end of the file; the file itself stays open.
	close() error
}

// described is a staged file, as the committer needs it.
type described struct {
	Table rows.TableID `json:"table"`
	Name  string       `json:"name"` // in the table's directory
	Rows  uint64       `json:"rows"`
	Bytes int64        `json:"bytes"`
}

// sweep removes half written files of older attempts of this writer.
func (w *writer) sweep() error {
	found, err := filepath.Glob(filepath.Join(globEscape(w.path), "*", fmt.Sprintf("%s%d-*", openPrefix, w.cfg.Subtask.Index)))
	if err != nil {
		return err
	}
	for _, name := range found {
		rest := strings.TrimPrefix(filepath.Base(name), fmt.Sprintf("%s%d-", openPrefix, w.cfg.Subtask.Index))
		digits, _, _ := strings.Cut(rest, "-")
		if theirs, err := fence.ParseToken(digits); err != nil || theirs >= w.cfg.Fence {
			continue
		}
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// globEscape keeps a user's path from being read as a pattern.
func globEscape(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// Write appends the rows that the mode keeps to their table's file.
func (w *writer) Write(_ context.Context, batch rows.Batch) error {
	b := &batch
	if w.cfg.Sink.Mode == spec.Append {
		if column, ok := core.Lacking(b); ok {
			return fault.New(fault.SinkPartialImage, w.where+", table "+string(b.Schema().Table()),
				"column "+column+" was not sent", "table", string(b.Schema().Table()))
		}
	}
	parts, _, err := w.fold([]*rows.Batch{b})
	if err != nil {
		return err
	}
	for _, p := range parts {
		f, err := w.fileFor(p.Rows)
		if err != nil {
			return w.translate(err)
		}
		if err := f.enc.write(p.Rows); err != nil {
			return w.translate(fmt.Errorf("write rows of %s: %w", f.table, err))
		}
		f.rows += uint64(p.Rows.NumRows())
		f.size += stage.SizeOf(p.Rows)
	}
	return nil
}

// fileFor finds the open file of a table or opens one. A file has one schema and one set of columns.
func (w *writer) fileFor(b *rows.Batch) (*dataFile, error) {
	dir := tableDir(w.path, b.Schema().Table())
	s := shapeOf(b, w.cfg.Sink.Mode)
	if f := w.open[dir]; f != nil {
		if f.shape.holds(s) {
			return f, nil
		}
		if err := f.end(); err != nil {
			return nil, err
		}
		s = s.with(f.shape)
	}
	if err := durable.MakeDir(dir); err != nil {
		return nil, err
	}
	w.files++
	f := &dataFile{table: b.Schema().Table(), dir: dir, shape: s}
	f.name = fmt.Sprintf("%s%d-%s-%d.%s%s", openPrefix, w.cfg.Subtask.Index, w.cfg.Fence, w.files, w.format, tmpSuffix)
	var err error
	if f.f, err = os.Create(filepath.Join(dir, f.name)); err != nil {
		return nil, err
	}
	w.open[dir] = f
	w.order = append(w.order, f)
	switch w.format {
	case spec.JSONLines:
		f.enc = newLines(f.f, w.cfg.Sink.Mode)
	case spec.Parquet:
		f.enc, err = newParquet(f.f, s)
	}
	return f, err
}

// end completes a file and makes its bytes safe.
func (f *dataFile) end() error {
	if f.ended {
		return nil
	}
	f.ended = true
	if err := errors.Join(f.enc.close(), f.f.Sync()); err != nil {
		return err
	}
	info, err := f.f.Stat()
	if err != nil {
		return err
	}
	f.size = info.Size()
	return f.f.Close()
}

// Stage ends the open files, names them for the epoch and makes bytes and names safe.
func (w *writer) Stage(_ context.Context, e epoch.ID) ([]sink.Piece, error) {
	pieces := make([]sink.Piece, 0, len(w.order))
	dirs := make(map[string]bool)
	for _, f := range w.order {
		if err := f.end(); err != nil {
			return nil, w.translate(fmt.Errorf("stage rows of %s: %w", f.table, err))
		}
		name := fmt.Sprintf("%s%s-%s", stagePrefix, e, strings.TrimPrefix(f.name, openPrefix))
		if err := os.Rename(filepath.Join(f.dir, f.name), filepath.Join(f.dir, name)); err != nil {
			return nil, w.translate(err)
		}
		f.name = name
		dirs[f.dir] = true
		data, err := json.Marshal(described{Table: f.table, Name: name, Rows: f.rows, Bytes: f.size})
		if err != nil {
			return nil, fmt.Errorf("describe staged rows of %s: %w", f.table, err)
		}
		pieces = append(pieces, sink.Piece{Data: data, Rows: f.rows})
	}
	for dir := range dirs {
		if err := durable.SyncDir(dir); err != nil {
			return nil, w.translate(err)
		}
	}
	clear(w.open)
	w.order = nil
	return pieces, nil
}

// Pending is the size of the open files before compression.
func (w *writer) Pending() int64 {
	var n int64
	for _, f := range w.order {
		n += f.size
	}
	return n
}

// Close removes files that no Stage has named.
func (w *writer) Close() error {
	var errs []error
	for _, f := range w.order {
		if !f.ended {
			errs = append(errs, f.f.Close())
		}
		if err := os.Remove(filepath.Join(f.dir, f.name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	w.order = nil
	return w.translate(errors.Join(errs...))
}
