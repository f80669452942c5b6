package verify

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-mysql-org/go-mysql/client"

	"weir.dev/weir/services/weir/verify/audit"
)

// myServer is a MySQL or MariaDB server.
type myServer struct{ url string }

// run runs statements in a session of its own.
func (s myServer) run(ctx context.Context, statements ...string) error {
	return s.ask(ctx, func(conn *client.Conn) error {
		for _, sql := range statements {
			if _, err := conn.Execute(sql); err != nil {
				return fmt.Errorf("%.60q: %w", sql, err)
			}
		}
		return nil
	})
}

// number asks for one value.
func (s myServer) number(ctx context.Context, sql string) (n int64, err error) {
	err = s.ask(ctx, func(conn *client.Conn) error {
		r, err := conn.Execute(sql)
		if err != nil {
			return err
		}
		if r.RowNumber() == 0 {
			return errors.New("there is none")
		}
		n, err = r.GetInt(0, 0)
		return err
	})
	return n, err
}

// session is one at the server.
type session struct {
	id                        int64
	command, state, statement string
}

// session finds one that meets a condition. It asks by SHOW: information_schema fails while any statement has characters that utf8mb3
// lacks.
func (s myServer) session(ctx context.Context, meets func(session) bool) (id int64, err error) {
	err = s.ask(ctx, func(conn *client.Conn) error {
		r, err := conn.Execute("SHOW PROCESSLIST")
		if err != nil {
			return err
		}
		for i := range r.RowNumber() {
			var one session
			if one.id, err = r.GetIntByName(i, "Id"); err != nil {
				return err
			}
			for name, field := range map[string]*string{"Command": &one.command, "State": &one.state, "Info": &one.statement} {
				if *field, err = r.GetStringByName(i, name); err != nil {
					return err
				}
			}
			if meets(one) {
				id = one.id
				return nil
			}
		}
		return errors.New("there is no such session")
	})
	return id, err
}

func (s myServer) ask(ctx context.Context, do func(*client.Conn) error) error {
	conn, err := audit.MySQLSession(ctx, s.url)
	if err != nil {
		return err
	}
	return errors.Join(do(conn), conn.Close())
}
