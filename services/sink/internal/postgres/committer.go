package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"

	"github.com/jackc/pgx/v5"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/sink/internal/core"
	"weir.dev/weir/services/sink/internal/stage"
	"weir.dev/weir/services/sink/internal/transact"
)

// Committer applies epochs to one schema of a database. It is owned by one goroutine.
type Committer struct {
	cfg    sink.Config
	pg     *spec.PostgresSink
	url    string
	at     transact.Place
	ledger ledger
	codec  *stage.Codec

	session *session
	// lost are the backends of broken connections; the server may not have noticed yet and they may hold locks.
	lost []uint32
	// targets are examined tables, valid as long as commits succeed.
	targets map[rows.TableID]*target
	// open are the keys with letters that no later change has overtaken; nil while it has to be read.
	open stage.OpenKeys
	// sweep is how far the register was looked through for lines that nobody needs.
	sweep stage.Sweep
}

// oldestVersion is PostgreSQL 14: before it a session could not wait for the end of another that it terminates.
const oldestVersion = 140000

// idle is the transaction status of a session that can be used.
const idle = 'I'

func (c *Committer) connect(ctx context.Context) (*session, error) {
	if c.session != nil {
		return c.session, nil
	}
	s, err := connect(ctx, c.url, c.cfg.Identity, c.lost, c.at)
	if err != nil {
		return nil, err
	}
	c.session, c.lost = s, nil
	return s, nil
}

// fail translates an error of the target and forgets what it may have made untrue: a broken session and, as the
// transaction is gone, what was learnt about tables in it.
func (c *Committer) fail(ctx context.Context, err error) error {
	clear(c.targets)
	c.open = nil
	if s := c.session; s != nil && (s.IsClosed() || s.PgConn().TxStatus() != idle || ctx.Err() != nil) {
		c.lost = append(c.lost, s.PgConn().PID())
		s.close(ctx)
		c.session = nil
	}
	return translate(ctx, err, c.at)
}

// probe proves at start what the level promises: a writable server, durable commits, room for the ledger.
func (c *Committer) probe(ctx context.Context, s *session) error {
	var version, readOnly, durable string
	if err := s.QueryRow(ctx, `SELECT current_setting('server_version_num'), current_setting('transaction_read_only'),
		current_setting('synchronous_commit')`).Scan(&version, &readOnly, &durable); err != nil {
		return c.fail(ctx, err)
	}
	if n, err := strconv.Atoi(version); err != nil || n < oldestVersion {
		return fault.New(fault.SinkTooOld, c.at.Sink, "server_version_num is "+version)
	}
	if readOnly == "on" {
		return fault.New(fault.SinkReadOnly, c.at.Sink, "transaction_read_only is on", "where", c.at.Sink)
	}
	if durable == "off" {
		// A commit that is confirmed and then lost with the server is one the ledger has lost too, and the job would stop
		// with LEDGER_DIVERGED.
		if _, err := s.Exec(ctx, "SET synchronous_commit = on"); err != nil {
			return c.fail(ctx, err)
		}
	}
	if err := c.ledger.create(ctx, s); err != nil {
		return c.fail(ctx, err)
	}
	if c.cfg.Letters != nil {
		if err := c.ledger.createLetters(ctx, s); err != nil {
			return c.fail(ctx, err)
		}
	}
	return nil
}

// who holds claims and commits up to the ledger.
func (c *Committer) who() core.Claimant {
	return core.Claimant{
		Where: c.at.Sink, Ledger: ledgerTable + " in schema " + c.ledger.schema, Job: c.cfg.Job, Life: c.cfg.Life, Fence: c.cfg.Fence,
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
	return pgx.BeginFunc(ctx, s.Conn, func(tx pgx.Tx) error { return do(held{c, tx}) })
}

// Fail is of [transact.Target].
func (c *Committer) Fail(ctx context.Context, err error) (translated error, lost bool) {
	translated = c.fail(ctx, err)
	return translated, c.session == nil
}

// Locked is of [transact.Target].
func (c *Committer) Locked(err error) bool { return hasState(err, lockNotAvailable) }

// held is the ledger's row within a transaction.
type held struct {
	c  *Committer
	tx pgx.Tx
}

func (h held) Lock(ctx context.Context) (core.Row, error) { return h.c.ledger.read(ctx, h.tx, true) }

func (h held) Take(ctx context.Context) error {
	return h.c.ledger.take(ctx, h.tx, h.c.cfg.Life, h.c.cfg.Fence)
}

// Apply is of [transact.Target].
func (c *Committer) Apply(ctx context.Context, commit sink.Commit) (_ sink.Result, unknown bool, err error) {
	s, err := c.connect(ctx)
	if err != nil {
		return sink.Result{}, false, err
	}
	// Without the lock this only spares work: what decides is the row under the lock.
	found, err := c.ledger.read(ctx, s, false)
	if err != nil {
		return sink.Result{}, false, err
	}
	if done, err := c.who().Has(found, commit.Ref, commit.Prev); done || err != nil {
		return sink.Result{}, false, err
	}
	work, err := stage.NewWork(commit)
	if err != nil {
		return sink.Result{}, false, err
	}
	a := &apply{c: c, s: s, work: work, epoch: int64(commit.Ref.Epoch)}
	result, err := a.begin(ctx, commit)
	if _, ok := errors.AsType[deferredError](err); ok {
		a = &apply{c: c, s: s, work: work, epoch: int64(commit.Ref.Epoch), strict: true}
		result, err = a.begin(ctx, commit)
	}
	if err != nil {
		return sink.Result{}, false, err
	}
	if !result.Applied {
		a.rollback(ctx)
		return result, false, nil
	}
	tag, err := s.Exec(ctx, "COMMIT")
	if err != nil {
		a.rollback(ctx)
		return result, true, err
	}
	if tag.String() != "COMMIT" { // PostgreSQL ends a failed transaction this way, without an error
		a.rollback(ctx)
		return sink.Result{}, false, fmt.Errorf("commit epoch %s: the target answered %s", commit.Ref.Epoch, tag)
	}
	if a.dead != nil {
		a.dead.Registered(a.work.Truncates)
	}
	if a.swept {
		c.open = nil // it may have keys of lines that are gone
	}
	for _, t := range a.targets {
		c.targets[t.schema.Table()] = t
		for _, note := range t.notes {
			c.cfg.Logger.WarnContext(ctx, "columns changed at the source", slog.String("table", t.plain),
				slog.Uint64("version", uint64(t.schema.Version())), slog.String("change", note))
		}
		t.notes = nil
	}
	if a.nulled > 0 {
		c.cfg.Logger.WarnContext(ctx, "values without a form at the target were written as null",
			slog.Uint64("values", a.nulled), slog.Uint64("epoch", uint64(commit.Ref.Epoch)))
	}
	return result, false, nil
}

// Close ends the session.
func (c *Committer) Close() error {
	if c.session != nil {
		c.session.close(context.Background())
		c.session = nil
	}
	return nil
}
