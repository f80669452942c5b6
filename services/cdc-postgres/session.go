package cdcpostgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"weir.dev/weir/services/cdc-postgres/internal/pgrepl"
)

// idle is after how long a session is given back that nothing is asked of: a copy ends, a job goes on.
const idle = 5 * time.Second

// session is a connection for queries: opened when it is first needed, and again once it was closed because it broke. It
// belongs to one goroutine.
type session struct {
	target *pgrepl.Target
	conn   *pgx.Conn
}

func (s *session) open(ctx context.Context) (*pgx.Conn, error) {
	if s.conn == nil {
		conn, err := s.target.SQL(ctx)
		if err != nil {
			return nil, err
		}
		s.conn = conn
	}
	return s.conn, nil
}

// unused is signalled after a while in which the owner has waited on it, if anything is open.
func (s *session) unused() <-chan time.Time {
	if s.conn == nil {
		return nil
	}
	return time.After(idle)
}

// close may be called at any time, also when nothing is open and when ctx has ended.
func (s *session) close(ctx context.Context) {
	if s.conn != nil {
		_ = s.conn.Close(context.WithoutCancel(ctx))
		s.conn = nil
	}
}
