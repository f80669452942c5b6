package iceberg

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
	"github.com/google/uuid"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/services/sink/internal/core"
	"weir.dev/weir/services/sink/internal/stage"
)

// build makes the tables' metadata for one epoch. What it writes is nothing until the catalog points at it.
type build struct {
	c      *committer
	commit sink.Commit
	parts  map[*piece][]stage.Part // of pieces on the bus
	done   []*built
	notes  []note
}

// built is a table with the epoch in it. Its state is what the catalog will point at, from what it points at now.
type built struct {
	state
	from *state
}

type note struct{ table, text string }

func (b *build) run(ctx context.Context, pieces []*piece) error {
	var order []rows.TableID
	of := make(map[rows.TableID][]*piece)
	b.parts = make(map[*piece][]stage.Part)
	for _, p := range pieces {
		if of[p.Table] == nil {
			order = append(order, p.Table)
		}
		of[p.Table] = append(of[p.Table], p)
		if p.Parts == nil {
			continue
		}
		var err error
		if b.parts[p], err = p.Parts.Open(ctx, b.c.cfg.Store, b.c.codec); err != nil {
			return err
		}
	}
	for _, id := range order {
		for _, r := range b.c.roles() {
			if err := b.table(ctx, r, id, of[id]); err != nil {
				return err
			}
		}
	}
	return b.clashes()
}

// clashes refuses two tables of one name in one epoch; those of different epochs are told by their owner.
func (b *build) clashes() error {
	seen := make(map[pointer]bool)
	for _, s := range b.done {
		if seen[s.pointer] {
			return fault.New(fault.SinkNameClash, b.c.where, fmt.Sprintf("two tables of the source go to %s.%s", s.namespace, s.name), "table", s.name)
		}
		seen[s.pointer] = true
	}
	return nil
}

// table builds one table of a source table.
func (b *build) table(ctx context.Context, r role, id rows.TableID, pieces []*piece) error {
	s, err := b.c.tables.load(ctx, r, id, b.c.states[pointer{b.c.ice.Namespace, b.c.name(r, id)}])
	if err != nil {
		return err
	}
	if s.meta == nil {
		if err := b.unknown(ctx, s, id); err != nil {
			return err
		}
	} else {
		if err := b.c.owned(s, id); err != nil {
			return err
		}
		if err := b.c.timely(s, time.Now()); err != nil {
			return err
		}
		if there, err := b.there(ctx, s); err != nil || there {
			return err
		}
	}
	ordered, truncate, err := inOrder(r, pieces)
	if err != nil {
		return fmt.Errorf("order epoch %s: %w", b.commit.Ref.Epoch, err)
	}
	w := &work{b: b, role: r, id: id, base: s, meta: s.meta, layouts: make(map[*piece]*layout)}
	if err := w.fit(ctx, ordered); err != nil {
		return err
	}
	if w.meta == nil { // a truncate of a table that nobody has seen a row of
		return w.rowless(ordered)
	}
	if w.tx, err = w.handle(w.base.at).NewTransactionOnBranchWithError(table.MainBranch); err != nil {
		return err
	}
	if truncate && !w.empty() {
		if err := w.tx.Delete(ctx, iceberg.AlwaysTrue{}, w.summary()); err != nil {
			return fmt.Errorf("truncate table %s: %w", s.name, err)
		}
	}
	if r == changelog {
		err = w.append(ctx, ordered)
	} else {
		err = w.upsert(ctx, ordered)
	}
	if err != nil {
		return fmt.Errorf("table %s: %w", s.name, err)
	}
	return w.finish(ctx)
}

