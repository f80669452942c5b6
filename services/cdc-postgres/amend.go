package cdcpostgres

import (
	"context"
	"log/slog"
	"slices"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/rows"
	"weir.dev/weir/services/cdc-postgres/internal/catalog"
	"weir.dev/weir/services/cdc-postgres/internal/core"
)

// amend has the source capture the tables that its patterns match today, once for each change of the spec. A table that is
// new is copied while the log waits, under marks that are taken behind the change of the publication: what was written to it
// before is in the copy, what is written after is in the log. A table that matches no more is left alone. One that was
// renamed, or dropped and made again, is a table that goes and one that comes. log is where the log was, nil when it was not
// begun.
func (s *setup) amend(ctx context.Context, log *readerState) error {
	if s.cfg.Applied <= s.state.Applied {
		return nil
	}
	chosen, err := s.choose(ctx)
	if err != nil {
		return err
	}
	fresh := slices.DeleteFunc(slices.Clone(chosen), func(t *catalog.Table) bool { return s.knows(t) })
	if err := s.take(ctx, chosen, fresh, log); err != nil {
		return err
	}
	s.state.Applied = s.cfg.Applied
	return nil
}

// knows reports whether a table is captured already, under the name that it has.
func (s *setup) knows(t *catalog.Table) bool {
	return slices.ContainsFunc(s.state.Tables, func(c capturedTable) bool { return c.OID == t.OID && c.TableName == t.Name })
}

// take makes the chosen tables those that are captured; those of fresh, which are some of them, are captured as they are
// today. The versions of a table's schema go on where they were, also when it comes back after a while.
func (s *setup) take(ctx context.Context, chosen, fresh []*catalog.Table, log *readerState) error {
	last, back := make(map[uint32]schemaVersion), make(map[uint32]bool)
	kept, leaving, err := s.part(ctx, chosen, log)
	if err != nil {
		return err
	}
	for _, t := range fresh {
		id := rows.TableID(t.Name.String())
		if v, ok := s.state.Gone[id]; ok {
			last[t.OID], back[t.OID] = v, true
			delete(s.state.Gone, id)
		} else if c := kept[t.OID]; c != nil {
			last[t.OID] = c.sent(log)
		}
	}
	captured, err := s.capture(ctx, fresh, last)
	if err != nil {
		return err
	}
	for i := range captured {
		kept[captured[i].OID] = &captured[i]
		s.cfg.Logger.InfoContext(ctx, "table captured", slog.String("table", captured[i].String()), slog.Bool("again", back[captured[i].OID]))
	}
	tables := make([]capturedTable, 0, len(chosen))
	for _, t := range chosen {
		tables = append(tables, *kept[t.OID])
	}
	s.reassign(tables, fresh, back)
	s.news = true
	return s.publish(ctx, chosen, leaving)
}

// part tells the captured tables that stay, by OID, from those that leave. Of these it keeps the last version of their
// schema, and lists those that there still are.
func (s *setup) part(ctx context.Context, chosen []*catalog.Table, log *readerState) (kept map[uint32]*capturedTable, leaving []*catalog.Table, err error) {
	kept = make(map[uint32]*capturedTable, len(chosen))
	for i := range s.state.Tables {
		t := &s.state.Tables[i]
		if slices.ContainsFunc(chosen, func(c *catalog.Table) bool { return c.OID == t.OID && c.Name == t.TableName }) {
			kept[t.OID] = t
			continue
		}
		s.cfg.Logger.InfoContext(ctx, "table no longer captured", slog.String("table", t.String()))
		if s.state.Gone == nil {
			s.state.Gone = make(map[rows.TableID]schemaVersion)
		}
		s.state.Gone[rows.TableID(t.String())] = t.sent(log)
		now, err := catalog.ByOID(ctx, s.conn, t.OID)
		if err != nil {
			return nil, nil, s.target.Fault(err)
		}
		if now != nil && now.Obstacle == "" && !slices.ContainsFunc(chosen, func(c *catalog.Table) bool { return c.OID == t.OID }) {
			leaving = append(leaving, now)
		}
	}
	return kept, leaving, nil
}

// reassign gives the assigner the tables that are captured now.
func (s *setup) reassign(tables []capturedTable, fresh []*catalog.Table, back map[uint32]bool) {
	// First without the fresh ones: a table that was renamed comes back under the number that it had.
	s.state.Tables = slices.DeleteFunc(slices.Clone(tables), func(t capturedTable) bool {
		return slices.ContainsFunc(fresh, func(f *catalog.Table) bool { return f.OID == t.OID })
	})
	s.assigner.Tables(s.tasks())
	s.state.Tables = tables
	tasks := s.tasks()
	for i := range tasks {
		tasks[i].Sent = back[tables[i].OID]
	}
	s.standing = s.assigner.Tables(tasks)
}

// mends reports whether an order to copy every table anew has come that is the remedy of err: the log that the state needs is
// gone, and with a new slot another one begins.
func (s *setup) mends(err error) bool {
	order := s.cfg.Again
	if order == nil || order.Seq <= s.state.Again || len(order.Tables) > 0 {
		return false
	}
	return slices.Contains([]fault.Code{
		fault.PGSlotMissing, fault.PGSlotLost, fault.PGSlotForeign, fault.PGBehind, fault.PGAhead, fault.PGTimelineChanged, fault.PGPublicationMissing,
	}, fault.CodeOf(err))
}

// renew begins anew with a log of its own: a new slot, or what the user's has, and every table that matches today emptied and
// copied. What is between the old log and the new one is in the copies.
func (s *setup) renew(ctx context.Context, log *readerState, why error) error {
	s.cfg.Logger.WarnContext(ctx, "log begins anew and every table is copied", slog.String("instead_of", why.Error()))
	chosen, err := s.choose(ctx)
	if err != nil {
		return err
	}
	if err := s.take(ctx, chosen, chosen, log); err != nil {
		return err
	}
	s.state.Slot, s.state.System = s.source.Slot, s.server.System
	if s.state.Start, err = s.slot(ctx); err != nil {
		return err
	}
	begin := readerState{Version: stateVersion, Position: core.Position{End: s.state.Start}, Schemas: map[rows.TableID]schemaVersion{}}
	if log != nil {
		begin.Schemas = log.Schemas
	}
	s.assigner.Renew(mustMarshal(begin))
	s.standing = true
	s.state.Again, s.state.Applied = s.cfg.Again.Seq, s.cfg.Applied
	return nil
}
