package cdcpostgres

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"weir.dev/weir/pkg/cdc"
	"weir.dev/weir/pkg/cdc/halves"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/services/cdc-postgres/internal/catalog"
	"weir.dev/weir/services/cdc-postgres/internal/core"
	"weir.dev/weir/services/cdc-postgres/internal/pgrepl"
)

// takeOver goes on where the sinks are, without a state: the slot and the publication that this life has made are there still, and
// the slot has been told to forget nothing that a sink does not have. Nothing is copied. What the publication does not send was not
// captured, and is not from now on.
func (s *setup) takeOver(ctx context.Context) error {
	at, err := core.ParsePosition(s.cfg.Adopted.Positions[cdc.LogReader])
	if err != nil {
		return fault.Wrap(err, fault.SrcPosition, s.where, "the ledgers' position is not readable")
	}
	if at.IsTorn() || halves.Mode(s.source.Snapshot) == cdc.Only {
		return fault.New(fault.SrcPosition, s.where, fmt.Sprintf("nothing can go on from %s without a state: it lies within a transaction, or the source is a copy only", at.End))
	}
	s.state = enumeratorState{
		Version: stateVersion, Slot: s.source.Slot, Publication: s.source.Publication, Start: at.End,
		System: s.server.System, Database: s.server.DatabaseOID, Applied: s.cfg.Applied,
	}
	if s.state.Publication == "" {
		s.state.Publication = s.owner().Publication()
	}
	p, err := s.published(ctx)
	if err != nil {
		return err
	}
	s.state.Published = p.OID
	if s.state.Slot == "" {
		if err := s.findSlot(ctx); err != nil {
			return err
		}
	}
	slot, ok, err := s.target.Slot(ctx, s.conn, s.state.Slot)
	if err != nil {
		return err
	}
	if ok && slot.Confirmed > at.End {
		if s.source.Slot != "" && !s.cfg.Adopted.Trust {
			return fault.New(fault.PGSlotMoved, s.target.Where(), fmt.Sprintf("slot %q has confirmed %s, the targets are at %s", slot.Name, slot.Confirmed, at.End),
				"slot", slot.Name, "job", s.cfg.Job)
		}
		// Weir confirms only what every sink has committed, and an epoch without rows leaves no mark in a ledger: as nobody
		// else moves the slot there is nothing for a sink in between.
		at.End, s.state.Start = slot.Confirmed, slot.Confirmed
	}
	if _, err := checkSlot(ctx, s.conn, s.target, s.state.Slot, at); err != nil {
		return err
	}
	tables, err := s.choose(ctx)
	if err != nil {
		return err
	}
	tables = slices.DeleteFunc(tables, func(t *catalog.Table) bool {
		if p.Tables[t.Name] {
			return false
		}
		s.skipped = append(s.skipped, skippedTable{t.Name, "not captured: made after the job was set up; `weir job apply FILE` adds it"})
		return true
	})
	if s.state.Tables, err = s.capture(ctx, tables, nil); err != nil {
		return err
	}
	nothing := s.copying()
	nothing.Mode = cdc.Never
	s.assigner = cdc.NewAssigner(nothing, s.tasks())
	s.cfg.Logger.InfoContext(ctx, "log goes on where the sinks are", slog.String("slot", s.state.Slot), slog.String("from", at.End.String()))
	return s.leave(ctx)
}

// findSlot finds the slot of this life that has the most of the log: one that was made by mistake since begins later.
func (s *setup) findSlot(ctx context.Context) error {
	slots, err := s.target.Slots(ctx, s.conn)
	if err != nil {
		return err
	}
	var found *pgrepl.Slot
	for i, slot := range slots {
		if _, kept := s.owner().Kept(slot.Name); kept || !s.owner().Owns(slot.Name) {
			continue
		}
		if found == nil || slot.Confirmed < found.Confirmed {
			found = &slots[i]
		}
	}
	if found == nil {
		return fault.New(fault.PGSlotMissing, s.where, fmt.Sprintf("there is no slot of life %s", s.cfg.Life),
			"slot", s.owner().Slot(s.cfg.Fence), "job", s.cfg.Job)
	}
	s.state.Slot = found.Name
	return nil
}

// leave drops what another life of the job has made here, before it found that the sinks were not its own.
func (s *setup) leave(ctx context.Context) error {
	if s.cfg.Adopted.Left == "" || s.source.Slot != "" {
		return nil
	}
	left := core.Owner{Job: s.cfg.Job, Source: s.cfg.Source.Name, Life: s.cfg.Adopted.Left}
	slots, err := s.target.Slots(ctx, s.conn)
	if err != nil {
		return err
	}
	for _, slot := range slots {
		if !left.Owns(slot.Name) {
			continue
		}
		if err := s.target.DropSlot(ctx, s.conn, slot.Name, false); err != nil {
			return err
		}
	}
	if s.source.Publication != "" {
		return nil
	}
	return s.target.DropPublication(ctx, s.conn, left.Publication())
}
