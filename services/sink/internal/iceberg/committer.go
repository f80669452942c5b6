package iceberg

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/job"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/services/sink/internal/core"
	"weir.dev/weir/services/sink/internal/stage"
)

// committer makes epochs part of the tables, each in one transaction of the catalog. It is owned by one goroutine.
type committer struct {
	place
	tables *tables
	codec  *stage.Codec
	// states are the tables as this committer left them; another commit is noticed by the catalog's pointer.
	states  map[pointer]*state
	upkeep  upkeep
	changed []*state // by the newest commit
	apart   bool     // no source of the job captures the catalog
}

// Claim takes the ledger row for this attempt.
func (c *committer) Claim(ctx context.Context) (job.LedgerRow, error) {
	found, err := c.tables.catalog.claim(ctx, c.cfg.Life, c.cfg.Fence, func(found core.Row) error {
		return c.refusal(core.Claim(found, c.cfg.Life, c.cfg.Fence), found, sink.Commit{})
	})
	if err != nil {
		return job.LedgerRow{}, c.translate(err)
	}
	return job.LedgerRow{Life: cmp.Or(found.Life, c.cfg.Life), Ref: found.Ref, Fence: found.Fence}, nil
}

// refusal is the error of a verdict that is neither Apply nor Done.
func (c *committer) refusal(v core.Verdict, found core.Row, commit sink.Commit) error {
	who := core.Claimant{Where: c.where, Ledger: "the ledger in the catalog", Job: c.cfg.Job, Life: c.cfg.Life, Fence: c.cfg.Fence}
	return who.Refusal(v, found, commit.Ref, commit.Prev)
}

// maxRaces is how often a commit is built anew because another engine has committed to a table in between.
const maxRaces = 5

// Commit makes one durable epoch visible in all its tables at once.
func (c *committer) Commit(ctx context.Context, commit sink.Commit) (sink.Result, error) {
	found, err := c.tables.catalog.row(ctx)
	if err != nil {
		return sink.Result{}, c.translate(err)
	}
	v := core.Decide(found, c.cfg.Life, c.cfg.Fence, commit.Ref, commit.Prev)
	if err := c.refusal(v, found, commit); err != nil || v == core.Done {
		return sink.Result{}, err
	}
	if !c.apart {
		if err := c.checkLoop(ctx); err != nil {
			return sink.Result{}, c.translate(err)
		}
		c.apart = true
	}
	pieces := make([]*piece, len(commit.Staged))
	var n uint64
	for i, st := range commit.Staged {
		if pieces[i], err = parsePiece(st); err != nil {
			return sink.Result{}, fmt.Errorf("epoch %s, piece %d of %s: %w", commit.Ref.Epoch, i, st.Subtask, err)
		}
		n += st.Rows
	}
	for range maxRaces {
		if err = c.attempt(ctx, commit, pieces, n); !errors.Is(err, errMoved) {
			break
		}
	}
	if errors.Is(err, errDone) {
		return sink.Result{}, nil
	}
	if err != nil {
		return sink.Result{}, c.translate(err)
	}
	own := slices.ContainsFunc(pieces, func(p *piece) bool { return p.Fence == c.cfg.Fence })
	c.maintain(ctx, c.changed, own)
	return sink.Result{Applied: true, Rows: n}, nil
}

// attempt builds the epoch on the tables as they are now and applies it, if they are still so. An outcome that is not known is
// looked up: the ledger changes with the tables.
func (c *committer) attempt(ctx context.Context, commit sink.Commit, pieces []*piece, n uint64) error {
	b := &build{c: c, commit: commit}
	if err := b.run(ctx, pieces); err != nil {
		return err
	}
	ch := change{entry: &entry{ref: commit.Ref, prev: commit.Prev, fence: c.cfg.Fence, positions: commit.Positions, rows: n}}
	for _, s := range b.done {
		ch.moves = append(ch.moves, move{s.from, &s.state})
	}
	ch.allow = func(found core.Row) error {
		v := core.Decide(found, c.cfg.Life, c.cfg.Fence, commit.Ref, commit.Prev)
		if v == core.Done {
			return errDone
		}
		return c.refusal(v, found, commit)
	}
	if err := c.apply(ctx, commit, ch); err != nil {
		return err
	}
	c.changed = nil
	for _, s := range b.done {
		if had := c.states[s.pointer]; had != nil {
			c.forget(ctx, had, &s.state)
		}
		c.states[s.pointer] = &s.state
		c.changed = append(c.changed, &s.state)
	}
	for _, note := range b.notes {
		c.cfg.Logger.WarnContext(ctx, "columns changed at the source", slog.String("table", note.table), slog.String("change", note.text))
	}
	return nil
}

// errDone says that an epoch was there before the transaction that should have applied it.
var errDone = errors.New("the epoch is there")

func (c *committer) apply(ctx context.Context, commit sink.Commit, ch change) error {
	unknown, err := c.tables.catalog.apply(ctx, ch)
	if !unknown {
		return err
	}
	found, lookErr := c.tables.catalog.row(ctx)
	if lookErr != nil {
		return fault.Wrap(errors.Join(err, lookErr), fault.SinkAmbiguous, c.where, "the connection broke during the commit of epoch "+commit.Ref.Epoch.String())
	}
	if found.Life == c.cfg.Life && found.Ref == commit.Ref {
		return nil
	}
	return err
}

// Close lets go of the catalog.
func (c *committer) Close() error { return c.tables.close() }
