package iceberg

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/services/sink/internal/core"
)

// The debt that a table may have. Reading costs what files and deletes are there; writing costs what is rewritten to be rid of them.
const (
	// tier is how many files of about one size in one partition are made one of the next size, so a row is rewritten a number
	// of times that grows with the logarithm of the table. Of the smallest, which cost a reader as much as others and a rewrite next
	// to nothing, fewer are enough.
	tier      = 32
	smallTier = 8
	// small is the size of the smallest.
	small = 64 << 10
	// full is the size of a file that is never rewritten to be bigger.
	full = 64 << 20
	// leastDeletes is how many files of equality deletes the smallest table may have, up to fewDeletes, one more with every smallShare
	// of data: what they reach is rewritten at once. From there on every deleteShare lets it have one more, up to manyDeletes.
	leastDeletes = 2
	smallShare   = 2 << 20
	fewDeletes   = 20
	deleteShare  = 32 << 20
	manyDeletes  = 400
	// expiry is how many snapshots have to be out of date before any goes.
	expiry = 50
	// manifests is how many a table may have; every plan reads them all.
	manifests = 16
)

// The life of snapshots, as properties of a new table: whoever reads a snapshot for longer than that raises it there.
const (
	snapshotAge  = 5 * time.Minute
	snapshotsMin = 10
	// snapshotsMax is how many a table has that nobody has told to keep them for longer than snapshotAge. Every commit writes them all
	// and every reader reads them, so epochs shorter than a second would make both slow.
	snapshotsMax = 150
)

// upkeep remembers what maintenance left, so that it asks for more only when there is more.
type upkeep struct {
	files     map[pointer]int64
	manifests map[pointer]int
	swept     map[pointer]bool
}

func newUpkeep() upkeep {
	return upkeep{files: make(map[pointer]int64), manifests: make(map[pointer]int), swept: make(map[pointer]bool)}
}

// maintain pays the debt of tables that an epoch has changed. It is part of the committer's work, so that no rewrite races with an
// epoch. Rows do not change, and an error is a warning: the epoch is there, and the next one tries again.
func (c *committer) maintain(ctx context.Context, changed []*state, own bool) {
	for _, s := range changed {
		if err := c.rewrite(ctx, s); err != nil && !errors.Is(err, errMoved) {
			c.warn(ctx, s, "compaction", err)
		}
		if !own || c.upkeep.swept[s.pointer] || ctx.Err() != nil {
			continue
		}
		c.upkeep.swept[s.pointer] = true
		if err := c.sweep(ctx, c.states[s.pointer]); err != nil {
			c.warn(ctx, s, "orphans", err)
		}
	}
}

func (c *committer) warn(ctx context.Context, s *state, task string, err error) {
	if ctx.Err() == nil {
		c.cfg.Logger.WarnContext(ctx, "table not maintained",
			slog.String("table", s.name), slog.String("task", task), slog.String("error", fault.Scrub(err.Error())))
	}
}

// rewrite compacts a table's files and manifests and expires its snapshots, in one commit, when its debt asks for it.
func (c *committer) rewrite(ctx context.Context, s *state) error {
	s = c.states[s.pointer]
	t := table.New(table.Identifier{s.namespace, s.name}, s.meta, s.at, c.files, nil)
	tx, err := t.NewTransactionOnBranchWithError(table.MainBranch)
	if err != nil {
		return err
	}
	compacted, err := c.compact(ctx, t, tx)
	if err != nil {
		return fmt.Errorf("compact: %w", err)
	}
	c.upkeep.manifests[s.pointer]++
	merged := c.upkeep.manifests[s.pointer] >= manifests
	if merged {
		if _, err := tx.RewriteManifests(ctx); err != nil {
			return fmt.Errorf("rewrite manifests: %w", err)
		}
	}
	expired, err := expire(s.meta, tx)
	if err != nil {
		return fmt.Errorf("expire snapshots: %w", err)
	}
	if !compacted && !merged && len(expired) == 0 {
		return nil
	}
	b, err := c.write(ctx, tx, s)
	if err != nil {
		return err
	}
	_, err = c.tables.catalog.apply(ctx, change{
		moves: []move{{s, &b.state}},
		allow: func(found core.Row) error {
			if found.Life != c.cfg.Life || found.Fence != c.cfg.Fence {
				return fault.New(fault.SinkFenced, c.where, "a newer attempt keeps the table")
			}
			return nil
		},
	})
	if err != nil {
		return err // states still say what the catalog said before; if it moved on, the next commit notices
	}
	c.states[s.pointer] = &b.state
	if merged {
		c.upkeep.manifests[s.pointer] = 0
	}
	c.upkeep.files[s.pointer] = total(b.meta, "total-data-files")
	c.forget(ctx, s, &b.state)
	if len(expired) == 0 {
		return nil
	}
	after, err := c.afterwards(ctx, &b.state)
	if err != nil || after.meta == nil {
		return err
	}
	return table.NewRemoveSnapshotsUpdate(expired, true).PostCommit(ctx, t, table.New(t.Identifier(), after.meta, after.at, c.files, nil))
}

