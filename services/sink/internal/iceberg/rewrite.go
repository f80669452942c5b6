package iceberg

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/iceberg-go"
	iceio "github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
)

// share is what a rewrite holds at once, about. Neither the size of the table nor the number of its deletes moves the sum.
type share struct {
	// group is what a row group that it writes has of decoded rows. The next rewrite reads one by one.
	group int64
	// batch goes from the reader to the writer at once.
	batch int64
	// keys of equality deletes: more of them come in turns.
	keys int
}

func usualShare() share { return share{group: groupBytes, batch: 1 << 19, keys: 32 << 20} }

// rewriting replaces files of a table by fewer ones with the same rows. The library's own compaction holds the rows of a whole file, a
// queue of batches behind it, and for each file the keys of all deletes that reach it; all of these grow with the table.
type rewriting struct {
	t     *table.Table
	fs    iceio.IO
	tasks []table.FileScanTask
	// deletes are the table's files of equality deletes by path.
	deletes map[string]iceberg.ManifestEntry
	// key are the columns by which this sink deletes, keyed their ids in order; none in a changelog.
	key   []string
	keyed []int
	share share
}

// planned reads which files a table has and which deletes reach them.
func planned(ctx context.Context, t *table.Table, fs iceio.IO) (*rewriting, error) {
	r := &rewriting{t: t, fs: fs, deletes: make(map[string]iceberg.ManifestEntry), share: usualShare()}
	for _, f := range t.Schema().Fields() {
		if slices.Contains(t.Schema().IdentifierFieldIDs, f.ID) {
			r.key, r.keyed = append(r.key, f.Name), append(r.keyed, f.ID)
		}
	}
	slices.Sort(r.keyed)
	var err error
	if r.tasks, err = t.Scan().PlanFiles(ctx); err != nil {
		return nil, err
	}
	if total(t.Metadata(), "total-delete-files") == 0 {
		return r, nil
	}
	list, err := t.CurrentSnapshot().Manifests(fs)
	if err != nil {
		return nil, err
	}
	for _, m := range list {
		if m.ManifestContent() != iceberg.ManifestContentDeletes {
			continue
		}
		for e, err := range m.Entries(fs, true) {
			if err != nil {
				return nil, err
			}
			if e.DataFile().ContentType() == iceberg.EntryContentEqDeletes {
				r.deletes[e.DataFile().FilePath()] = e
			}
		}
	}
	return r, nil
}

// dead are the deletes that reach no file but those that are rewritten. Keys that ascend are deleted before they come, by their
// inserts: such deletes reach nothing and cost no rewrite. A file of deletes by position, which other engines write, may be of many
// data files and is judged by all of them.
func (r *rewriting) dead(ctx context.Context, groups []table.CompactionTaskGroup) ([]iceberg.DataFile, error) {
	rewritten := make(map[string]struct{})
	for _, g := range groups {
		for _, task := range g.Tasks {
			rewritten[task.File.FilePath()] = struct{}{}
		}
	}
	positions, err := table.CollectDeadPositionDeletes(ctx, r.fs, r.t.CurrentSnapshot(), rewritten)
	if err != nil {
		return nil, err
	}
	return append(r.deadKeys(rewritten), positions...), nil
}

// deadKeys are those of the equality deletes.
func (r *rewriting) deadKeys(rewritten map[string]struct{}) []iceberg.DataFile {
	alive := make(map[string]bool)
	for _, task := range r.tasks {
		if _, ok := rewritten[task.File.FilePath()]; ok {
			continue
		}
		for _, d := range task.EqualityDeleteFiles {
			alive[d.FilePath()] = true
		}
	}
	var dead []iceberg.DataFile
	for _, path := range slices.Sorted(maps.Keys(r.deletes)) {
		if e := r.deletes[path]; !alive[path] && e.SequenceNum() >= 0 {
			dead = append(dead, e.DataFile())
		}
	}
	return dead
}

// ours reports whether a delete takes whole keys, wherever they are, as those of this sink do. Deletes of other engines are left to the
// library.
func (r *rewriting) ours(task table.FileScanTask, d iceberg.DataFile) bool {
	e, ok := r.deletes[d.FilePath()]
	return ok && e.SequenceNum() >= 0 && task.DataSequenceNumber != nil && len(r.keyed) > 0 && d.FileFormat() == iceberg.ParquetFile &&
		slices.Equal(slices.Sorted(slices.Values(d.EqualityFieldIDs())), r.keyed) && r.reachesAll(d)
}

