package harness

import (
	"context"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// Relay is the network between one process and its servers. Its connections can be made to deliver nothing, in one
// direction or both, as a partition does: nothing is refused and nothing is lost, what was sent arrives when the partition
// heals, if its receiver is still there. Connections that begin meanwhile fare alike.
type Relay struct {
	toServer, toClient gate

	mu     sync.Mutex
	closed bool
	conns  map[net.Conn]struct{}
	urls   map[string]string
	all    sync.WaitGroup
}

// Direction is what a partition holds back.
type Direction int

// The directions.
const (
	// Replies is what servers say: the process is heard and hears nothing.
	Replies Direction = 1 << iota
	// Requests is what the process says: it hears everything and is not heard.
	Requests
	// Both is a full partition.
	Both = Replies | Requests
)

// StartRelay puts a relay before servers, whose URLs have commas between them.
func StartRelay(tb testing.TB, servers string) *Relay {
	tb.Helper()
	r := &Relay{conns: make(map[net.Conn]struct{}), urls: make(map[string]string)}
	tb.Cleanup(r.close)
	for server := range strings.SplitSeq(servers, ",") {
		u, err := url.Parse(server)
		if err != nil {
			tb.Fatal(err)
		}
		var config net.ListenConfig
		l, err := config.Listen(tb.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { l.Close() })
		target := u.Host
		u.Host = l.Addr().String()
		r.urls[server] = u.String()
		r.all.Go(func() { r.serve(l, target) })
	}
	return r
}

// URL leads a list of the relay's servers through it.
func (r *Relay) URL(servers string) string {
	var urls []string
	for server := range strings.SplitSeq(servers, ",") {
		urls = append(urls, r.urls[server])
	}
	return strings.Join(urls, ",")
}

// Part begins a partition.
func (r *Relay) Part(d Direction) {
	if d&Replies != 0 {
		r.toClient.shut()
	}
	if d&Requests != 0 {
		r.toServer.shut()
	}
}

// Heal ends a partition.
func (r *Relay) Heal() {
	r.toClient.open()
	r.toServer.open()
}

func (r *Relay) serve(l net.Listener, target string) {
	var dialer net.Dialer
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		server, err := dialer.DialContext(context.Background(), "tcp", target)
		if err != nil {
			client.Close()
			continue
		}
		if !r.keep(client, server) {
			return
		}
		r.all.Go(func() { r.pass(server, client, &r.toServer) })
		r.all.Go(func() { r.pass(client, server, &r.toClient) })
	}
}

// keep notes connections for close; false when that has been.
func (r *Relay) keep(conns ...net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range conns {
		if r.closed {
			c.Close()
			continue
		}
		r.conns[c] = struct{}{}
	}
	return !r.closed
}

// pass copies until one end closes, and closes the other. Nothing passes a shut gate, not even an end.
func (r *Relay) pass(to, from net.Conn, g *gate) {
	defer func() {
		to.Close()
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.conns, to)
	}()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		g.wait()
		if _, werr := to.Write(buf[:n]); werr != nil {
			from.Close()
			return
		}
		if err != nil {
			return
		}
	}
}

func (r *Relay) close() {
	r.mu.Lock()
	r.closed = true
	conns := r.conns
	r.conns = make(map[net.Conn]struct{})
	r.mu.Unlock()
	for c := range conns {
		c.Close()
	}
	r.Heal()
	r.all.Wait()
}

// gate holds back who comes while it is shut. The zero gate is open.
type gate struct {
	mu     sync.Mutex
	opened chan struct{} // nil while open
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened == nil {
		g.opened = make(chan struct{})
	}
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened != nil {
		close(g.opened)
		g.opened = nil
	}
}

func (g *gate) wait() {
	g.mu.Lock()
	opened := g.opened
	g.mu.Unlock()
	if opened != nil {
		<-opened
	}
}
