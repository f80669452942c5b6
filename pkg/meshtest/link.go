package meshtest

import (
	"net"
	"sync"
)

// Link is a way to a server that a test can disturb; like a [Server] it satisfies bus.Options.InProcess. All connections
// made through one Link share its fate. Safe for concurrent use, also inside a bubble.
type Link struct {
	s *Server

	mu       sync.Mutex
	replies  chan struct{} // nil, or closed when what the server sends may pass again
	requests bool          // what clients send is held
	down     bool          // nothing passes, nobody connects
	trips    []*Trip
	conns    map[*linkConn]struct{}
}

// NewLink makes an undisturbed way to the server.
func NewLink(s *Server) *Link { return &Link{s: s, conns: make(map[*linkConn]struct{})} }

// InProcessConn opens a connection.
func (l *Link) InProcessConn() (net.Conn, error) {
	nc, err := l.s.InProcessConn()
	if err != nil {
		return nil, err
	}
	c := &linkConn{Conn: nc, l: l, closed: make(chan struct{})}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		_ = nc.Close() // of a pipe: cannot fail
		return nil, net.ErrClosed
	}
	l.conns[c] = struct{}{}
	return c, nil
}

// HoldReplies keeps back what the server sends, until Release. Clients see a silent server that still does what they ask:
// every write is then of unknown result.
func (l *Link) HoldReplies() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.replies == nil {
		l.replies = make(chan struct{})
	}
}

// HoldRequests keeps back what clients send, until Release. With HoldReplies it is a partition, or a frozen process whose
// words arrive late.
func (l *Link) HoldRequests() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests = true
}

// Release lets everything that was held pass, in order.
func (l *Link) Release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests = false
	for c := range l.conns {
		c.flush()
	}
	if l.replies != nil {
		close(l.replies)
		l.replies = nil
	}
}

// Cut closes all connections; what is held is lost. Clients reconnect on their own.
func (l *Link) Cut() {
	l.mu.Lock()
	conns := l.conns
	l.conns = make(map[*linkConn]struct{})
	l.mu.Unlock()
	for c := range conns {
		_ = c.Close() // of a pipe: cannot fail
	}
}

// Up ends a Down.
func (l *Link) Up() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = false
}

// Down cuts all connections and refuses new ones until Up: for the server the process behind the link has died.
func (l *Link) Down() {
	l.mu.Lock()
	l.down = true
	l.mu.Unlock()
	l.Cut()
}

func (l *Link) held() (replies <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.replies
}

func (l *Link) holding() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.requests
}

// linkConn is the client's end of one connection.
type linkConn struct {
	net.Conn
	l      *Link
	once   sync.Once
	closed chan struct{}

	mu   sync.Mutex
	kept []byte
}

// Read passes on what the server sent, later when replies are held.
func (c *linkConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if held := c.l.held(); held != nil {
		select {
		case <-held:
		case <-c.closed:
			return 0, net.ErrClosed
		}
	}
	return n, err
}

// Write sends, or keeps a copy for later when requests are held; like a socket's buffer it does not block the client.
func (c *linkConn) Write(b []byte) (int, error) {
	sprung := c.l.spring(b)
	for _, t := range sprung {
		if t.Before {
			t.Do()
		}
	}
	n, err := c.send(b)
	for _, t := range sprung {
		if !t.Before {
			t.Do()
		}
	}
	return n, err
}

func (c *linkConn) send(b []byte) (int, error) {
	hold := c.l.holding()
	c.mu.Lock()
	defer c.mu.Unlock()
	if hold || len(c.kept) > 0 {
		c.kept = append(c.kept, b...)
		return len(b), nil
	}
	return c.Conn.Write(b)
}

func (c *linkConn) flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.kept) > 0 {
		_, _ = c.Conn.Write(c.kept) // a broken connection shows in the client's next read
		c.kept = nil
	}
}

// Close ends the connection and what is held on it.
func (c *linkConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}