// afterwards is a table as a commit has left it. At a server it may have more snapshots than those that the commit knew: branches and
// tags do not conflict with it, and what they need has to stay.
func (c *committer) afterwards(ctx context.Context, s *state) (*state, error) {
	if !c.served() {
		return s, nil
	}
	now := &state{pointer: s.pointer, role: s.role}
	var err error
	if now.at, now.meta, err = c.tables.catalog.load(ctx, s.pointer, nil); err == nil && now.meta != nil {
		c.states[s.pointer] = now
	}
	return now, err
}

// compact stages the rewrite of files that debt asks for.
func (c *committer) compact(ctx context.Context, t *table.Table, tx *table.Transaction) (bool, error) {
	p := pointer{t.Identifier()[0], t.Identifier()[1]}
	files, deletes, bytes := total(t.Metadata(), "total-data-files"), total(t.Metadata(), "total-delete-files"), total(t.Metadata(), "total-files-size")
	indebted := deletes >= bearable(bytes, buckets(t.Metadata()))
	if !indebted && files-c.upkeep.files[p] < smallTier {
		return false, nil
	}
	c.upkeep.files[p] = files
	r, err := planned(ctx, t, c.fs)
	if err != nil {
		return false, err
	}
	groups := due(r.tasks, indebted)
	dead, err := r.dead(ctx, groups)
	if err != nil {
		return false, err
	}
	if len(groups)+len(dead) == 0 {
		return false, nil
	}
	made := tx.NewRewrite(iceberg.Properties{"weir.job": c.cfg.Job, "weir.sink": c.cfg.Sink.Name, "weir.compaction": "true"})
	for _, g := range groups {
		result, err := r.group(ctx, g)
		if err != nil {
			return false, err
		}
		made.ApplyResult(result)
	}
	for _, d := range dead {
		made.DeleteFile(d)
	}
	return true, made.Commit(ctx)
}

// bearable is how many files of equality deletes a table may have: what one may have that is as big as a part, for each part. A row is
// reached by those of its own part only.
func bearable(bytes, parts int64) int64 {
	part := bytes / parts
	return parts * min(leastDeletes+part/smallShare, fewDeletes+part/deleteShare, manyDeletes)
}

// buckets is into how many parts a table is divided by its key.
func buckets(meta table.Metadata) int64 {
	n, divided := int64(1), meta.PartitionSpec()
	for _, f := range divided.Fields() {
		if b, ok := f.Transform.(iceberg.BucketTransform); ok {
			n *= int64(max(b.NumBuckets, 1))
		}
	}
	return n
}

// due are the files that an epoch rewrites: for deletes when there are too many of them, else by their sizes.
func due(tasks []table.FileScanTask, indebted bool) []table.CompactionTaskGroup {
	if indebted && slices.ContainsFunc(tasks, reached) {
		return atOnce(owed(tasks))
	}
	return atOnce(tiers(tasks))
}

// tiers are files of about one size, when there are enough of them.
func tiers(tasks []table.FileScanTask) []table.CompactionTaskGroup {
	return append(
		grouped(tasks, func(t table.FileScanTask) (string, bool) {
			return fmt.Sprint(t.File.Partition()), t.File.FileSizeBytes() < small
		}, smallTier),
		grouped(tasks, func(t table.FileScanTask) (string, bool) {
			size := t.File.FileSizeBytes()
			level := 0
			for limit := int64(small); limit <= size; limit *= 8 {
				level++
			}
			return fmt.Sprintf("%v size %d", t.File.Partition(), level), small <= size && size < full
		}, tier)...)
}

func reached(t table.FileScanTask) bool { return len(t.EqualityDeleteFiles) > 0 }

