package cli

import (
	"context"

	"github.com/spf13/cobra"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/services/weir/internal/control"
)

// session is a connection with a client on it.
type session struct {
	*control.Client
	conn *bus.Conn
}

func (s session) Close() { s.conn.Close() }

// open connects and opens the records.
func (s *settings) open(ctx context.Context) (session, error) {
	conn, err := s.connect(ctx)
	if err != nil {
		return session{}, err
	}
	wait, cancel := context.WithTimeout(ctx, reach)
	defer cancel()
	c, err := control.Open(wait, conn)
	if err != nil {
		conn.Close()
		return session{}, err
	}
	return session{Client: c, conn: conn}, nil
}

// with opens a session around a command.
func (s *settings) with(run func(ctx context.Context, c session, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := s.open(cmd.Context())
		if err != nil {
			return err
		}
		defer c.Close()
		return run(cmd.Context(), c, args)
	}
}
