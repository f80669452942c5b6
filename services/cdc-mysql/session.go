package cdcmysql

import (
	"context"

	"weir.dev/weir/services/cdc-mysql/internal/server"
)

// sql is a session that is opened when it is first needed, and again once it was closed because it broke. It belongs to one
// goroutine.
type sql struct {
	target  *server.Target
	session *server.Session
}

func (s *sql) open(ctx context.Context) (*server.Session, error) {
	if s.session == nil {
		session, err := s.target.Open(ctx)
		if err != nil {
			return nil, err
		}
		s.session = session
	}
	return s.session, nil
}

// close may be called at any time, also when nothing is open.
func (s *sql) close() {
	s.session.Close()
	s.session = nil
}
