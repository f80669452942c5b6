package postgres

import (
	"context"
	"net"
	"sync"
	"time"
)

// patience is how long a session waits for a word of the server: longer than the server lets any statement run. A server
// that is silent for longer is frozen, or the connection leads nowhere.
const patience = statementTimeout + 30*time.Second

// patientConn is a connection whose reads end some time. pgx sets deadlines of its own to end an operation with its
// context; those win.
type patientConn struct {
	net.Conn
	mu  sync.Mutex
	own bool // a deadline of pgx is set
}

// dialPatiently is pgconn's DialFunc.
func dialPatiently(ctx context.Context, network, addr string) (net.Conn, error) {
	d := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 3}}
	conn, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &patientConn{Conn: conn}, nil
}

// Read reads with a deadline.
func (c *patientConn) Read(p []byte) (int, error) {
	c.mu.Lock()
	if !c.own {
		if err := c.Conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
			c.mu.Unlock()
			return 0, err
		}
	}
	c.mu.Unlock()
	return c.Conn.Read(p)
}

// SetDeadline sets a deadline that Read leaves alone; the zero time gives it back.
func (c *patientConn) SetDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.own = !t.IsZero()
	return c.Conn.SetDeadline(t)
}

// SetReadDeadline is SetDeadline for reads.
func (c *patientConn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.own = !t.IsZero()
	return c.Conn.SetReadDeadline(t)
}
