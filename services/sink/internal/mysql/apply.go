package mysql

import (
	"context"
	"slices"
	"strings"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/sink/internal/stage"
	"weir.dev/weir/services/sink/internal/transact"
)

// version names a table in one schema version.
type version struct {
	table   rows.TableID
	version uint32
}

// apply is one commit's transaction. Its tables fit before it begins.
type apply struct {
	c     *Committer
	s     *session
	work  stage.Work
	epoch int64
	// dead are the rows that are left out; nil without dlq, and then a row that cannot be taken ends the commit.
	dead *transact.Dead
	// swept says that lines of the register were removed.
	swept bool
	// inUse counts the staging tables by shape that hold rows which are needed later.
	inUse  map[string]int
	buf    []byte
	rows   uint64
	nulled uint64
}

// run locks, decides, applies and moves the ledger on. It leaves COMMIT to its caller.
func (a *apply) run(ctx context.Context, commit sink.Commit) (sink.Result, error) {
	found, err := a.c.ledger.read(ctx, a.s, true)
	if err != nil {
		return sink.Result{}, err
	}
	// From here on the row is ours: no other attempt commits, and none takes the ledger over unseen.
	if done, err := a.c.who().Has(found, commit.Ref, commit.Prev); done || err != nil {
		return sink.Result{}, err
	}
	if err := a.truncate(ctx); err != nil {
		return sink.Result{}, err
	}
	reading, stop := context.WithCancel(ctx)
	pieces := a.work.Open(reading, a.c.cfg.Store, a.c.codec)
	defer func() {
		stop()
		for range pieces { // the codec is free again when the channel is closed
		}
	}()
	for o := range pieces {
		if o.Err != nil {
			return sink.Result{}, o.Err
		}
		if err := a.piece(ctx, o); err != nil {
			return sink.Result{}, err
		}
	}
	if err := ctx.Err(); err != nil {
		return sink.Result{}, err // the channel may have been closed early
	}
	result := sink.Result{Applied: true, Rows: a.rows}
	if a.dead != nil {
		if err := a.register(ctx); err != nil {
			return sink.Result{}, err
		}
		if a.epoch%logSlack == 0 {
			if a.swept, err = a.c.sweep.Run(ctx, a.c.cfg.Letters, a); err != nil {
				return sink.Result{}, err
			}
		}
		result.Rows, result.Dead = a.rows-a.dead.Found, a.dead.Found+a.dead.Left
	}
	return result, a.c.ledger.advance(ctx, a.s, entry{
		ref: commit.Ref, prev: commit.Prev, fence: a.c.cfg.Fence, positions: commit.Positions, rows: result.Rows, dead: result.Dead,
	})
}

// truncate empties tables that the source emptied within the epoch. Their rows of before are not in the commit. TRUNCATE would
// commit what is open.
func (a *apply) truncate(ctx context.Context) error {
	for _, id := range a.work.Truncates {
		sourceSchema, sourceTable := splitTable(id)
		name := a.c.my.TableName(sourceSchema, sourceTable)
		if a.s.folds {
			name = strings.ToLower(name)
		}
		if !a.c.my.Allows(spec.AllowTruncate) {
			return fault.New(fault.SinkTruncateRefused, a.c.at.Sink+", table "+string(id), "TRUNCATE "+string(id))
		}
		found, err := a.s.query(ctx, "SELECT 1 FROM information_schema.tables WHERE table_schema = "+text(a.c.ledger.database)+
			" AND table_name = "+text(name))
		if err != nil {
			return err
		}
		if len(found) == 0 {
			continue // no row of it was ever committed
		}
		if _, err := a.s.exec(ctx, "DELETE FROM "+a.c.ledger.name(name)); err != nil {
			return err
		}
	}
	return nil
}

// piece makes one piece visible within the transaction.
func (a *apply) piece(ctx context.Context, o stage.Opened) error {
	schema, err := o.Parts[0].Rows.Schema().Unmoved()
	if err != nil {
		return err
	}
	t := a.c.targets[version{schema.Table(), schema.Version()}]
	if t == nil || t.schema.Fingerprint() != schema.Fingerprint() {
		return fault.New(fault.SinkStageLost, a.c.at.Sink+", table "+string(schema.Table()), "two pieces of one version have different columns")
	}
	var groups []stage.Group
	for _, p := range o.Parts {
		batches, first := []*rows.Batch{p.Rows}, []int{0}
		if a.dead != nil {
			batches, first = a.dead.Without(schema, p.Rows)
		}
		for i, b := range batches {
			groups = stage.Gather(groups, p.Kind, b, first[i])
		}
	}
	clear(a.inUse)
	for _, g := range groups {
		a.rows += uint64(g.N)
	}
	if a.dead != nil && a.dead.Watches(schema.Table()) {
		for _, g := range groups {
			for n, b := range g.Batches {
				for i := range b.NumRows() {
					a.dead.Change(schema.Table(), stage.KeysOf(schema, b, i), g.First[n]+i, nil)
				}
			}
		}
	}
	if a.dead != nil && t.mode == spec.Append {
		if groups, err = a.lacking(ctx, t, groups); err != nil {
			return err
		}
	}
	if !t.guarded && a.dead == nil {
		return a.groups(ctx, t, groups)
	}
	// Rows of one piece may pass a unique value on to each other, and a set of rows has no order.
	err = a.savepoint(ctx, func() error { return a.groups(ctx, t, groups) })
	if a.buries(err) || hasNumber(err, duplicateEntry) && !moves(groups) {
		return a.replay(ctx, t, groups)
	}
	return err
}

