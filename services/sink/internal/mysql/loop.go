package mysql

import (
	"context"
	"fmt"
	"slices"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/spec"
	"weir.dev/weir/services/sink/internal/transact"
)

// checkLoop refuses a table that a source of the same job captures: its changes would come back as changes. Whether a source
// reads this very server is asked of both, since one server has many addresses.
func (c *Committer) checkLoop(ctx context.Context, s *session, table string, at transact.Place) error {
	for _, src := range c.cfg.Sources {
		my, ok := src.Config.(*spec.MySQLSource)
		if !ok || !my.Tables.Match(c.ledger.database, table) {
			continue
		}
		url, err := c.cfg.Resolve(my.URL.Raw())
		if err != nil {
			return fmt.Errorf("resolve sources.%s.url: %w", src.Name, err)
		}
		from := transact.Place{Sink: "sources." + src.Name}
		server, err := newServer(url, from)
		if err != nil {
			return err
		}
		theirs, err := server.open(ctx, from)
		if err != nil {
			return err
		}
		defer theirs.close()
		here, err := s.self(ctx)
		if err != nil {
			return err
		}
		there, err := theirs.self(ctx)
		if err != nil {
			return err
		}
		if slices.Equal(here, there) {
			return fault.New(fault.SinkOwnSource, at.String(), "source "+src.Name+" captures it, from this very server")
		}
	}
	return nil
}

// self tells a server from others.
func (s *session) self(ctx context.Context) ([]string, error) {
	found, err := s.query(ctx, "SELECT @@version, @@hostname, @@port, @@server_id, @@datadir")
	if err != nil {
		return nil, err
	}
	var words []string
	for i := range found[0] {
		words = append(words, found[0].text(i))
	}
	return words, nil
}
