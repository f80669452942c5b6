package cdcpostgres

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"

	"weir.dev/weir/pkg/cdc"
	"weir.dev/weir/pkg/cdc/halves"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/position"
	"weir.dev/weir/services/cdc-postgres/internal/catalog"
	"weir.dev/weir/services/cdc-postgres/internal/pgrepl"
)

// setup is the opening of an enumerator: checks, then publication, then slot. In this order, because the server decodes
// every change with the catalog of its own moment: a slot older than its publication can never be read.
type setup struct {
	*opened
	conn   *pgx.Conn
	server pgrepl.Server

	restored bool
	state    enumeratorState
	assigner *cdc.Assigner
	skipped  []skippedTable
	standing bool // tables are to be copied before the log goes on
	news     bool // no durable epoch has the state as it is now
}

// skippedTable is a table that matches and is not captured.
type skippedTable struct {
	name pgrepl.TableName
	why  string
}

func (s *setup) run(ctx context.Context) error {
	var err error
	if s.server, err = s.target.Server(ctx, s.conn); err != nil {
		return err
	}
	if err := s.target.Check(s.server); err != nil {
		return err
	}
	if len(s.cfg.Restore) > 0 {
		return s.restore(ctx)
	}
	if s.cfg.Adopted != nil {
		return s.takeOver(ctx)
	}
	return s.create(ctx)
}

// restore goes on from a durable epoch: orders that have come since are taken, and the log has to go on at its position.
func (s *setup) restore(ctx context.Context) error {
	state, err := decodeEnumeratorState(s.cfg.Restore, s.where)
	if err != nil {
		return err
	}
	s.restored, s.state = true, *state
	s.state.cover(s.veil)
	log, err := s.resume()
	if err != nil {
		return err
	}
	if err := s.rewind(ctx); err != nil {
		return err
	}
	if s.server.System.Identifier != state.System.Identifier {
		return systemChanged(s.where, state.System, s.server.System)
	}
	if s.server.DatabaseOID != state.Database {
		return fault.New(fault.PGSystemChanged, s.where, fmt.Sprintf("the database %q was made again (oid %d, was %d)",
			s.target.Database(), s.server.DatabaseOID, state.Database), "where", s.where)
	}
	if err := s.intact(ctx, log); err != nil {
		if s.mends(err) {
			return s.renew(ctx, log, err)
		}
		return err
	}
	if err := s.amend(ctx, log); err != nil {
		return err
	}
	if s.skipped, err = s.compare(ctx); err != nil {
		return err
	}
	if err := s.again(ctx, log); err != nil {
		return err
	}
	return s.realign(ctx, log)
}

// intact checks that the slot is the one that the state names, and that it has the log from the position on.
func (s *setup) intact(ctx context.Context, log *readerState) error {
	slot, err := checkSlot(ctx, s.conn, s.target, s.state.Slot, s.state.position(log))
	if err != nil {
		return err
	}
	if s.server.System.Timeline != s.state.System.Timeline {
		// Only a slot that was synchronised to the standby still belongs to the same history.
		if !slot.Failover {
			return fault.New(fault.PGTimelineChanged, s.where, fmt.Sprintf("timeline %d, was %d", s.server.System.Timeline, s.state.System.Timeline),
				"job", s.cfg.Job)
		}
		s.cfg.Logger.WarnContext(ctx, "server is on another timeline", slog.Uint64("timeline", uint64(s.server.System.Timeline)))
		s.state.System.Timeline = s.server.System.Timeline
	}
	p, err := s.published(ctx)
	if err != nil || s.state.Published == 0 || p.OID == s.state.Published {
		return err
	}
	return s.unpublished("publication %q was dropped and made again, and the log from before cannot be sent through it")
}

// create makes what the first attempt of a life needs, and every attempt until an epoch is durable.
func (s *setup) create(ctx context.Context) error {
	tables, err := s.choose(ctx)
	if err != nil {
		return err
	}
	s.state = enumeratorState{
		Version: stateVersion, Slot: s.source.Slot, Publication: s.source.Publication,
		System: s.server.System, Database: s.server.DatabaseOID, Applied: s.cfg.Applied,
	}
	if s.cfg.Again != nil {
		s.state.Again = s.cfg.Again.Seq // everything is copied in any case
	}
	if s.state.Tables, err = s.capture(ctx, tables, nil); err != nil {
		return err
	}
	s.assigner = cdc.NewAssigner(s.copying(), s.tasks())
	if err := s.publish(ctx, tables, nil); err != nil {
		return err
	}
	s.state.Start, err = s.slot(ctx)
	return err
}

