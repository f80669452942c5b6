package cdcpostgres

import (
	"context"
	"fmt"
	"slices"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/services/cdc-postgres/internal/catalog"
	"weir.dev/weir/services/cdc-postgres/internal/pgrepl"
)

// publish has the publication send these tables, and those of leaving until no epoch needs them any more. One of ours is
// made, or altered; one that was given is only looked at.
func (s *setup) publish(ctx context.Context, tables, leaving []*catalog.Table) error {
	err := s.makePublication(ctx, tables, leaving)
	if err != nil {
		return err
	}
	p, err := s.published(ctx)
	s.state.Published = p.OID
	return err
}

func (s *setup) makePublication(ctx context.Context, tables, leaving []*catalog.Table) error {
	if s.source.Publication != "" {
		return s.given(ctx, tables)
	}
	s.state.Publication = s.owner().Publication()
	for _, t := range tables {
		if !t.Owned && !s.server.Superuser {
			return fault.New(fault.PGNoCreate, s.where, fmt.Sprintf("only the owner of table %s may publish it", t.Name),
				"role", s.target.User(), "database", s.target.Database(), "publication", s.state.Publication, "tables", t.Name.Sanitize())
		}
	}
	if !s.restored && !s.server.CanCreate {
		return fault.New(fault.PGNoCreate, s.where, fmt.Sprintf("role %q has no CREATE right on database %q", s.target.User(), s.target.Database()),
			"role", s.target.User(), "database", s.target.Database(), "publication", s.state.Publication, "tables", tables[0].Name.Sanitize())
	}
	return s.send(ctx, slices.Concat(tables, leaving))
}

// given checks a publication that is the user's.
func (s *setup) given(ctx context.Context, tables []*catalog.Table) error {
	s.state.Publication = s.source.Publication
	p, err := s.published(ctx)
	if err != nil {
		return err
	}
	if !p.Insert || !p.Update || !p.Delete || !p.Truncate {
		return fault.New(fault.PGPublicationMissing, s.where+".publication", fmt.Sprintf(
			"publication %q leaves out some operations; it needs insert, update, delete and truncate", s.state.Publication), "publication", s.state.Publication)
	}
	for _, t := range tables {
		if !p.Tables[t.Name] {
			return notPublished(s.where+".publication", s.state.Publication, t, p.ViaRoot)
		}
	}
	return nil
}

// published looks up the publication of the state.
func (s *setup) published(ctx context.Context) (pgrepl.Publication, error) {
	p, ok, err := s.target.Publication(ctx, s.conn, s.state.Publication)
	if err != nil || ok {
		return p, err
	}
	if s.source.Publication != "" {
		return p, fault.New(fault.PGPublicationMissing, s.where+".publication", fmt.Sprintf("there is no publication %q", s.state.Publication),
			"publication", s.state.Publication)
	}
	return p, s.unpublished("publication %q is gone, and the log from before cannot be sent through another")
}

// unpublished is the fault of a publication that is not the one the log was written under.
func (s *setup) unpublished(why string) error {
	e := fault.New(fault.PGPublicationMissing, s.where, fmt.Sprintf(why, s.state.Publication))
	e.Remedy = remedyCopy(s.cfg.Job)
	if slot := s.source.Slot; slot != "" { // what is given is not ours to make anew
		e.Remedy = fmt.Sprintf("SELECT pg_drop_replication_slot('%s'); SELECT pg_create_logical_replication_slot('%[1]s', 'pgoutput'); then: %s",
			slot, e.Remedy)
	}
	return e
}

// send gives a publication of ours exactly these tables.
func (s *setup) send(ctx context.Context, tables []*catalog.Table) error {
	published := make([]pgrepl.Published, len(tables))
	for i, t := range tables {
		published[i].TableName = t.Name
	}
	if err := s.list(ctx, tables, published); err != nil {
		return err
	}
	return s.target.MakePublication(ctx, s.conn, s.state.Publication, s.server.Version, published)
}

// resend gives a publication of ours exactly the tables that are captured, with the columns that they have today.
func (s *setup) resend(ctx context.Context) error {
	all, err := catalog.List(ctx, s.conn)
	if err != nil {
		return s.target.Fault(err)
	}
	tables := slices.DeleteFunc(all, func(t *catalog.Table) bool {
		return !slices.ContainsFunc(s.state.Tables, func(c capturedTable) bool { return c.OID == t.OID })
	})
	if err := catalog.Describe(ctx, s.conn, tables); err != nil || len(tables) == 0 {
		return s.target.Fault(err)
	}
	return s.send(ctx, tables)
}

// narrow takes the tables out of a publication of ours that no durable epoch needs any more.
func (s *setup) narrow(ctx context.Context) error {
	if s.source.Publication != "" {
		return nil
	}
	p, err := s.published(ctx)
	if err != nil {
		return err
	}
	for name := range p.Tables {
		if !slices.ContainsFunc(s.state.Tables, func(c capturedTable) bool { return c.TableName == name }) {
			return s.resend(ctx)
		}
	}
	return nil
}

// list names the columns to be sent of tables of which some are not to leave the server.
func (s *setup) list(ctx context.Context, tables []*catalog.Table, published []pgrepl.Published) error {
	if s.veil == nil {
		return nil
	}
	for i, t := range tables {
		one, err := catalog.OneIdentity(ctx, s.conn, t)
		if err != nil {
			return s.target.Fault(err)
		}
		published[i].Columns = s.veil.listed(t, s.server.Version, one)
	}
	return nil
}

// compare holds the state against the server of today. A captured table that has left the publication is an error: its
// changes would be missing without a word. It returns the tables that match and are not captured.
func (s *setup) compare(ctx context.Context) ([]skippedTable, error) {
	p, err := s.published(ctx)
	if err != nil {
		return nil, err
	}
	all, err := catalog.List(ctx, s.conn)
	if err != nil {
		return nil, s.target.Fault(err)
	}
	var skipped []skippedTable
	for _, t := range all {
		captured := slices.ContainsFunc(s.state.Tables, func(c capturedTable) bool { return c.OID == t.OID })
		switch {
		case captured && !p.Tables[t.Name]:
			return nil, notPublished(s.where, s.state.Publication, t, p.ViaRoot)
		case captured, !s.captures(t.Name):
		case t.Obstacle != "":
			skipped = append(skipped, skippedTable{t.Name, "not captured: " + t.Obstacle + " is not in the log"})
		default:
			skipped = append(skipped, skippedTable{t.Name, "not captured: made after the job was set up; `weir job apply FILE` adds it"})
		}
	}
	return skipped, nil
}
