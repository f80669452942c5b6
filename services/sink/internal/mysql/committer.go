package mysql

import (
	"context"
	"log/slog"

	"github.com/go-mysql-org/go-mysql/mysql"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/sink/internal/core"
	"weir.dev/weir/services/sink/internal/stage"
	"weir.dev/weir/services/sink/internal/transact"
)

// Committer applies epochs to one database of a server. It is owned by one goroutine.
type Committer struct {
	cfg    sink.Config
	my     *spec.MySQLSink
	server server
	at     transact.Place
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
		return fault.New(fault.SinkTooOld, c.at.Sink, "its version is "+s.conn.GetServerVersion())
	}
	if err := s.checkFormat(ctx, c.at); err != nil {
		return err
	}
	found, err := c.ledger.read(ctx, s, false)
	if err != nil && !hasNumber(err, noSuchTable) && !hasNumber(err, mysql.ER_BAD_DB_ERROR) {
		return err
	}
	if core.Claim(found, c.cfg.Life, c.cfg.Fence) == core.Fenced {
		return c.who().MayTake(found)
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

// who holds claims and commits up to the ledger.
func (c *Committer) who() core.Claimant {
	return core.Claimant{
		Where: c.at.Sink, Ledger: ledgerTable + " in database " + c.ledger.database, Job: c.cfg.Job, Life: c.cfg.Life, Fence: c.cfg.Fence,
	}
}

// Claim takes the ledger row for this attempt.
func (c *Committer) Claim(ctx context.Context) (job.LedgerRow, error) {
	return transact.Claim(ctx, c.who(), c)
}

// Commit applies one durable epoch in one transaction with the ledger row.
func (c *Committer) Commit(ctx context.Context, commit sink.Commit) (sink.Result, error) {
	return transact.Commit(ctx, c.who(), c, commit)
}

// Transaction is of [transact.Target].
func (c *Committer) Transaction(ctx context.Context, do func(transact.Ledger) error) error {
	s, err := c.connect(ctx)
	if err != nil {
		return err
	}
	return s.transaction(ctx, func() error { return do(held{c, s}) })
}

// Fail is of [transact.Target].
func (c *Committer) Fail(ctx context.Context, err error) (translated error, lost bool) {
	translated = c.fail(ctx, err)
	return translated, c.session == nil
}

// Locked is of [transact.Target].
func (c *Committer) Locked(err error) bool { return hasNumber(err, lockWaitTimeout) }

// held is the ledger's row within a transaction of a session.
type held struct {
	c *Committer
	s *session
}

func (h held) Lock(ctx context.Context) (core.Row, error) { return h.c.ledger.read(ctx, h.s, true) }

func (h held) Take(ctx context.Context) error {
	return h.c.ledger.take(ctx, h.s, h.c.cfg.Life, h.c.cfg.Fence)
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

// Apply is of [transact.Target].
func (c *Committer) Apply(ctx context.Context, commit sink.Commit) (_ sink.Result, unknown bool, err error) {
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
	if done, err := c.who().Has(found, commit.Ref, commit.Prev); done || err != nil {
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
		if a.dead, err = transact.NewDead(ctx, c.cfg, commit, c.open, c.letterCodec); err != nil {
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