// there reports whether a table that changes for itself has the epoch: an attempt that changed it did not come to the ledger. Where
// tables and ledger change at once, the ledger alone says so.
func (b *build) there(ctx context.Context, s *state) (bool, error) {
	c, ref := b.c, b.commit.Ref
	props, prefix := s.meta.Properties(), "weir."+c.cfg.Sink.Name+"."
	if !c.ordered() || props[prefix+"life"] != c.cfg.Life {
		return false, nil
	}
	found, err := refOf(props[prefix+"epoch"], props[prefix+"digest"])
	if err != nil {
		return false, fmt.Errorf("epoch of table %s: %w", s.name, err)
	}
	if found == ref || found.Epoch < ref.Epoch {
		return found == ref, nil
	}
	// The table is ahead. If a newer attempt is the reason, the ledger says that.
	row, err := c.tables.catalog.row(ctx)
	if err != nil {
		return false, err
	}
	v := core.Decide(row, c.cfg.Life, c.cfg.Fence, ref, b.commit.Prev)
	if v == core.Done {
		return false, errDone
	}
	if err := c.refusal(v, row, b.commit); err != nil {
		return false, err
	}
	return false, fault.New(fault.JobLedgerDiverged, c.where, fmt.Sprintf("table %s holds epoch %s %s; the commit is that of %s %s",
		s.name, found.Epoch, found.Digest, ref.Epoch, ref.Digest), "job", c.cfg.Job)
}

// inOrder puts a table's pieces into the order in which they take effect, without those that a truncate swallows.
func inOrder(r role, pieces []*piece) (ordered []*piece, truncate bool, err error) {
	if r == changelog {
		for _, p := range pieces {
			if !p.Truncate {
				ordered = append(ordered, p)
			}
		}
		slices.SortStableFunc(ordered, func(x, y *piece) int { return cmp.Compare(x.Version, y.Version) })
		return ordered, false, nil
	}
	items := make([]core.Piece, len(pieces))
	for i, p := range pieces {
		items[i] = core.Piece{Table: string(p.Table), Truncate: p.Truncate, Version: p.Version}
		items[i].Writer.Index = p.writer
	}
	tables, err := core.Order(items)
	if err != nil || len(tables) == 0 {
		return nil, false, err
	}
	for _, i := range tables[0].Pieces {
		ordered = append(ordered, pieces[i])
	}
	return ordered, tables[0].Truncate, nil
}

// work is one table while an epoch is put into it.
type work struct {
	b       *build
	role    role
	id      rows.TableID
	base    *state             // as the catalog has it
	meta    table.Metadata     // with what the epoch has changed so far; nil when the table is not there
	layouts map[*piece]*layout // of pieces whose rows the committer writes
	tx      *table.Transaction
}

// fit makes the table fit the rows that are on the bus, version by version. Those in files fit already.
func (w *work) fit(ctx context.Context, ordered []*piece) error {
	p := &w.b.c.place
	for _, x := range ordered {
		s := w.b.schema(x)
		if s == nil {
			continue
		}
		if w.meta == nil {
			if err := w.begin(ctx, s); err != nil {
				return err
			}
		} else {
			meta, notes, err := p.evolved(w.role, s, w.meta)
			if err != nil {
				return err
			}
			w.meta = meta
			for _, text := range notes {
				w.b.notes = append(w.b.notes, note{p.name(w.role, w.id), text})
			}
		}
		var err error
		if w.layouts[x], err = layoutOf(w.role, s, w.meta, p.where); err != nil {
			return err
		}
	}
	return nil
}

// begin makes the table.
func (w *work) begin(ctx context.Context, s *rows.Schema) error {
	first, err := w.b.c.create(w.role, s)
	if err != nil {
		return err
	}
	base := *w.base
	if base.at, base.meta, err = w.b.c.tables.catalog.begin(ctx, base.pointer, first); err != nil {
		return fmt.Errorf("make table %s: %w", base.name, err)
	}
	w.base, w.meta = &base, base.meta
	return nil
}

// schema is that of a piece's rows on the bus; nil when it has none.
func (b *build) schema(p *piece) *rows.Schema {
	for _, part := range b.parts[p] {
		if part.Kind != stage.Move {
			return part.Rows.Schema()
		}
		if s, err := part.Rows.Schema().Unmoved(); err == nil {
			return s
		}
	}
	return nil
}

