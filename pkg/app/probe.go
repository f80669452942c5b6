package app

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"weir.dev/weir/pkg/fault"
)

// probeTimeout bounds a probe; a process that is slower than this to say how it is, is not well.
const probeTimeout = 5 * time.Second

// health asks the process that has the same address whether it is ready and returns the exit code, 0 only when it is. It
// is the probe of an image that holds this program and nothing else.
func (p Process) health(addr string) int {
	text, err := probe(context.Background(), addr)
	_, _ = fmt.Fprint(p.Stdout, text)
	if err != nil {
		return p.fail(fault.Wrap(err, fault.AppNotReady, addr, err.Error()))
	}
	return fault.ExitOK
}

// probe reads /readyz of the process that listens on addr, as seen from its own machine.
func probe(ctx context.Context, addr string) (text string, err error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", err
	}
	if port == "0" {
		return "", fmt.Errorf("the process chose its port itself")
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/readyz", nil)
	if err != nil {
		return "", err
	}
	// A transport of its own: no proxy of the environment stands between a process and itself, and nothing stays open.
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return "", err
	}
	if resp.StatusCode != http.StatusOK {
		return string(body), fmt.Errorf("it answers %s", strings.ToLower(resp.Status))
	}
	return string(body), nil
}
