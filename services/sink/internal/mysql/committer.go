package mysql

import (
	"cmp"
	"context"
	"errors"
	"log/slog"

	"github.com/go-mysql-org/go-mysql/mysql"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/sink/internal/core"
	"weir.dev/weir/services/sink/internal/stage"
)

// Committer applies epochs to one database of a server. It is owned by one goroutine.
type Committer struct {
	cfg    sink.Config
	my     *spec.MySQLSink
	server server
	at     place
	ledger ledger
	codec  *stage.Codec
	// letterCodec writes dead letters while codec reads ahead.
	letterCodec *stage.Codec

	session *session
	// targets are examined tables, valid as long as commits succeed.
	targets map[version]*target
	// open are the keys with letters that no later change has overtaken; nil while it has to be read.
	open stage.OpenKeys
	// sweep is how far the register was looked through for lines that nobody needs.
	sweep stage.Sweep
}

// connect opens a session that has the lock of this committer's name. An attempt that the ledger refuses ends nobody.
func (c *Committer) connect(ctx context.Context) (*session, error) {
	if c.session != nil {
		return c.session, nil
	}
	s, err := c.server.open(ctx, c.at)
	if err != nil {
		return nil, err
	}
	if err := c.enter(ctx, s); err != nil {
		s.close()
		return nil, translate(ctx, err, c.at)
	}
	c.session = s
	return s, nil
}

func (c *Committer) enter(ctx context.Context, s *session) error {
	if s.tooOld() {
		return fault.New(fault.SinkTooOld, c.at.sink, "its version is "+s.conn.GetServerVersion())
	}
	if err := s.checkFormat(ctx, c.at); err != nil {
		return err
	}
	found, err := c.ledger.read(ctx, s, false)
	if err != nil && !hasNumber(err, noSuchTable) && !hasNumber(err, mysql.ER_BAD_DB_ERROR) {
		return err
	}
	if v := core.Claim(found, c.cfg.Life, c.cfg.Fence); v == core.Fenced {
		return c.refusal(v, found, sink.Commit{})
	}
	if err := c.use(ctx, s); err != nil && !hasNumber(err, mysql.ER_BAD_DB_ERROR) {
		return err // one that is not there will be made
	}
	return s.own(ctx, lockName(c.ledger.database, c.cfg.Life, string(c.cfg.Subtask.Vertex)), c.at)
}

// use makes the database the session's own. Names are written with it all the same, but a DELETE of several tables looks for
// its alias there.
func (c *Committer) use(ctx context.Context, s *session) error {
	_, err := s.exec(ctx, "USE "+quote(c.ledger.database))
	return err
}

// fail translates an error of the target and forgets what it may have made untrue: a session that is of no further use, and
// what was learnt about tables.
func (c *Committer) fail(ctx context.Context, err error) error {
	clear(c.targets)
	c.open = nil
	if s := c.session; s != nil && (s.broken || s.conn.IsInTransaction() || ctx.Err() != nil) {
		s.close()
		c.session = nil
	}
	return translate(ctx, err, c.at)
}

// Claim takes the ledger row for this attempt.
func (c *Committer) Claim(ctx context.Context) (job.LedgerRow, error) {
	found, err := c.claim(ctx)
	if hasNumber(err, lockWaitTimeout) {
		_ = c.fail(ctx, err)
		return job.LedgerRow{}, fault.Wrap(err, fault.SinkClaimRaced, c.at.sink, "the ledger row is locked")
	}
	if err != nil {
		return job.LedgerRow{}, c.fail(ctx, err)
	}
	return job.LedgerRow{Life: cmp.Or(found.Life, c.cfg.Life), Ref: found.Ref, Fence: found.Fence}, nil
}