// owed are all files that equality deletes reach, and small ones with them, the oldest first: a delete dies with the last file that is
// older than it.
func owed(tasks []table.FileScanTask) []table.CompactionTaskGroup {
	age := func(t table.FileScanTask) int64 {
		if t.DataSequenceNumber == nil {
			return 0
		}
		return *t.DataSequenceNumber
	}
	tasks = slices.SortedStableFunc(slices.Values(tasks), func(x, y table.FileScanTask) int { return cmp.Compare(age(x), age(y)) })
	return grouped(tasks, func(t table.FileScanTask) (string, bool) {
		return fmt.Sprint(t.File.Partition()), reached(t) || t.File.FileSizeBytes() < full
	}, 1)
}

// atOnce is as much of groups as one epoch pays for, so that the next one does not wait for the whole table. The rest is owed still.
func atOnce(groups []table.CompactionTaskGroup) (some []table.CompactionTaskGroup) {
	left := int64(full)
	for _, g := range groups {
		var part table.CompactionTaskGroup
		part.PartitionKey = g.PartitionKey
		for _, t := range g.Tasks {
			if left <= 0 {
				break
			}
			part.Tasks = append(part.Tasks, t)
			part.TotalSizeBytes += t.File.FileSizeBytes()
			left -= t.File.FileSizeBytes()
		}
		if len(part.Tasks) > 1 || slices.ContainsFunc(part.Tasks, reached) {
			some = append(some, part)
		}
	}
	return some
}

func grouped(tasks []table.FileScanTask, key func(table.FileScanTask) (string, bool), least int) []table.CompactionTaskGroup {
	var groups []table.CompactionTaskGroup
	at := make(map[string]int)
	for _, t := range tasks {
		k, wanted := key(t)
		if !wanted {
			continue
		}
		i, ok := at[k]
		if !ok {
			i = len(groups)
			at[k] = i
			groups = append(groups, table.CompactionTaskGroup{PartitionKey: k})
		}
		groups[i].Tasks = append(groups[i].Tasks, t)
		groups[i].TotalSizeBytes += t.File.FileSizeBytes()
	}
	return slices.DeleteFunc(groups, func(g table.CompactionTaskGroup) bool { return len(g.Tasks) < least })
}

// expire stages the end of snapshots by the table's own properties, once there are enough, and returns which.
func expire(meta table.Metadata, tx *table.Transaction) ([]int64, error) {
	props := meta.Properties()
	age := time.Duration(props.GetInt64(table.MaxSnapshotAgeMsKey, snapshotAge.Milliseconds())) * time.Millisecond
	limit := time.Now().Add(-age).UnixMilli()
	var made []int64
	for _, s := range meta.Snapshots() {
		made = append(made, s.TimestampMs)
	}
	slices.Sort(made)
	if n := len(made); n > snapshotsMax && age <= snapshotAge {
		limit = max(limit, made[n-snapshotsMax+expiry])
	}
	old, _ := slices.BinarySearch(made, limit)
	if old < expiry+props.GetInt(table.MinSnapshotsToKeepKey, snapshotsMin) {
		return nil, nil
	}
	had := make(map[int64]bool)
	for _, s := range meta.Snapshots() {
		had[s.SnapshotID] = true
	}
	older := time.Since(time.UnixMilli(limit)) + 50*time.Millisecond // the library's clock is a little later than this one
	if err := tx.ExpireSnapshots(table.WithPostCommit(false), table.WithOlderThan(older)); err != nil {
		return nil, err
	}
	st, err := tx.StagedTable()
	if err != nil {
		return nil, err
	}
	for _, s := range st.Metadata().Snapshots() {
		delete(had, s.SnapshotID)
	}
	var gone []int64
	for id := range had {
		gone = append(gone, id)
	}
	return gone, nil
}

// forget removes metadata files that a table no longer remembers. Those of a server are the server's.
func (c *committer) forget(ctx context.Context, before, after *state) {
	if before.meta == nil || c.served() {
		return
	}
	kept := map[string]bool{after.at: true}
	for e := range after.meta.PreviousFiles() {
		kept[e.MetadataFile] = true
	}
	for e := range before.meta.PreviousFiles() {
		if kept[e.MetadataFile] {
			continue
		}
		if err := c.fs.Remove(e.MetadataFile); err != nil && !gone(err) {
			c.warn(ctx, after, "old metadata", err)
		}
	}
}
