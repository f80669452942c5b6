package cdcmysql

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"weir.dev/weir/pkg/cdc"
	"weir.dev/weir/pkg/cdc/halves"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/position"
	"weir.dev/weir/services/cdc-mysql/internal/catalog"
	"weir.dev/weir/services/cdc-mysql/internal/core"
	"weir.dev/weir/services/cdc-mysql/internal/server"
)

// setup is the opening of an enumerator: checks, then the tables and where the log begins.
type setup struct {
	*opened
	session *server.Session
	facts   *server.Facts

	state    enumeratorState
	assigner *cdc.Assigner
	skipped  []skippedTable
	standing bool // tables are to be copied anew before the log goes on
	charsets map[uint64]string
}

// skippedTable is a table that matches and is not captured.
type skippedTable struct {
	name core.Name
	why  string
}

func (s *setup) run(ctx context.Context) error {
	var err error
	if s.facts, err = s.session.Facts(ctx); err != nil {
		return err
	}
	if err := s.facts.Check(s.where); err != nil {
		return err
	}
	if err := s.checkCommits(ctx); err != nil {
		return err
	}
	if s.charsets, err = catalog.Charsets(ctx, s.session, s.facts); err != nil {
		return err
	}
	if len(s.cfg.Restore) > 0 {
		err = s.restore(ctx)
	} else {
		err = s.create(ctx)
	}
	if err != nil {
		return err
	}
	s.cfg.Logger.InfoContext(ctx, "source set up", slog.String("start", s.state.Start.Public().String()), slog.Int("tables", len(s.state.Tables)),
		slog.Bool("restored", len(s.cfg.Restore) > 0), slog.String("lifecycle", s.assigner.Lifecycle().String()))
	return nil
}

// checkCommits refuses a copy of a server whose transactions have no names and that does not say which commits are under way.
func (s *setup) checkCommits(ctx context.Context) error {
	if s.facts.Family != position.MySQLBinlog || halves.Mode(s.source.Snapshot) == cdc.Never {
		return nil
	}
	return s.session.CheckCommits(ctx)
}

// create makes what the first attempt of a life needs, and every attempt until an epoch is durable. Where the log begins is
// found before the tables are looked at: a change of their columns behind it is in the log.
func (s *setup) create(ctx context.Context) error {
	start, err := s.head(ctx)
	if err != nil {
		return err
	}
	s.state = enumeratorState{Version: stateVersion, Start: start, Resume: start, UUID: s.facts.UUID, Applied: s.cfg.Applied}
	if s.cfg.Again != nil {
		s.state.Again = s.cfg.Again.Seq // everything is copied in any case
	}
	tables, err := s.choose(ctx)
	if err != nil {
		return err
	}
	for i, t := range tables {
		c, err := s.capture(t, cdc.TableID(i+1), schemaVersion{})
		if err != nil {
			return err
		}
		s.state.Tables = append(s.state.Tables, c)
	}
	s.assigner = cdc.NewAssigner(s.copying(), s.tasks())
	return nil
}

// head is where the log is now: everything before it is visible, or, without names of transactions, logged.
func (s *setup) head(ctx context.Context) (core.Point, error) {
	p := core.Point{Family: s.facts.Family}
	var err error
	switch p.Family {
	case position.MySQLGTID:
		p.GTIDs, err = s.session.Executed(ctx)
	case position.MariaDBGTID:
		p.Maria, err = s.session.MariaLogged(ctx)
	default:
		p.Binlog, err = s.session.Status(ctx, s.facts)
	}
	return p, err
}

// choose finds the tables that match and can be read.
func (s *setup) choose(ctx context.Context) ([]*catalog.Table, error) {
	all, err := catalog.List(ctx, s.session)
	if err != nil {
		return nil, err
	}
	tables := slices.DeleteFunc(slices.Clone(all), func(t *catalog.Table) bool { return !s.captures(t.Name) || t.Obstacle != "" })
	if len(tables) == 0 {
		return nil, fault.New(fault.MYNoTables, s.where+".tables", fmt.Sprintf("none of the %d tables that user %q can see matches", len(all), s.target.User()))
	}
	s.skipped = s.outside(all, nil)
	if err := catalog.Describe(ctx, s.session, tables); err != nil {
		return nil, err
	}
	return tables, s.used(tables)
}

// outside lists the tables that match and are not captured, with the reason.
func (o *opened) outside(all []*catalog.Table, captured []capturedTable) []skippedTable {
	var other []skippedTable
	known := byName(captured)
	for _, t := range all {
		switch {
		case known[t.Name] != nil || !o.captures(t.Name):
		case t.Obstacle != "":
			other = append(other, skippedTable{t.Name, "not captured: " + t.Obstacle + " cannot be copied exactly"})
		case captured != nil:
			other = append(other, skippedTable{t.Name, "not captured: made after the job was set up; `weir job apply FILE` adds it"})
		}
	}
	return other
}

// restore goes on with a durable epoch, if the server still is what the state says and has the log behind the position. An order
// to copy everything anew begins with the log as it is now, whatever became of the one before.
func (s *setup) restore(ctx context.Context) error {
	state, err := decodeEnumeratorState(s.cfg.Restore, s.where)
	if err != nil {
		return err
	}
	s.state = *state
	log, err := s.resume()
	if err != nil {
		return err
	}
	if order := s.cfg.Again; order != nil && order.Seq > s.state.Again && len(order.Tables) == 0 {
		return s.renew(ctx, log)
	}
	s.state.Resume = s.state.Start
	if log != nil {
		s.state.Resume = oldest(log.Pending, log.Position.Before)
	}
	if err := s.reachable(ctx, &s.state.Resume); err != nil {
		return err
	}
	if err := s.amend(ctx, log); err != nil {
		return err
	}
	all, err := catalog.List(ctx, s.session)
	if err != nil {
		return err
	}
	s.skipped = s.outside(all, s.state.Tables)
	if err := s.again(ctx, log); err != nil {
		return err
	}
	return s.realign(ctx, log)
}

// reachable proves that the server has the history up to a point, and the log behind it.
func (s *setup) reachable(ctx context.Context, at *core.Point) error {
	h, err := s.session.History(ctx, s.facts)
	if err != nil {
		return err
	}
	return s.judge(s.facts, h, s.state.UUID, at)
}

// judge is the fault of a server whose log cannot be read on from a point. uuid is that of the server that the point is of.
func (o *opened) judge(now *server.Facts, h *core.History, uuid string, at *core.Point) error {
	switch {
	case at.Family != now.Family:
		return o.foreign(fmt.Sprintf("the position is of family %s, the server now has %s", at.Family, now.Family))
	case at.Family == position.MySQLBinlog && now.UUID != uuid:
		return o.foreign("places in files belong to one server, and this is another")
	}
	switch verdict, why := h.Judge(at); verdict {
	case core.Lost:
		return fault.New(fault.MYPurged, o.where, why, "job", o.cfg.Job)
	case core.Foreign:
		return o.foreign(why)
	case core.Readable:
	}
	return nil
}

func (o *opened) foreign(why string) error {
	return fault.New(fault.MYOtherHistory, o.where, why, "where", o.where, "job", o.cfg.Job)
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

// introduction is what readers are told is read.
func (s *setup) introduction() []byte {
	read := s.state
	read.Copy, read.Standing, read.Charsets, read.MariaDB = nil, s.standing, s.charsets, s.facts.MariaDB
	return mustMarshal(read)
}