func (c *Committer) claim(ctx context.Context) (found core.Row, err error) {
	s, err := c.connect(ctx)
	if err != nil {
		return core.Row{}, err
	}
	err = s.transaction(ctx, func() error {
		if found, err = c.ledger.read(ctx, s, true); err != nil {
			return err
		}
		if err := c.refusal(core.Claim(found, c.cfg.Life, c.cfg.Fence), found, sink.Commit{}); err != nil {
			return err
		}
		if err := c.ledger.take(ctx, s, c.cfg.Life, c.cfg.Fence); err != nil {
			return err
		}
		// Between a read that found nothing to lock and the insert another attempt may have come first.
		now, err := c.ledger.read(ctx, s, true)
		if err != nil {
			return err
		}
		if found == (core.Row{}) {
			found.Ref, found.Life = now.Ref, now.Life
		}
		return c.refusal(core.Claim(now, c.cfg.Life, c.cfg.Fence), now, sink.Commit{})
	})
	return found, err
}

// transaction runs do in one.
func (s *session) transaction(ctx context.Context, do func() error) error {
	if _, err := s.exec(ctx, "START TRANSACTION"); err != nil {
		return err
	}
	if err := do(); err != nil {
		s.rollback(ctx)
		return err
	}
	_, err := s.exec(ctx, "COMMIT")
	return err
}

// rollback leaves the transaction. A session that cannot is found in it, or broken, by its next use.
func (s *session) rollback(ctx context.Context) {
	if !s.broken && ctx.Err() == nil {
		_, _ = s.exec(ctx, "ROLLBACK")
	}
}

// refusal is the error of a verdict that is neither Apply nor Done.
func (c *Committer) refusal(v core.Verdict, found core.Row, commit sink.Commit) error {
	who := core.Claimant{
		Where: c.at.sink, Ledger: ledgerTable + " in database " + c.ledger.database, Job: c.cfg.Job, Life: c.cfg.Life, Fence: c.cfg.Fence,
	}
	return who.Refusal(v, found, commit.Ref, commit.Prev)
}

// Commit applies one durable epoch in one transaction with the ledger row.
func (c *Committer) Commit(ctx context.Context, commit sink.Commit) (sink.Result, error) {
	result, ambiguous, err := c.commit(ctx, commit)
	if err == nil {
		return result, nil
	}
	failed := c.fail(ctx, err)
	if !ambiguous || c.session != nil {
		return sink.Result{}, failed
	}
	// The connection broke during COMMIT. A new session ends the old one, if it still runs, and then the row says what became
	// of it.
	applied, lookErr := c.lookUp(ctx, commit)
	if lookErr != nil {
		return sink.Result{}, fault.Wrap(errors.Join(failed, lookErr), fault.SinkAmbiguous, c.at.sink,
			"the connection broke during COMMIT of epoch "+commit.Ref.Epoch.String())
	}
	if !applied {
		return sink.Result{}, failed
	}
	return result, nil
}

// lookUp resolves a commit whose outcome is unknown.
func (c *Committer) lookUp(ctx context.Context, commit sink.Commit) (applied bool, err error) {
	s, err := c.connect(ctx)
	if err != nil {
		return false, err
	}
	err = s.transaction(ctx, func() error {
		found, err := c.ledger.read(ctx, s, true)
		if err != nil {
			return err
		}
		v := core.Decide(found, c.cfg.Life, c.cfg.Fence, commit.Ref, commit.Prev)
		applied = v == core.Done
		return c.refusal(v, found, commit)
	})
	if err != nil {
		return false, c.fail(ctx, err)
	}
	return applied, nil
}

