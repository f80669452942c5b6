package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/sink/internal/core"
	"weir.dev/weir/services/sink/internal/stage"
	"weir.dev/weir/services/sink/internal/transact"
)

// Resend applies one dead letter to the target, in one transaction with the line that registers it there, so that it happens
// once however often it is asked for. cfg.Sink is the sink, cfg.Life that of the job. It takes the ledger's row, and
// therefore comes between two commits. A letter whose key has had a later change is fault.SinkDLQOvertaken unless force is
// set; a change of the table's columns in between is a refusal, for a replay changes no table.
func Resend(ctx context.Context, cfg sink.Config, l sink.Letter, force bool) error {
	pg, err := configOf(cfg)
	if err != nil {
		return err
	}
	codec, err := stage.NewCodec()
	if err != nil {
		return err
	}
	cfg.Sink.SchemaChange = spec.Exception
	c := &Committer{
		cfg: cfg, pg: pg, codec: codec, at: transact.Place{Sink: "sinks." + cfg.Sink.Name, Job: cfg.Job},
		ledger:  ledger{schema: cmp.Or(pg.Schema, defaultSchema), job: cfg.Job, sink: cfg.Sink.Name},
		targets: make(map[rows.TableID]*target),
	}
	if c.url, err = cfg.Resolve(pg.URL.Raw()); err != nil {
		return fmt.Errorf("resolve %s.url: %w", c.at.Sink, err)
	}
	s, err := c.connect(ctx)
	if err != nil {
		return err
	}
	defer s.close(ctx)
	err = pgx.BeginFunc(ctx, s.Conn, func(pgx.Tx) error { return c.resend(ctx, s, l, force) })
	return translate(ctx, err, c.at)
}

func (c *Committer) resend(ctx context.Context, s *session, l sink.Letter, force bool) error {
	refuse := func(why string) error {
		return fault.New(fault.SinkDLQRefused, fmt.Sprintf("%s, letter %s/%s.%d", c.at.Sink, l.Table, l.Epoch, l.Index), why, "job", c.cfg.Job)
	}
	held, err := c.ledger.read(ctx, s, true)
	if err != nil {
		return err
	}
	if held.Life != l.Life {
		return refuse("the target's ledger is of another life of the job")
	}
	var superseded *int64
	var replayed *time.Time
	err = s.QueryRow(ctx, `SELECT superseded, replayed FROM `+c.ledger.name(lettersTable)+`
		WHERE job = $1 AND sink = $2 AND source = $3 AND epoch = $4 AND idx = $5`,
		c.ledger.job, c.ledger.sink, string(l.Table), int64(l.Epoch), l.Index).Scan(&superseded, &replayed)
	switch {
	case errors.Is(err, pgx.ErrNoRows) && held.Ref.Epoch >= l.Epoch:
		return refuse(stage.Forgotten)
	case errors.Is(err, pgx.ErrNoRows):
		return refuse("its epoch is not committed at the target yet")
	case err != nil:
		return err
	case replayed != nil:
		return nil
	case superseded != nil && !force:
		return fault.New(fault.SinkDLQOvertaken, fmt.Sprintf("%s, letter %s/%s.%d", c.at.Sink, l.Table, l.Epoch, l.Index),
			fmt.Sprintf("epoch %d holds a later change of its key", *superseded), "job", c.cfg.Job)
	}
	parts, err := c.codec.Decode(l.Rows)
	if err != nil || len(parts) == 0 {
		return refuse("its rows cannot be read")
	}
	if cause, lacks := lackingIn(parts); c.cfg.Sink.Mode == spec.Append && lacks {
		return fault.New(fault.SinkPartialImage, c.at.Sink, "column "+cause+" was not sent", "table", string(l.Table))
	}
	a := &apply{
		c: c, s: s, epoch: int64(l.Epoch), targets: make(map[rows.TableID]*target), staged: make(map[string]int),
	}
	o, err := a.load(ctx, stage.Opened{Parts: parts})
	if err != nil {
		return err
	}
	if err := a.apply(ctx, o); err != nil {
		return err
	}
	_, err = s.Exec(ctx, `UPDATE `+c.ledger.name(lettersTable)+` SET replayed = clock_timestamp()
		WHERE job = $1 AND sink = $2 AND source = $3 AND epoch = $4 AND idx = $5`,
		c.ledger.job, c.ledger.sink, string(l.Table), int64(l.Epoch), l.Index)
	return err
}

func lackingIn(parts []stage.Part) (column string, ok bool) {
	for _, p := range parts {
		if column, ok := core.Lacking(p.Rows); ok {
			return column, true
		}
	}
	return "", false
}
