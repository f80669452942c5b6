package support

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/pkg/bus"
)

// Bounds of what one process is asked for.
const (
	processTime  = 5 * time.Second
	processBytes = 32 << 20
)

// asked is what each process is asked for. A profile of the heap names functions and sizes, no contents; of goroutines
// the form without arguments is taken.
func asked() []struct{ name, path string } {
	return []struct{ name, path string }{
		{"readyz.txt", "/readyz"},
		{"metrics.txt", "/metrics"},
		{"goroutines.txt", "/debug/pprof/goroutine?debug=1"},
		{"heap.pb.gz", "/debug/pprof/heap"},
	}
}

// processes adds what every process that can be reached says of itself. Several services may be one process.
func (b *writer) processes(ctx context.Context, r Request) {
	found, err := r.Conn.Discover(ctx)
	b.json("processes/discovery.json", found, err)
	addresses := make(map[string][]string)
	for _, d := range found {
		note(addresses, d.Metadata["http"], d.Metadata["node"])
	}
	if nodes, err := r.Control.Nodes(ctx); err == nil {
		for _, n := range nodes {
			note(addresses, n.HTTP, n.Node)
		}
	}
	for address, names := range addresses {
		slices.Sort(names)
		at := "processes/" + bus.EscapeToken(names[0]) + "/"
		b.json(at+"who.json", map[string]any{"http": address, "nodes": names}, nil)
		for _, a := range asked() {
			content, err := fetch(ctx, address, a.path)
			switch {
			case err != nil:
				b.missing(at+a.name, err)
			case strings.HasSuffix(a.name, ".txt"):
				b.text(at+a.name, content)
			default:
				b.raw(at+a.name, content)
			}
		}
	}
}

func note(addresses map[string][]string, address, node string) {
	if address != "" && node != "" && !slices.Contains(addresses[address], node) {
		addresses[address] = append(addresses[address], node)
	}
}

// fetch asks a process. One that listens on every interface is looked for on this host.
func fetch(ctx context.Context, address, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, processTime)
	defer cancel()
	if host, port, err := net.SplitHostPort(address); err == nil && (host == "" || net.ParseIP(host).IsUnspecified()) {
		address = net.JoinHostPort("127.0.0.1", port)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, processBytes))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	// A process that is not ready says so with another status, and that is what is wanted.
	if resp.StatusCode != http.StatusOK && path != "/readyz" {
		return nil, fmt.Errorf("GET %s: %s", path, resp.Status)
	}
	return body, nil
}