// reachesAll reports whether a delete reaches every older row of its keys: it is of no partition, or the table has always been divided by
// the key alone.
func (r *rewriting) reachesAll(d iceberg.DataFile) bool {
	meta := r.t.Metadata()
	s := meta.PartitionSpecByID(int(d.SpecID()))
	switch {
	case s == nil:
		return false
	case s.IsUnpartitioned():
		return true
	}
	for _, f := range s.Fields() {
		if !slices.Contains(r.keyed, f.SourceID()) {
			return false
		}
	}
	return len(meta.PartitionSpecs()) == 1
}

// group writes the rows of a group's files anew, without those that are deleted.
func (r *rewriting) group(ctx context.Context, g table.CompactionTaskGroup) (table.CompactionGroupResult, error) {
	out := table.CompactionGroupResult{
		PartitionKey: g.PartitionKey, BytesBefore: g.TotalSizeBytes, SafeDeletionVectors: table.CollectSafeDeletionVectors(g.Tasks),
	}
	for _, task := range g.Tasks {
		out.OldDataFiles = append(out.OldDataFiles, task.File)
	}
	gone, err := r.gone(ctx, g.Tasks)
	if err != nil {
		return out, fmt.Errorf("read deletes: %w", err)
	}
	size, err := r.rowSize(ctx, g.Tasks[0])
	if err != nil {
		return out, err
	}
	schema, _, err := r.t.Scan().ReadTasks(ctx, nil)
	if err != nil {
		return out, err
	}
	made := table.WriteRecords(ctx, r.t, schema, r.living(ctx, g.Tasks, gone, int(min(max(r.share.batch/size, 1), 1<<13))),
		table.WithClusteredWrite(), table.WithTargetFileSize(2*full), table.WithRecordBatchBufferSize(1),
		table.WithParquetRowGroupLimit(int(rowGroup(r.share.group, size))))
	for f, err := range made {
		if err != nil {
			return out, fmt.Errorf("write rows anew: %w", err)
		}
		out.NewDataFiles = append(out.NewDataFiles, f)
		out.BytesAfter += f.FileSizeBytes()
	}
	return out, nil
}

// rowSize is about how many bytes a decoded row of a file has.
func (r *rewriting) rowSize(ctx context.Context, task table.FileScanTask) (int64, error) {
	for b, err := range r.read(ctx, task, 256) {
		if err != nil {
			return 0, err
		}
		size, n := heldBy(b), b.NumRows()
		b.Release()
		if n > 0 { // deletes that the library reads may have taken all of them
			return max(size/n, 1), nil
		}
	}
	return r.share.batch, nil // it has no rows left
}

// living yields the rows of files that no delete has taken.
func (r *rewriting) living(ctx context.Context, tasks []table.FileScanTask, gone map[string]marks, batch int) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		for _, task := range tasks {
			taken, at := gone[task.File.FilePath()], 0
			for b, err := range r.read(ctx, task, batch) {
				if err != nil {
					yield(nil, err)
					return
				}
				first := at
				at += int(b.NumRows())
				if taken != nil {
					if b, err = taken.without(ctx, b, first); err != nil {
						yield(nil, err)
						return
					}
				}
				if b.NumRows() > 0 && !yield(b, nil) {
					return
				}
			}
		}
	}
}

// read yields a file's rows, always in the same order, without those that the library's deletes have taken. Without columns it reads
// all of them. What the library reads ahead is a task, hence a task for each row group.
func (r *rewriting) read(ctx context.Context, task table.FileScanTask, batch int, columns ...string) iter.Seq2[arrow.RecordBatch, error] {
	options := []table.ScanOption{table.WithMaxConcurrency(1), table.WithArrowBatchSize(batch)}
	if len(columns) > 0 {
		options = append(options, table.WithSelectedFields(columns...))
	}
	task.EqualityDeleteFiles = slices.DeleteFunc(slices.Clone(task.EqualityDeleteFiles), func(d iceberg.DataFile) bool { return r.ours(task, d) })
	_, records, err := r.t.Scan(options...).ReadTasks(ctx, split(task))
	if err != nil {
		return func(yield func(arrow.RecordBatch, error) bool) { yield(nil, err) }
	}
	return records
}

// split makes a task of each row group.
func split(task table.FileScanTask) []table.FileScanTask {
	at := task.File.SplitOffsets()
	if len(at) < 2 || !slices.IsSorted(at) {
		return []table.FileScanTask{task}
	}
	out := make([]table.FileScanTask, len(at))
	for i := range at {
		end := task.File.FileSizeBytes()
		if i+1 < len(at) {
			end = at[i+1]
		}
		out[i] = task
		out[i].Start, out[i].Length = at[i], end-at[i]
	}
	return out
}