// moves reports whether a piece has rows that take columns from the target. Such a piece cannot be replayed row by row: the
// rows it reads may be the ones it has just changed. Its violation stands.
func moves(groups []stage.Group) bool {
	return slices.ContainsFunc(groups, func(g stage.Group) bool { return g.Kind == stage.Move })
}

// step is a group and, of rows that moved, the staging table in which they are whole.
type step struct {
	stage.Group
	staged *staging
}

func (a *apply) groups(ctx context.Context, t *target, groups []stage.Group) error {
	steps := make([]step, len(groups))
	for i, g := range groups {
		steps[i].Group = g
		if g.Kind != stage.Move {
			continue
		}
		// Before anything else of the piece, so that they read what the source had before the change.
		if err := a.complete(ctx, t, &steps[i]); err != nil {
			return err
		}
	}
	for _, j := range steps {
		if err := a.group(ctx, t, j); err != nil {
			return err
		}
	}
	return nil
}

// complete stages rows that moved and fills the columns that they lack with those of the target's row under the old key.
func (a *apply) complete(ctx context.Context, t *target, j *step) error {
	st, err := a.stage(ctx, t, j.Group, t.written(nil))
	if err != nil {
		return err
	}
	hit, err := a.s.exec(ctx, t.completeSQL(st, j.Absent))
	if err != nil {
		return err
	}
	if hit != int64(j.N) {
		return fault.New(fault.SinkPartialMiss, a.c.at.Sink+", table "+t.plain,
			"a key changed, the source did not send column "+t.schema.Column(int(j.Absent[0])).Name+
				" and the target has no row under the old key", "table", string(t.schema.Table()))
	}
	j.staged = &st
	return nil
}

// group applies rows of one kind.
func (a *apply) group(ctx context.Context, t *target, j step) error {
	switch j.Kind {
	case stage.Change:
		return a.insert(ctx, t, j.Batches)
	case stage.Fresh, stage.Upsert:
		if !t.guarded {
			return a.insert(ctx, t, j.Batches)
		}
		st, err := a.stage(ctx, t, j.Group, t.written(nil))
		if err != nil {
			return err
		}
		return a.upsert(ctx, t, st, j.N)
	case stage.Move:
		return a.upsert(ctx, t, *j.staged, j.N)
	case stage.Delete:
		st, err := a.stage(ctx, t, j.Group, t.schema.Key())
		if err != nil {
			return err
		}
		_, err = a.s.exec(ctx, t.deleteSQL(st))
		return err
	case stage.Partial:
		return a.partial(ctx, t, j.Group)
	}
	return nil
}

// upsert moves whole rows from a staging table into the target: it changes those that are there, and inserts the others.
func (a *apply) upsert(ctx context.Context, t *target, st staging, n int) error {
	if sql := t.updateSQL(st, t.written(nil)); sql != "" {
		hit, err := a.s.exec(ctx, sql)
		if err != nil || hit == int64(n) {
			return err
		}
	}
	_, err := a.s.exec(ctx, t.missingSQL(st))
	return err
}

// partial changes rows of which columns were not sent.
func (a *apply) partial(ctx context.Context, t *target, g stage.Group) error {
	want := t.written(g.Absent)
	st, err := a.stage(ctx, t, g, want)
	if err != nil {
		return err
	}
	sql := t.updateSQL(st, want)
	if sql == "" {
		return nil
	}
	hit, err := a.s.exec(ctx, sql)
	if err != nil {
		return err
	}
	if hit != int64(g.N) {
		return fault.New(fault.SinkPartialMiss, a.c.at.Sink+", table "+t.plain, "the source did not send column "+
			t.schema.Column(int(g.Absent[0])).Name+" and the target has no row to complete", "table", string(t.schema.Table()))
	}
	return nil
}

// savepoint runs do and takes back what it did when it fails.
func (a *apply) savepoint(ctx context.Context, do func() error) error {
	if _, err := a.s.exec(ctx, "SAVEPOINT weir"); err != nil {
		return err
	}
	err := do()
	if err == nil {
		return nil // the next one of the name takes its place
	}
	if a.s.broken || ctx.Err() != nil || !poisonous(err) {
		return err
	}
	if _, undo := a.s.exec(ctx, "ROLLBACK TO SAVEPOINT weir"); undo != nil {
		return undo
	}
	return err
}
