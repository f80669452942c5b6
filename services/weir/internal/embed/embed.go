// Package embed runs the NATS server that `weir up` carries.
//
// Role: one JetStream server on a private store directory, reachable in process without a socket and on a listen
// address for the NATS CLI.
//
// Invariants: every write to a file stream is synced before it is acknowledged (sync_interval: always); the promise in
// docs/promises.md rests on it.
//
// Failure: a killed process leaves the store as it was; the next start recovers it. Streams in memory are gone, which
// the mesh treats as the loss of a cache.
package embed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"weir.dev/weir/pkg/fault"
)

// MaxPayload is the largest message the embedded server takes, in bytes; see docs/architecture.md.
const MaxPayload = 8 << 20

// Config says where the server keeps its files and listens.
type Config struct {
	// StoreDir holds the streams; it must belong to this process alone.
	StoreDir string
	// Listen is host:port for outside clients; empty serves this process only.
	Listen string
	// Monitor is host:port of the server's own monitoring; empty is none.
	Monitor string
	// MaxStore bounds the bytes of all streams; zero leaves it to the disk.
	MaxStore int64
	Logger   *slog.Logger
}

// Server is a running NATS server.
type Server struct {
	s *server.Server
}

// Start runs a server and waits until it accepts clients. A port that is taken is [fault.AppListenTaken].
func Start(ctx context.Context, cfg Config) (*Server, error) {
	opts := &server.Options{
		ServerName: "weir",
		JetStream:  true,
		StoreDir:   cfg.StoreDir,
		SyncAlways: true,
		MaxPayload: MaxPayload,
		NoSigs:     true,

		JetStreamMaxStore: cfg.MaxStore,

		DontListen: cfg.Listen == "",
	}
	if cfg.Listen != "" {
		if err := listenOn(ctx, opts, cfg.Listen); err != nil {
			return nil, err
		}
	}
	if cfg.Monitor != "" {
		host, port, err := net.SplitHostPort(cfg.Monitor)
		if err == nil {
			opts.HTTPHost = host
			opts.HTTPPort, err = strconv.Atoi(port)
		}
		if err != nil {
			return nil, fmt.Errorf("configure the embedded NATS server: monitoring at %q: %w", cfg.Monitor, err)
		}
	}
	s, err := server.NewServer(opts)
	if err != nil {
		return nil, fmt.Errorf("configure the embedded NATS server: %w", err)
	}
	s.SetLoggerV2(&logger{l: cfg.Logger}, false, false, false)
	s.Start()
	if !s.ReadyForConnections(30 * time.Second) {
		s.Shutdown()
		return nil, fault.New(fault.AppInternal, "embedded NATS server", "not ready within 30 s")
	}
	return &Server{s: s}, nil
}

// listenOn checks the address first, because the server only logs a port that is taken and then stays deaf.
func listenOn(ctx context.Context, opts *server.Options, addr string) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return fault.Wrap(err, fault.AppListenTaken, "--nats-listen "+addr, err.Error(), "flag", "--nats-listen")
	}
	host, port, err := net.SplitHostPort(l.Addr().String())
	if err == nil {
		opts.Host = host
		opts.Port, err = strconv.Atoi(port)
	}
	return errors.Join(err, l.Close())
}

// InProcessConn gives a client connection that does not cross a socket.
func (s *Server) InProcessConn() (net.Conn, error) { return s.s.InProcessConn() }

// URL is where outside clients connect; empty when the server does not listen.
func (s *Server) URL() string {
	if s.s.Addr() == nil {
		return ""
	}
	return s.s.ClientURL()
}

// Stop shuts the server down and waits for it.
func (s *Server) Stop() {
	s.s.Shutdown()
	s.s.WaitForShutdown()
}

// Loopback reports whether nobody outside this machine can reach a server on this address.
func Loopback(listen string) bool {
	if listen == "" {
		return true
	}
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
