package meshtest

import (
	"bufio"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// ServerOptions selects a server. The zero value is a private one: JetStream, in-process connections only.
type ServerOptions struct {
	// Dir is the JetStream directory; empty takes a temporary one of the test.
	Dir string
	// TCP listens on a free port of the loopback interface. Never inside a bubble: a goroutine that waits for the
	// network keeps virtual time from advancing.
	TCP bool
	// SyncAlways is sync_interval: always, what the shipped server configuration uses.
	SyncAlways bool
	// MaxPayload is the server's max_payload in bytes; zero means 8 MiB as in the shipped configuration.
	MaxPayload int32
	// Configure changes the server's options last: users, permissions, limits. Optional.
	Configure func(*server.Options)
}

// Server is a real nats-server with JetStream inside the test process. It may be started inside a synctest bubble when
// [Main] runs the package's tests. Restart and Shutdown are for one goroutine; clients may connect at any time.
type Server struct {
	t    testing.TB
	opts ServerOptions
	dir  string
	port int
	srv  atomic.Pointer[server.Server]
}

// StartServer starts a server that is ready for connections and stops it when the test ends. Inside a bubble call
// Shutdown yourself before the bubble's function returns, so that no goroutine of the server outlives it.
func StartServer(t testing.TB, opts ServerOptions) *Server {
	t.Helper()
	s := &Server{t: t, opts: opts, dir: opts.Dir, port: server.RANDOM_PORT}
	if s.dir == "" {
		s.dir = t.TempDir()
	}
	s.start()
	t.Cleanup(s.Shutdown)
	return s
}

func (s *Server) start() {
	s.t.Helper()
	o := &server.Options{
		ServerName: "meshtest",
		DontListen: !s.opts.TCP,
		Host:       "127.0.0.1",
		Port:       s.port,
		JetStream:  true,
		StoreDir:   s.dir,
		SyncAlways: s.opts.SyncAlways,
		MaxPayload: 8 << 20,
		NoLog:      true,
		NoSigs:     true,
		// Bounds that a laptop has: without them the server reserves shares of the machine's memory and disk.
		JetStreamMaxMemory: 4 << 30,
		JetStreamMaxStore:  16 << 30,
	}
	if s.opts.MaxPayload > 0 {
		o.MaxPayload = s.opts.MaxPayload
	}
	if s.opts.Configure != nil {
		s.opts.Configure(o)
	}
	srv, err := server.NewServer(o)
	if err != nil {
		s.t.Fatalf("make nats server: %v", err)
	}
	srv.Start()
	if !srv.ReadyForConnections(10 * time.Second) {
		srv.Shutdown()
		s.t.Fatal("nats server is not ready after 10 s")
	}
	s.srv.Store(srv)
	if s.opts.TCP {
		// A restart listens on the same port, so that clients find the server again.
		if a, ok := srv.Addr().(*net.TCPAddr); ok {
			s.port = a.Port
		}
	}
}

// InProcessConn opens a connection without a socket; with it a Server satisfies bus.Options.InProcess.
func (s *Server) InProcessConn() (net.Conn, error) {
	srv := s.srv.Load()
	if !srv.Running() {
		return nil, fmt.Errorf("connect to test server: %w", net.ErrClosed)
	}
	return srv.InProcessConn()
}

// URL is the address for TCP clients; empty without ServerOptions.TCP.
func (s *Server) URL() string {
	if !s.opts.TCP {
		return ""
	}
	return fmt.Sprintf("nats://127.0.0.1:%d", s.port)
}

// NATS is the server itself, for tests that look inside.
func (s *Server) NATS() *server.Server { return s.srv.Load() }

// Shutdown stops the server and waits until it is gone. It may be called more than once.
func (s *Server) Shutdown() {
	s.NATS().Shutdown()
	s.NATS().WaitForShutdown()
}

// Restart stops the server gracefully and starts it on the same directory and port. Memory streams are gone afterwards,
// configuration included; file streams are as they were. Inside a bubble no client may be connected or connect meanwhile
// (see [Link.Down]): while it shuts down the server sleeps with a lock held, and whoever then waits for that lock, which
// new requests do, stops virtual time for ever.
func (s *Server) Restart() {
	s.t.Helper()
	s.RestartAfter(func(string) {})
}

// RestartAfter is a Restart with something done to the JetStream directory while no server has it open.
func (s *Server) RestartAfter(do func(dir string)) {
	s.t.Helper()
	s.Shutdown()
	do(s.dir)
	s.start()
}

// EmptyStream takes all messages out of a stream, as a server does that has lost them.
func (s *Server) EmptyStream(name string) error {
	nc, err := s.InProcessConn()
	if err != nil {
		return err
	}
	defer nc.Close()
	// The client library stays in pkg/bus, and the bus offers no way to do this.
	from := bufio.NewReader(nc)
	if _, err := from.ReadString('\n'); err != nil {
		return err
	}
	_, err = fmt.Fprintf(nc, "CONNECT {\"verbose\":false}\r\nPUB $JS.API.STREAM.PURGE.%s 0\r\n\r\nPING\r\n", name)
	for line := ""; err == nil && line != "PONG\r\n"; {
		line, err = from.ReadString('\n')
	}
	return err
}
