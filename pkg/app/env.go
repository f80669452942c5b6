package app

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"os"
	"regexp"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/config"
	"weir.dev/weir/pkg/telemetry"
)

// Env is what a service gets from the process around it.
type Env struct {
	// Service is the name of the service, Node the identity of the process.
	Service, Node string
	// HTTP is the address on which the process is served.
	HTTP string
	// Telemetry is the service's own.
	Telemetry telemetry.Telemetry
	// Bus says how to connect; a service connects once, with Connect.
	Bus bus.Options
	// Lookup resolves references on this node.
	Lookup config.Lookup
	// Health takes the service's checks; nil takes none.
	Health *Health
	// Handle adds a handler to the HTTP address of the process; it panics when the pattern is taken.
	Handle func(pattern string, h http.Handler)
	// Ready is called once, when the service has connected and taken up its work (A2).
	Ready func()

	provider *telemetry.Provider
}

// As is the environment of one of several services in this process: it has a name, a node identity and telemetry of
// its own, and shares the rest.
func (e Env) As(service string) Env {
	e.Service, e.Node, e.Bus.Name = service, e.Node+"-"+service, service
	if e.provider != nil {
		e.Telemetry = e.provider.For(service, e.Node)
		e.Bus.Logger = e.Telemetry.Logger
	}
	return e
}

// Run is a service: it blocks until ctx ends or its work has failed. When context.Cause(ctx) is [ErrStopped] it finishes
// or abandons the work in hand and returns; it may use context.WithoutCancel with a deadline of its own for that.
type Run[C any] func(ctx context.Context, env Env, cfg C) error

var notNode = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// NewNode returns a new identity for a process: <host>-<6 random>.
func NewNode() string {
	host, err := os.Hostname()
	if err != nil {
		host = "node"
	}
	host = notNode.ReplaceAllString(host, "-")
	var b [3]byte
	_, _ = rand.Read(b[:]) // never fails
	return host[:min(len(host), 48)] + "-" + hex.EncodeToString(b[:])
}