// resume goes on with the copy of a durable epoch, and returns where the log was; nil when it was not begun.
func (s *setup) resume() (log *readerState, err error) {
	if s.assigner, err = halves.Resume(s.copying(), s.state.Copy, s.cfg.Parts, s.where); err != nil {
		return nil, err
	}
	s.standing = s.assigner.Tables(s.tasks())
	if saved := s.assigner.Log(); saved != nil {
		return decodeReaderState(saved, s.where)
	}
	return nil, nil
}

func (s *setup) copying() cdc.Config { return halves.Copying(s.source.Snapshot, s.cfg.Readers) }

func (s *setup) tasks() []cdc.Table {
	all := make([]cdc.Table, len(s.state.Tables))
	for i := range s.state.Tables {
		all[i] = s.state.Tables[i].task()
	}
	return all
}

// choose finds the tables that match and can be read.
func (s *setup) choose(ctx context.Context) ([]*catalog.Table, error) {
	all, err := catalog.List(ctx, s.conn)
	if err != nil {
		return nil, s.target.Fault(err)
	}
	var tables []*catalog.Table
	for _, t := range all {
		switch {
		case !s.captures(t.Name):
		case t.Obstacle != "":
			s.skipped = append(s.skipped, skippedTable{t.Name, "not captured: " + t.Obstacle + " is not in the log"})
		default:
			tables = append(tables, t)
		}
	}
	if len(tables) == 0 {
		return nil, fault.New(fault.PGNoTables, s.where+".tables", fmt.Sprintf("none of the %d tables of database %q matches", len(all), s.target.Database()))
	}
	if err := catalog.Describe(ctx, s.conn, tables); err != nil {
		return nil, s.target.Fault(err)
	}
	if err := s.veil.used(tables); err != nil {
		return nil, err
	}
	if err := noIdentity(s.where, tables); err != nil {
		return nil, err
	}
	if s.source.Before {
		if err := noBefore(s.where, tables); err != nil {
			return nil, err
		}
	}
	return tables, nil
}

// slot makes the slot of this attempt, or checks the one that was given, and returns where its log begins. Slots of
// earlier attempts stay until an epoch is durable, unless there is no room otherwise: no epoch that names them can
// become durable any more, since this attempt was started without one.
func (s *setup) slot(ctx context.Context) (position.LSN, error) {
	if s.state.Slot != "" {
		slot, ok, err := s.target.Slot(ctx, s.conn, s.state.Slot)
		if err != nil {
			return 0, err
		}
		if !ok {
			return 0, fault.New(fault.PGSlotMissing, s.where+".slot", fmt.Sprintf("there is no slot %q", s.state.Slot), "slot", s.state.Slot)
		}
		return slot.Confirmed, s.target.CheckUsable(slot)
	}
	s.state.Slot = s.owner().Slot(s.cfg.Fence)
	if s.server.SlotsUsed >= s.server.SlotsLimit {
		if err := s.dropOlder(ctx); err != nil {
			return 0, err
		}
		var err error
		if s.server, err = s.target.Server(ctx, s.conn); err != nil {
			return 0, err
		}
	}
	if err := s.target.CheckRoom(s.server); err != nil {
		return 0, err
	}
	return s.target.CreateSlot(ctx, s.conn, s.state.Slot, s.server.Version, func(what string) {
		s.cfg.Logger.InfoContext(ctx, "replication slot waits", slog.String("slot", s.state.Slot), slog.String("for", what))
	})
}

// dropOlder drops the slots of attempts before this one.
func (s *setup) dropOlder(ctx context.Context) error {
	return s.dropSlots(ctx, s.conn, s.older, false)
}

// older reports whether a slot of this life was made by an earlier attempt and is neither in use nor a savepoint's.
func (s *setup) older(name string) bool {
	_, kept := s.owner().Kept(name)
	return name != s.state.Slot && !kept && s.owner().Fence(name) < s.cfg.Fence
}
