package cdcpostgres

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
)

// keep has a slot of its own keep the log for each savepoint: a copy of the job's slot, made before the savepoint's barrier
// passes, so that it is confirmed no further than the savepoint's cut.
// https://www.postgresql.org/docs/current/functions-admin.html#FUNCTIONS-REPLICATION
func (k *keeper) keep(ctx context.Context, taking epoch.ID, all []epoch.ID) error {
	if taking != 0 && k.source.Slot != "" {
		return fault.New(fault.PGSavepoint, k.where+".slot", fmt.Sprintf("the slot %q is yours; a savepoint copies only a slot that Weir has made", k.source.Slot))
	}
	conn, err := k.target.SQL(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	slots, err := k.target.Slots(ctx, conn)
	if err != nil {
		return err
	}
	for _, s := range slots {
		e, kept := k.owner().Kept(s.Name)
		switch {
		case !kept:
		case e == taking:
			taking = 0 // an enumerator before this one has made it
		case !slices.Contains(all, e):
			if err := k.target.DropSlot(ctx, conn, s.Name, false); err != nil {
				return err
			}
			k.cfg.Logger.InfoContext(ctx, "savepoint's slot dropped", slog.String("slot", s.Name))
		}
	}
	if taking == 0 {
		return nil
	}
	server, err := k.target.Server(ctx, conn)
	if err != nil {
		return err
	}
	if err := k.target.CheckRoom(server); err != nil {
		return err
	}
	name := k.owner().Savepoint(taking)
	if err := k.target.CopySlot(ctx, conn, k.state.Slot, name); err != nil {
		return err
	}
	k.cfg.Logger.InfoContext(ctx, "savepoint's slot made", slog.String("slot", name))
	return nil
}

// rewind carries an order to go on from an older epoch out, once: the log is read through a copy of the slot that was kept for it,
// under the attempt's name. Where none was kept, the slot that the state names has to do, which is checked as ever.
func (s *setup) rewind(ctx context.Context) error {
	order := s.cfg.Restored
	if order == nil || order.Seq <= s.state.Restored {
		return nil
	}
	s.state.Restored, s.news = order.Seq, true
	kept := s.owner().Savepoint(order.Epoch)
	_, ok, err := s.target.Slot(ctx, s.conn, kept)
	if err != nil || !ok {
		return err
	}
	name := s.owner().Slot(s.cfg.Fence)
	if err := s.target.DropSlot(ctx, s.conn, name, true); err != nil {
		return err
	}
	if err := s.target.CopySlot(ctx, s.conn, kept, name); err != nil {
		return err
	}
	s.state.Slot = name
	s.cfg.Logger.InfoContext(ctx, "log goes on from a savepoint", slog.String("slot", name), slog.String("kept_by", kept))
	return nil
}
