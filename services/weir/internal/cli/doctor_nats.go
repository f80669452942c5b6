package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/preflight"
	"weir.dev/weir/services/weir/internal/busdoctor"
	"weir.dev/weir/services/weir/internal/control"
	"weir.dev/weir/services/weir/internal/datadir"
)

// nats looks at the server of the mesh. With a job, that no server was named is no fault: the mesh has said so already.
func (d *doctor) nats(ctx context.Context, s *settings, monitor string) error {
	p, err := s.patient(ctx, monitor)
	switch {
	case err == nil:
		d.findings = append(d.findings, busdoctor.Examine(p)...)
	case d.job == nil:
		return err
	case fault.CodeOf(err) != fault.CLINotRunning:
		d.findings = append(d.findings, preflight.Failed(busdoctor.Group, "connect", err, nil))
	}
	return nil
}

// patient takes the survey.
func (s *settings) patient(ctx context.Context, monitor string) (busdoctor.Patient, error) {
	conn, err := s.connect(ctx)
	if err != nil {
		return busdoctor.Patient{}, err
	}
	defer conn.Close()
	survey, err := conn.Survey(ctx)
	if err != nil {
		return busdoctor.Patient{}, err
	}
	p := busdoctor.Patient{Survey: survey, Embedded: s.embedded()}
	if b, err := control.ReadBelongings(ctx, conn); err == nil {
		p.Jobs, p.JobsKnown, p.Lives = b.Heads, true, b.Objects
	}
	if monitor != "" {
		p.Monitor, err = readMonitor(ctx, monitor)
		if err != nil {
			p.MonitorWhy = err.Error()
		}
	}
	return p, nil
}

// embedded reports whether the server is the one of the running `weir up` of the data directory.
func (s *settings) embedded() bool {
	up, running := datadir.Find(s.dataDir)
	url, err := s.address()
	return running && err == nil && url == up.NATS
}

// monitorTime bounds the question to a monitoring address.
const monitorTime = 3 * time.Second

// errMonitor says that what answers at the address is no NATS server.
var errMonitor = errors.New("that is not a NATS server's monitoring address")

// readMonitor asks a server's monitoring address.
func readMonitor(ctx context.Context, address string) (*busdoctor.Monitor, error) {
	ctx, cancel := context.WithTimeout(ctx, monitorTime)
	defer cancel()
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(address, "/")+"/varz", nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errMonitor, err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%w: %s", errMonitor, resp.Status)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return nil, err
	}
	return busdoctor.ParseMonitor(body)
}
