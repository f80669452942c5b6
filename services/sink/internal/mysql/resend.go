package mysql

import (
	"context"
	"fmt"
	"strconv"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/sink"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/sink/internal/core"
	"weir.dev/weir/services/sink/internal/stage"
)

// Resend applies one dead letter to the target, in one transaction with the line that registers it there, so that it happens
// once however often it is asked for. cfg.Sink is the sink, cfg.Life that of the job. It takes the ledger's row, and
// therefore comes between two commits. A letter whose key has had a later change is fault.SinkDLQOvertaken unless force is
// set; a change of the table's columns in between is a refusal, for a replay changes no table.
func Resend(ctx context.Context, cfg sink.Config, l sink.Letter, force bool) error {
	cfg.Sink.SchemaChange = spec.Exception
	c, err := newCommitter(cfg)
	if err != nil {
		return err
	}
	s, err := c.server.open(ctx, c.at)
	if err != nil {
		return err
	}
	defer s.close()
	if err := c.use(ctx, s); err != nil {
		return translate(ctx, err, c.at)
	}
	return translate(ctx, c.resend(ctx, s, l, force), c.at)
}

func (c *Committer) resend(ctx context.Context, s *session, l sink.Letter, force bool) error {
	where := fmt.Sprintf("%s, letter %s/%s.%d", c.at.Sink, l.Table, l.Epoch, l.Index)
	refuse := func(why string) error { return fault.New(fault.SinkDLQRefused, where, why, "job", c.cfg.Job) }
	line := c.ledger.mine() + " AND source = " + text(string(l.Table)) + " AND epoch = " + number(int64(l.Epoch)) +
		" AND idx = " + strconv.Itoa(l.Index)
	// judge says what becomes of the letter; done is when that is nothing.
	judge := func(lock bool) (done bool, err error) {
		held, err := c.ledger.read(ctx, s, lock)
		if err != nil {
			return false, err
		}
		if held.Life != l.Life {
			return false, refuse("the target's ledger is of another life of the job")
		}
		found, err := s.query(ctx, "SELECT superseded, replayed FROM "+c.ledger.name(lettersTable)+line)
		switch {
		case err == nil && len(found) == 0 && held.Ref.Epoch >= l.Epoch:
			return false, refuse(stage.Forgotten)
		case hasNumber(err, noSuchTable) || err == nil && len(found) == 0:
			return false, refuse("its epoch is not committed at the target yet")
		case err != nil:
			return false, err
		case !found[0].null(1):
			return true, nil
		case !found[0].null(0) && !force:
			return false, fault.New(fault.SinkDLQOvertaken, where, "epoch "+found[0].text(0)+" holds a later change of its key", "job", c.cfg.Job)
		}
		return false, nil
	}
	// Without the lock, so that no table is looked at for a letter that is not to be applied.
	if done, err := judge(false); err != nil || done {
		return err
	}
	parts, err := c.codec.Decode(l.Rows)
	if err != nil || len(parts) == 0 {
		return refuse("its rows cannot be read")
	}
	for _, p := range parts {
		if column, lacks := core.Lacking(p.Rows); lacks && c.cfg.Sink.Mode == spec.Append {
			return fault.New(fault.SinkPartialImage, c.at.Sink, "column "+column+" was not sent", "table", string(l.Table))
		}
	}
	schema, err := parts[0].Rows.Schema().Unmoved()
	if err != nil {
		return err
	}
	changed := func(why string) error { return fault.New(fault.SinkSchemaChange, where, why, "table", string(l.Table)) }
	known, err := c.ledger.readKnown(ctx, s, l.Table)
	switch {
	case err != nil:
		return err
	case known == nil:
		return refuse("the table was never fitted to its rows")
	case known.Version > schema.Version():
		return changed("the table's columns have changed since")
	}
	if err := c.fitOne(ctx, s, version{schema.Table(), schema.Version()}, schema); err != nil {
		return err
	}
	return s.transaction(ctx, func() error {
		if done, err := judge(true); err != nil || done {
			return err
		}
		// The next commit changes columns before it takes the lock.
		now, err := c.ledger.readKnown(ctx, s, l.Table)
		if err != nil {
			return err
		}
		if now == nil || now.Version != known.Version {
			return changed("the table's columns change right now")
		}
		a := &apply{c: c, s: s, epoch: int64(l.Epoch), inUse: make(map[string]int)}
		if err := a.piece(ctx, stage.Opened{Parts: parts}); err != nil {
			return err
		}
		_, err = s.exec(ctx, "UPDATE "+c.ledger.name(lettersTable)+" SET replayed = now(6)"+line)
		return err
	})
}
