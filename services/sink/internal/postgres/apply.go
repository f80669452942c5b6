package postgres

import (
	"context"
	"maps"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/sink/internal/stage"
	"weir.dev/weir/services/sink/internal/transact"
)

// preload and preloadBytes are how many rows are read back, and copied into staging tables where they go through those, before
// the ledger row is locked. Up to them the lock is held only for the statements that move the rows on; beyond them memory and
// temporary space decide, and a zombie's lock is ended anyway.
const (
	preload      = 400_000
	preloadBytes = 32 << 20
)

// apply is one commit's transaction. Everything it learns is the committer's only once it has committed.
type apply struct {
	c     *Committer
	s     *session
	work  stage.Work
	epoch int64

	targets map[rows.TableID]*target
	// dead are the rows that are left out; nil without dlq, and then a row that cannot be taken ends the commit.
	dead *dead
	// swept says that lines of the register were removed.
	swept bool
	// strict checks constraints that could wait for the end with each statement, so that the row is known.
	strict bool
	// staged counts the staging tables in use by shape, made lists those that this transaction created.
	staged map[string]int
	made   []string
	rows   uint64
	nulled uint64
}

// begin opens the transaction and does everything but COMMIT in it; after an error there is none.
func (a *apply) begin(ctx context.Context, commit sink.Commit) (sink.Result, error) {
	if a.c.cfg.Letters != nil {
		var err error
		if a.c.open == nil {
			if a.c.open, err = a.c.ledger.readOpen(ctx, a.s); err != nil {
				return sink.Result{}, err
			}
		}
		a.dead = new(dead)
		if a.dead.Dead, err = transact.NewDead(ctx, a.c.cfg, commit, a.c.open, a.c.codec); err != nil {
			return sink.Result{}, err
		}
	}
	if _, err := a.s.Exec(ctx, "BEGIN"); err != nil {
		return sink.Result{}, err
	}
	result, err := a.run(ctx, commit)
	if err != nil {
		a.rollback(ctx)
	}
	return result, err
}

