package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"syscall"
	"time"

	"weir.dev/weir/pkg/fault"
)

// Server serves the operational endpoints of a process: /livez, /readyz, /metrics, /debug/pprof.
type Server struct {
	listener net.Listener
	mux      *http.ServeMux
	http     *http.Server
}

// Listen takes the address. flag names the setting in the remedy when it is taken.
func Listen(ctx context.Context, addr, flag string, h *Health, metrics http.Handler) (*Server, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		if errors.Is(err, syscall.EADDRINUSE) {
			return nil, fault.Wrap(err, fault.AppListenTaken, addr, "another process listens there", "addr", addr, "flag", flag)
		}
		return nil, fault.Wrap(err, fault.AppListenFailed, addr, err.Error(), "flag", flag)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /livez", h.serve(true))
	mux.Handle("GET /readyz", h.serve(false))
	mux.Handle("GET /metrics", metrics)
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return &Server{listener: l, mux: mux, http: &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}}, nil
}

// Addr returns the address with the port that was chosen.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Handle adds a handler. It panics when the pattern is taken.
func (s *Server) Handle(pattern string, h http.Handler) { s.mux.Handle(pattern, h) }

// Run serves until ctx ends, then lets requests in hand finish for a second. It returns nil after that.
func (s *Server) Run(ctx context.Context) error {
	failed := make(chan error, 1)
	go func() { failed <- s.http.Serve(s.listener) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve %s: %w", s.Addr(), err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := s.http.Shutdown(grace); err != nil {
		_ = s.http.Close()
	}
	<-failed //nolint:errcheck // http.ErrServerClosed, after the shutdown above
	return nil
}
