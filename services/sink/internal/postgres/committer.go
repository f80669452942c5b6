package postgres

import (
	"cmp"
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
)

// Committer applies epochs to one schema of a database. It is owned by one goroutine.
type Committer struct {
	cfg    sink.Config
	pg     *spec.PostgresSink
	url    string
	at     place
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
		return fault.New(fault.SinkTooOld, c.at.sink, "server_version_num is "+version)
	}
	if readOnly == "on" {
		return fault.New(fault.SinkReadOnly, c.at.sink, "transaction_read_only is on", "where", c.at.sink)
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

// Claim takes the ledger row for this attempt.
func (c *Committer) Claim(ctx context.Context) (job.LedgerRow, error) {
	found, err := c.claim(ctx)
	if hasState(err, lockNotAvailable) {
		return job.LedgerRow{}, fault.Wrap(err, fault.SinkClaimRaced, c.at.sink, "the ledger row is locked")
	}
	if err != nil {
		return job.LedgerRow{}, c.fail(ctx, err)
	}
	return job.LedgerRow{Life: cmp.Or(found.Life, c.cfg.Life), Ref: found.Ref, Fence: found.Fence}, nil
}

func (c *Committer) claim(ctx context.Context) (core.Row, error) {
	s, err := c.connect(ctx)
	if err != nil {
		return core.Row{}, err
	}
	var found core.Row
	err = pgx.BeginFunc(ctx, s.Conn, func(tx pgx.Tx) error {
		if found, err = c.ledger.read(ctx, tx, true); err != nil {
			return err
		}
		if err := c.refusal(core.Claim(found, c.cfg.Life, c.cfg.Fence), found, sink.Commit{}); err != nil {
			return err
		}
		if err := c.ledger.take(ctx, tx, c.cfg.Life, c.cfg.Fence); err != nil {
			return err
		}
		// Between a read that found nothing to lock and the insert another attempt may have come first.
		now, err := c.ledger.read(ctx, tx, true)
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

// refusal is the error of a verdict that is neither Apply nor Done.
func (c *Committer) refusal(v core.Verdict, found core.Row, commit sink.Commit) error {
	who := core.Claimant{
		Where: c.at.sink, Ledger: ledgerTable + " in schema " + c.ledger.schema, Job: c.cfg.Job, Life: c.cfg.Life, Fence: c.cfg.Fence,
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
	// The connection broke during COMMIT. A new session waits for the old backend, which is ended if it still runs, and
	// then the row says what became of it.
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
	err = pgx.BeginFunc(ctx, s.Conn, func(tx pgx.Tx) error {
		found, err := c.ledger.read(ctx, tx, true)
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
	// Without the lock this only spares work: what decides is the row under the lock.
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