// run loads, locks, decides, applies and moves the ledger on. It leaves COMMIT to its caller.
func (a *apply) run(ctx context.Context, commit sink.Commit) (sink.Result, error) {
	a.targets, a.staged = make(map[rows.TableID]*target), make(map[string]int)
	if a.strict {
		if _, err := a.s.Exec(ctx, "SET CONSTRAINTS ALL IMMEDIATE"); err != nil {
			return sink.Result{}, err
		}
	}
	reading, stop := context.WithCancel(ctx)
	pieces := a.work.Open(reading, a.c.cfg.Store, a.c.codec)
	defer func() {
		stop()
		for range pieces { // the codec is free again when the channel is closed
		}
	}()
	var early []loaded
	for n, size := 0, int64(0); n < preload && size < preloadBytes; {
		o, ok := <-pieces
		if !ok {
			break
		}
		l, err := a.load(ctx, o)
		if err != nil {
			return sink.Result{}, err
		}
		early = append(early, l)
		for _, p := range l.parts {
			n += p.N
			for _, b := range p.Batches {
				size += stage.SizeOf(b)
			}
		}
	}
	// From here on the row is ours: no other attempt commits, and none takes the ledger over unseen.
	found, err := a.c.ledger.read(ctx, a.s, true)
	if err != nil {
		return sink.Result{}, err
	}
	if done, err := a.c.who().Has(found, commit.Ref, commit.Prev); done || err != nil {
		return sink.Result{}, err
	}
	if err := a.truncate(ctx); err != nil {
		return sink.Result{}, err
	}
	for i := range early {
		l := early[i]
		early[i] = loaded{} // its rows are garbage once they are applied
		if err := a.apply(ctx, l); err != nil {
			return sink.Result{}, err
		}
	}
	for o := range pieces {
		l, err := a.load(ctx, o)
		if err != nil {
			return sink.Result{}, err
		}
		if err := a.apply(ctx, l); err != nil {
			return sink.Result{}, err
		}
	}
	if err := ctx.Err(); err != nil {
		return sink.Result{}, err // the channel may have been closed early
	}
	result := sink.Result{Applied: true, Rows: a.rows}
	if a.dead != nil {
		if err := a.settled(ctx); err != nil {
			return sink.Result{}, err
		}
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

// rollback undoes what only the transaction knew. A session that cannot roll back is found broken by its next use.
func (a *apply) rollback(ctx context.Context) {
	for _, name := range a.made {
		delete(a.s.staging, name)
	}
	if !a.s.IsClosed() && ctx.Err() == nil {
		_, _ = a.s.Exec(ctx, "ROLLBACK")
	}
}

// truncate empties tables that the source emptied within the epoch. Their rows of before are not in the commit.
func (a *apply) truncate(ctx context.Context) error {
	for _, id := range a.work.Truncates {
		sourceSchema, sourceTable := splitTable(id)
		name := a.c.pg.TableName(sourceSchema, sourceTable)
		if !a.c.pg.Allows(spec.AllowTruncate) {
			return fault.New(fault.SinkTruncateRefused, a.c.at.Sink+", table "+string(id), "TRUNCATE "+string(id))
		}
		found, err := examine(ctx, a.s, a.c.ledger.schema, name)
		if err != nil {
			return err
		}
		if found == nil {
			continue // no row of it was ever committed
		}
		if _, err := a.s.Exec(ctx, "TRUNCATE "+a.c.ledger.name(name)); err != nil {
			return err
		}
	}
	return nil
}

// apply makes one piece visible within the transaction.
func (a *apply) apply(ctx context.Context, l loaded) error {
	t, err := a.target(ctx, l.schema)
	if err != nil {
		return err
	}
	for i := range l.parts {
		a.rows += uint64(l.parts[i].N)
	}
	if a.dead != nil && t.mode == spec.Append {
		kept, err := a.lacking(ctx, t, l.groups())
		if err != nil {
			return err
		}
		l.parts = partsOf(kept)
	}
	if !t.guarded && a.dead == nil {
		return a.parts(ctx, t, l.parts)
	}
	if a.dead != nil {
		if err := a.overtaken(ctx, l); err != nil {
			return err
		}
	}
	// Rows of one piece may pass a unique value on to each other, and a set of rows has no order.
	err = a.savepoint(ctx, func() error { return a.parts(ctx, t, l.parts) })
	if a.buries(err) || clashes(err) && !moves(l.parts) {
		return a.replay(ctx, t, l.parts)
	}
	return err
}

// clashes says that rows are in each other's way.
func clashes(err error) bool {
	return hasState(err, uniqueViolation) || hasState(err, exclusionViolation)
}

func (a *apply) parts(ctx context.Context, t *target, parts []part) error {
	for i := range parts {
		if parts[i].Kind == stage.Move {
			if err := a.complete(ctx, t, &parts[i]); err != nil {
				return err
			}
		}
	}
	for i := range parts {
		if err := a.part(ctx, t, &parts[i]); err != nil {
			return err
		}
	}
	return nil
}

// target finds or prepares the table for a schema version.
func (a *apply) target(ctx context.Context, schema *rows.Schema) (*target, error) {
	for _, known := range []map[rows.TableID]*target{a.targets, a.c.targets} {
		if t := known[schema.Table()]; t != nil && t.schema.Fingerprint() == schema.Fingerprint() {
			return t, nil
		}
	}
	t, err := a.c.prepare(ctx, a.s, schema)
	if err != nil {
		return nil, err
	}
	a.targets[schema.Table()] = t
	return t, nil
}

// part applies rows of one kind.
func (a *apply) part(ctx context.Context, t *target, p *part) error {
	if p.Kind == stage.Fresh || p.Kind == stage.Change {
		done, err := a.straight(ctx, t, p)
		if done || err != nil {
			return err
		}
	}
	if p.staging == "" {
		if err := a.stage(ctx, t.schema, p); err != nil {
			return err
		}
	}
	switch p.Kind {
	case stage.Delete:
		_, err := a.exec(ctx, t.deleteSQL(p.staging))
		return err
	case stage.Fresh, stage.Change:
		_, err := a.exec(ctx, t.insertSQL(p.staging, false))
		return err
	case stage.Upsert, stage.Move:
		hit := int64(0)
		if sql := t.updateSQL(p.staging, t.all()); sql != "" {
			var err error
			if hit, err = a.exec(ctx, sql); err != nil {
				return err
			}
		}
		if hit == int64(p.N) {
			return nil
		}
		_, err := a.exec(ctx, t.insertSQL(p.staging, true))
		return err
	case stage.Partial:
		want := t.present(p.Absent)
		sql := t.updateSQL(p.staging, want)
		if sql == "" {
			return nil
		}
		hit, err := a.exec(ctx, sql)
		if err != nil {
			return err
		}
		if hit != int64(p.N) {
			source := string(t.schema.Table())
			column := t.schema.Column(int(p.Absent[0])).Name
			return fault.New(fault.SinkPartialMiss, a.c.at.Sink+", table "+t.plain,
				"the source did not send column "+column+" and the target has no row to complete", "table", source)
		}
	}
	return nil
}

// straight copies rows into the target itself where it takes their form: the fastest way in, half the log of an INSERT.
// Fresh rows may turn out not to be; then nothing of the attempt is left and done is false.
func (a *apply) straight(ctx context.Context, t *target, p *part) (done bool, err error) {
	if !t.direct || p.staging != "" {
		return false, nil
	}
	all := t.all()
	epoch := int64(0)
	if t.mode == spec.Changelog {
		epoch = a.epoch
	}
	into := func() error { return a.copy(ctx, t.name, t.names(all), newCopyStream(p.Batches, all, epoch)) }
	if p.Kind == stage.Change {
		return true, into()
	}
	if t.clashes > 0 {
		t.clashes--
		return false, nil
	}
	err = a.savepoint(ctx, into)
	if hasState(err, uniqueViolation) {
		t.clashes = 100
		return false, nil
	}
	return err == nil, err
}

// savepoint runs do and takes back what it did when it fails.
func (a *apply) savepoint(ctx context.Context, do func() error) error {
	if _, err := a.s.Exec(ctx, "SAVEPOINT weir"); err != nil {
		return err
	}
	made, staged := len(a.made), maps.Clone(a.staged)
	if err := do(); err != nil {
		if a.s.IsClosed() || ctx.Err() != nil {
			return err
		}
		// Staging tables are as they were: empty or not there.
		for _, name := range a.made[made:] {
			delete(a.s.staging, name)
		}
		a.made, a.staged = a.made[:made], staged
		if _, undo := a.s.Exec(ctx, "ROLLBACK TO SAVEPOINT weir; RELEASE SAVEPOINT weir"); undo != nil {
			return undo
		}
		return err
	}
	_, err := a.s.Exec(ctx, "RELEASE SAVEPOINT weir")
	return err
}

func (a *apply) exec(ctx context.Context, sql string) (int64, error) {
	tag, err := a.s.Exec(ctx, sql)
	return tag.RowsAffected(), err
}