// commit does the work. ambiguous is true when the error came while the target may have been committing.
func (c *Committer) commit(ctx context.Context, commit sink.Commit) (_ sink.Result, ambiguous bool, err error) {
	s, err := c.connect(ctx)
	if err != nil {
		return sink.Result{}, false, err
	}
	// Without the lock this spares work, and changes of tables for an epoch that is not next; what decides about rows is the row
	// under the lock.
	found, err := c.ledger.read(ctx, s, false)
	if err != nil {
		return sink.Result{}, false, err
	}
	v := core.Decide(found, c.cfg.Life, c.cfg.Fence, commit.Ref, commit.Prev)
	if v == core.Done {
		return sink.Result{}, false, nil
	}
	if err := c.refusal(v, found, commit); err != nil {
		return sink.Result{}, false, err
	}
	a := &apply{c: c, s: s, epoch: int64(commit.Ref.Epoch), inUse: make(map[string]int)}
	if a.work, err = stage.NewWork(commit); err != nil {
		return sink.Result{}, false, err
	}
	if c.cfg.Letters != nil {
		if c.open == nil {
			if c.open, err = c.ledger.readOpen(ctx, s); err != nil {
				return sink.Result{}, false, err
			}
		}
		if a.dead, err = newDead(ctx, c.cfg.Letters, c.cfg.Sink.Mode, c.open, commit); err != nil {
			return sink.Result{}, false, err
		}
	}
	if err := c.fit(ctx, s, a.work); err != nil {
		return sink.Result{}, false, err
	}
	if _, err := s.exec(ctx, "START TRANSACTION"); err != nil {
		return sink.Result{}, false, err
	}
	result, err := a.run(ctx, commit)
	if err != nil || !result.Applied {
		s.rollback(ctx)
		return sink.Result{}, false, err
	}
	if _, err := s.exec(ctx, "COMMIT"); err != nil {
		s.rollback(ctx)
		return result, s.broken, err
	}
	if a.dead != nil {
		a.dead.Registered(a.work.Truncates)
	}
	if a.swept {
		c.open = nil // it may have keys of lines that are gone
	}
	if a.nulled > 0 {
		c.cfg.Logger.WarnContext(ctx, "values without a form at the target were written as null",
			slog.Uint64("values", a.nulled), slog.Uint64("epoch", uint64(commit.Ref.Epoch)))
	}
	return result, false, nil
}

// fit makes the tables fit every schema version that the commit has rows of, oldest first, before its transaction begins. The
// rows of older versions then go into a table that newer ones have changed already.
func (c *Committer) fit(ctx context.Context, s *session, w stage.Work) error {
	changed := make(map[rows.TableID]bool)
	schemas := make(map[version]*rows.Schema)
	var order []version
	for _, d := range w.Pieces {
		v := version{d.Table, d.Version}
		if schemas[v] != nil {
			continue
		}
		if t := c.targets[v]; t != nil {
			schemas[v], order = t.schema, append(order, v)
			continue
		}
		parts, err := d.Open(ctx, c.cfg.Store, c.codec)
		if err != nil {
			return err
		}
		if schemas[v], err = parts[0].Rows.Schema().Unmoved(); err != nil {
			return err
		}
		if err := c.fitOne(ctx, s, v, schemas[v]); err != nil {
			return err
		}
		order, changed[d.Table] = append(order, v), true
	}
	for v := range c.targets {
		if changed[v.table] && schemas[v] == nil {
			delete(c.targets, v)
		}
	}
	for i, v := range order {
		last := i == len(order)-1 || order[i+1].table != v.table
		if !changed[v.table] || last {
			continue
		}
		if err := c.fitOne(ctx, s, v, schemas[v]); err != nil {
			return err
		}
	}
	return nil
}

func (c *Committer) fitOne(ctx context.Context, s *session, v version, schema *rows.Schema) error {
	t, err := c.prepare(ctx, s, schema)
	if err != nil {
		return err
	}
	c.targets[v] = t
	for _, note := range t.notes {
		c.cfg.Logger.WarnContext(ctx, "columns changed at the source", slog.String("table", t.plain),
			slog.Uint64("version", uint64(schema.Version())), slog.String("change", note))
	}
	return nil
}

// Close ends the session.
func (c *Committer) Close() error {
	if c.session != nil {
		c.session.close()
		c.session = nil
	}
	return nil
}
