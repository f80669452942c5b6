package relay

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Relay is the network between clients and some servers. It is safe for concurrent use.
type Relay struct {
	toServer, toClient gate
	trip               trip

	listeners []net.Listener
	ways      map[string]string // address of a server to that of its listener
	all       sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	refuses bool
	severs  bool // at the next word
	delay   time.Duration
	conns   map[net.Conn]struct{}
}

// Direction is what a partition holds back.
type Direction int

// The directions.
const (
	// Replies is what servers say: the client is heard and hears nothing.
	Replies Direction = 1 << iota
	// Requests is what the client says: it hears everything and is not heard.
	Requests
	// Both is a full partition.
	Both = Replies | Requests
)

// Start puts a relay before servers, whose URLs have commas between them. The caller calls Close.
func Start(ctx context.Context, servers string) (*Relay, error) {
	r := &Relay{conns: make(map[net.Conn]struct{}), ways: make(map[string]string)}
	for server := range strings.SplitSeq(servers, ",") {
		u, err := url.Parse(server)
		if err != nil {
			r.Close()
			return nil, fmt.Errorf("start relay: %w", err)
		}
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			r.Close()
			return nil, fmt.Errorf("start relay: %w", err)
		}
		r.listeners = append(r.listeners, l)
		r.ways[u.Host] = l.Addr().String()
		r.all.Go(func() { r.serve(l, u.Host) }) //nolint:contextcheck // the relay outlives the context of its start
	}
	return r, nil
}

// URL leads a list of the relay's servers through it. A server that is none of them stays as it is.
func (r *Relay) URL(servers string) string {
	var urls []string
	for server := range strings.SplitSeq(servers, ",") {
		u, err := url.Parse(server)
		if way := ""; err == nil {
			if way = r.ways[u.Host]; way != "" {
				u.Host = way
				server = u.String()
			}
		}
		urls = append(urls, server)
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

// Heal ends a partition, a refusal and a delay.
func (r *Relay) Heal() {
	r.toClient.open()
	r.toServer.open()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refuses, r.delay = false, 0
}

// Cut breaks all connections there are and tells how many ends that were.
func (r *Relay) Cut() int {
	r.mu.Lock()
	conns := r.conns
	r.conns = make(map[net.Conn]struct{})
	r.mu.Unlock()
	for c := range conns {
		c.Close()
	}
	return len(conns)
}

// Refuse breaks all connections and takes no new ones until Heal.
func (r *Relay) Refuse() {
	r.mu.Lock()
	r.refuses = true
	r.mu.Unlock()
	r.Cut()
}

// Delay keeps back each piece that a client sends for a while, until Heal.
func (r *Relay) Delay(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.delay = d
}

// CutAfter orders one cut: of the connection on which a client next sends word. The server gets the word, and the client not what it
// replies: the cut is made when the server has replied. With before the server does not get it either.
func (r *Relay) CutAfter(word string, before bool) { r.trip.arm(word, before) }

// SeverAfter is CutAfter of all connections, and takes no new ones until Heal: from the word on, a client is alone.
func (r *Relay) SeverAfter(word string) {
	r.mu.Lock()
	r.severs = true
	r.mu.Unlock()
	r.trip.arm(word, false)
}

// sever ends what SeverAfter ordered to end.
func (r *Relay) sever() {
	r.mu.Lock()
	due := r.severs
	r.severs, r.refuses = false, r.refuses || due
	r.mu.Unlock()
}

// CutReplies orders one cut: of the connection on which the servers' next n bytes, over all connections, are full.
func (r *Relay) CutReplies(n int) { r.trip.allow(n) }

// Cuts counts the cuts that CutAfter and CutReplies ordered and that were made.
func (r *Relay) Cuts() int { return r.trip.count() }

// Close breaks all connections and ends the relay.
func (r *Relay) Close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	for _, l := range r.listeners {
		l.Close()
	}
	r.Cut()
	r.Heal()
	r.all.Wait()
}

func (r *Relay) serve(l net.Listener, target string) {
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		server, err := new(net.Dialer).DialContext(context.Background(), "tcp", target)
		if err != nil {
			client.Close()
			continue
		}
		if !r.keep(client, server) {
			continue
		}
		h := &hush{kept: make(chan struct{}), over: make(chan struct{})}
		r.all.Go(func() { r.requests(server, client, h) })
		r.all.Go(func() { r.replies(client, server, h) })
	}
}

// keep notes the connections for Cut; false when none are wanted.
func (r *Relay) keep(conns ...net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	wanted := !r.closed && !r.refuses
	for _, c := range conns {
		if wanted {
			r.conns[c] = struct{}{}
		} else {
			c.Close()
		}
	}
	return wanted
}

func (r *Relay) forget(c net.Conn) {
	c.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.conns, c)
}

func (r *Relay) late() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.delay
}

// requests copies what a client sends until one end closes, and closes the other. Nothing passes a shut gate, not even an end.
func (r *Relay) requests(server, client net.Conn, h *hush) {
	defer r.forget(server)
	buf := make([]byte, 64<<10)
	for {
		n, err := client.Read(buf)
		if d := r.late(); d > 0 {
			<-time.After(d)
		}
		r.toServer.wait()
		if cut, before := r.trip.due(buf[:n]); cut {
			r.sever()
			if !before {
				h.wanted.Store(true)
				_, _ = server.Write(buf[:n])
				<-h.kept
			}
			r.forget(client)
			if !before {
				<-h.over // the server works on
			}
			return
		}
		if _, werr := server.Write(buf[:n]); err != nil || werr != nil {
			client.Close()
			return
		}
	}
}

// hush keeps from a client what its server replies from a moment on.
type hush struct {
	wanted atomic.Bool
	kept   chan struct{} // closed with the first reply that was kept, or the end
	over   chan struct{} // closed with the end of the replies
}

// replies copies what a server sends.
func (r *Relay) replies(client, server net.Conn, h *hush) {
	kept := sync.OnceFunc(func() { close(h.kept) })
	defer close(h.over)
	defer kept()
	defer r.forget(client)
	buf := make([]byte, 64<<10)
	for {
		n, err := server.Read(buf)
		if h.wanted.Load() {
			if err != nil {
				return
			}
			kept()
			continue
		}
		r.toClient.wait()
		if r.trip.spent(n) {
			r.forget(server)
			return
		}
		if _, werr := client.Write(buf[:n]); werr != nil {
			return
		}
		if err != nil {
			return
		}
	}
}