func (w *work) handle(at string) *table.Table {
	name := w.b.c.name(w.role, w.id)
	return table.New(table.Identifier{w.b.c.ice.Namespace, name}, w.meta, at, w.b.c.files, nil)
}

// summary marks the epoch's snapshots. Nothing is decided by it: snapshots expire.
func (w *work) summary() iceberg.Properties {
	return iceberg.Properties{"weir.job": w.b.c.cfg.Job, "weir.sink": w.b.c.cfg.Sink.Name, "weir.epoch": w.b.commit.Ref.Epoch.String()}
}

// empty reports whether the table, as built so far, has no row.
func (w *work) empty() bool {
	st, err := w.tx.StagedTable()
	if err != nil {
		return false
	}
	s := st.CurrentSnapshot()
	return s == nil || (s.Summary != nil && s.Summary.Properties["total-data-files"] == "0")
}

// append adds every piece's images in one snapshot.
func (w *work) append(ctx context.Context, ordered []*piece) error {
	delta := w.tx.NewRowDelta(w.summary())
	n := 0
	for _, p := range ordered {
		data, _, err := w.staged(p)
		if err != nil {
			return err
		}
		if l := w.layouts[p]; l != nil {
			made, err := l.files(ctx, sortParts(w.b.parts[p]), p.epoch)
			if err != nil {
				return err
			}
			files, err := w.b.c.put(l, made)
			if err != nil {
				return err
			}
			data = append(data, files...)
		}
		n += len(data)
		delta.AddRows(data...)
	}
	if n == 0 {
		return nil
	}
	return delta.Commit(ctx)
}

// put makes files safe that the committer writes.
func (c *committer) put(l *layout, made []content) ([]iceberg.DataFile, error) {
	files := make([]iceberg.DataFile, len(made))
	for i, m := range made {
		path := fmt.Sprintf("%s/data/%s-%s-c-%s.parquet", l.root, c.cfg.Life, c.cfg.Fence, uuid.New())
		var err error
		if files[i], err = m.entry(path); err != nil {
			return nil, err
		}
		if err := c.fs.WriteFile(path, m.data); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// finish records in the table what it now holds, and writes its metadata.
func (w *work) finish(ctx context.Context) error {
	c, ref := w.b.c, w.b.commit.Ref
	prefix := "weir." + c.cfg.Sink.Name + "."
	if err := w.tx.SetProperties(iceberg.Properties{
		prefix + "job": c.cfg.Job, prefix + "life": c.cfg.Life, prefix + "fence": c.cfg.Fence.String(),
		prefix + "epoch": ref.Epoch.String(), prefix + "digest": ref.Digest,
	}); err != nil {
		return err
	}
	made, err := c.write(ctx, w.tx, w.base)
	if err != nil {
		return err
	}
	w.b.done = append(w.b.done, made)
	return nil
}

// logKeptFiles is how many earlier metadata files a table remembers and keeps.
const logKeptFiles = 10

// write makes of a transaction the state that follows s.
func (c *committer) write(ctx context.Context, tx *table.Transaction, s *state) (*built, error) {
	st, err := tx.StagedTable()
	if err != nil {
		return nil, err
	}
	mb, err := table.MetadataBuilderFromBase(st.Metadata(), "")
	if err != nil {
		return nil, err
	}
	out := &built{state: state{pointer: s.pointer, role: s.role}, from: s}
	if out.meta, err = mb.TrimMetadataLogs(logKeptFiles).Build(); err != nil {
		return nil, err
	}
	if out.at, err = c.tables.catalog.stage(ctx, s, out.meta); err != nil {
		return nil, fmt.Errorf("write metadata of table %s: %w", s.name, err)
	}
	return out, nil
}

// total reads a total of a snapshot's summary.
func total(m table.Metadata, key string) int64 {
	s := m.CurrentSnapshot()
	if s == nil || s.Summary == nil {
		return 0
	}
	n, _ := strconv.ParseInt(s.Summary.Properties[key], 10, 64)
	return n
}
