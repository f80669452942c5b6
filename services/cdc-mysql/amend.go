package cdcmysql

import (
	"context"
	"log/slog"
	"slices"

	"weir.dev/weir/pkg/cdc"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/services/cdc-mysql/internal/catalog"
	"weir.dev/weir/services/cdc-mysql/internal/core"
)

// again takes an order to copy some tables anew, once: in the form they have now, while the log waits. log is where the log was,
// nil when it was not begun.
func (s *setup) again(ctx context.Context, log *readerState) error {
	order := s.cfg.Again
	if order == nil || order.Seq <= s.state.Again {
		return nil
	}
	s.state.Again = order.Seq
	for i := range s.state.Tables {
		t := &s.state.Tables[i]
		if !slices.Contains(order.Tables, t.String()) {
			continue
		}
		now := &catalog.Table{Name: t.Name, RowBytes: t.RowBytes}
		if err := catalog.Describe(ctx, s.session, []*catalog.Table{now}); err != nil {
			return err
		}
		if len(now.Columns) == 0 {
			s.cfg.Logger.WarnContext(ctx, "table is not copied anew: it was dropped or renamed", slog.String("table", t.String()))
			continue
		}
		c, err := s.capture(now, t.ID, t.sent(log))
		if err != nil {
			return err
		}
		*t = c
		s.standing = s.assigner.Abandon(t.ID) || s.standing
		s.cfg.Logger.InfoContext(ctx, "table is copied anew", slog.String("table", t.String()), slog.Uint64("order", order.Seq))
	}
	s.assigner.Tables(s.tasks())
	return nil
}

// sent is the schema version in which rows of the table were last sent.
func (t *capturedTable) sent(log *readerState) schemaVersion {
	if log != nil {
		if v, ok := log.Schemas[rows.TableID(t.String())]; ok && v.Version >= t.Number {
			return v
		}
	}
	return schemaVersion{Version: t.Number, Fingerprint: t.Fingerprint}
}

// amend has the source capture the tables that its patterns match today, once for each change of the spec. A table that is new is
// copied while the log waits; what was written to it before its mark is in the copy, what is written behind is in the log. A table
// that matches no more is left alone.
func (s *setup) amend(ctx context.Context, log *readerState) error {
	if s.cfg.Applied <= s.state.Applied {
		return nil
	}
	chosen, err := s.choose(ctx)
	if err != nil {
		return err
	}
	known := byName(s.state.Tables)
	fresh := func(t *catalog.Table) bool { return known[t.Name] == nil }
	if err := s.take(ctx, chosen, fresh, log); err != nil {
		return err
	}
	s.state.Applied = s.cfg.Applied
	return nil
}

// take makes the chosen tables those that are captured; those that are fresh are captured as they are today. The versions of a
// table's schema go on where they were, also when it comes back after a while.
func (s *setup) take(ctx context.Context, chosen []*catalog.Table, fresh func(*catalog.Table) bool, log *readerState) error {
	s.leave(ctx, chosen, log)
	known, next := byName(s.state.Tables), cdc.TableID(1)
	for _, t := range s.state.Tables {
		next = max(next, t.ID+1)
	}
	var tables, kept []capturedTable
	back := make(map[cdc.TableID]bool)
	for _, t := range chosen {
		was := known[t.Name]
		if was != nil && !fresh(t) {
			tables, kept = append(tables, *was), append(kept, *was)
			continue
		}
		id, name := next, rows.TableID(t.String())
		last, sent := s.state.Gone[name]
		switch {
		case was != nil:
			id, last = was.ID, was.sent(log)
		default:
			next++
			back[id] = sent
			delete(s.state.Gone, name)
		}
		c, err := s.capture(t, id, last)
		if err != nil {
			return err
		}
		tables = append(tables, c)
		s.cfg.Logger.InfoContext(ctx, "table captured", slog.String("table", c.String()), slog.Bool("again", sent || was != nil))
	}
	s.state.Tables = kept // first without the fresh ones: one that is captured anew is new to the assigner
	s.assigner.Tables(s.tasks())
	s.state.Tables = tables
	tasks := s.tasks()
	for i := range tasks {
		tasks[i].Sent = back[tasks[i].ID]
	}
	s.standing = s.assigner.Tables(tasks) || s.standing
	return nil
}

// leave notes the last schema version of the tables that are captured no more.
func (s *setup) leave(ctx context.Context, chosen []*catalog.Table, log *readerState) {
	for i := range s.state.Tables {
		t := &s.state.Tables[i]
		if slices.ContainsFunc(chosen, func(c *catalog.Table) bool { return c.Name == t.Name }) {
			continue
		}
		s.cfg.Logger.InfoContext(ctx, "table no longer captured", slog.String("table", t.String()))
		if s.state.Gone == nil {
			s.state.Gone = make(map[rows.TableID]schemaVersion)
		}
		s.state.Gone[rows.TableID(t.String())] = t.sent(log)
	}
}

// renew begins anew with the log as it is now: every table that matches today is emptied and copied, and what is between the log
// that was read and the new beginning is in the copies. Nothing of what stopped the job before is looked at again.
func (s *setup) renew(ctx context.Context, log *readerState) error {
	s.cfg.Logger.WarnContext(ctx, "log begins anew and every table is copied", slog.Uint64("order", s.cfg.Again.Seq))
	start, err := s.head(ctx)
	if err != nil {
		return err
	}
	chosen, err := s.choose(ctx)
	if err != nil {
		return err
	}
	if err := s.take(ctx, chosen, func(*catalog.Table) bool { return true }, log); err != nil {
		return err
	}
	s.state.Start, s.state.Resume, s.state.UUID = start, start, s.facts.UUID
	begin := readerState{Version: stateVersion, Position: core.Position{Before: start}, Schemas: map[rows.TableID]schemaVersion{}}
	if log != nil {
		begin.Schemas = log.Schemas
	}
	s.assigner.Renew(mustMarshal(begin))
	s.standing = true
	s.state.Again, s.state.Applied = s.cfg.Again.Seq, s.cfg.Applied
	return nil
}
