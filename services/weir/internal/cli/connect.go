package cli

import (
	"context"
	"errors"
	"os"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/services/weir/internal/datadir"
)

// reach is how long a command waits for a server before it says that there is none.
const reach = 5 * time.Second

// address finds the mesh: the flag, then NATS_URL, then the running `weir up` of the data directory.
func (s *settings) address() (string, error) {
	if s.nats != "" {
		return s.nats, nil
	}
	if url := os.Getenv("NATS_URL"); url != "" {
		return url, nil
	}
	if up, ok := datadir.Find(s.dataDir); ok {
		return up.NATS, nil
	}
	return "", fault.New(fault.CLINotRunning, "--data-dir "+s.dataDir, "no --nats, no NATS_URL, and no `weir up` holds this directory", "dir", s.dataDir)
}

// connect opens the bus. The caller closes it.
func (s *settings) connect(ctx context.Context) (*bus.Conn, error) {
	url, err := s.address()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, reach)
	defer cancel()
	c, err := bus.Connect(ctx, bus.Options{URL: url, Name: "weir-cli", Creds: s.creds})
	if err == nil {
		return c, nil
	}
	if _, coded := errors.AsType[*fault.Error](err); coded {
		return nil, err
	}
	return nil, fault.Wrap(err, fault.BusUnreachable, "NATS", "no server answered within "+reach.String(), "url", redactURL(url))
}
