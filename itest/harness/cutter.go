package harness

import (
	"bytes"
	"context"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Cutter stands between a sink and its target and cuts a connection at a word of the client's, once for each order.
type Cutter struct {
	ctx      context.Context //nolint:containedctx // the test's, for connections that the cutter opens by itself
	listener net.Listener
	target   string

	mu     sync.Mutex
	word   []byte
	before bool
	done   int
}

// StartCutter puts a Cutter before a server on a loopback port.
func StartCutter(tb testing.TB, port int) *Cutter {
	tb.Helper()
	l, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	p := &Cutter{ctx: tb.Context(), listener: l, target: net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}
	var all sync.WaitGroup
	tb.Cleanup(func() { l.Close(); all.Wait() })
	all.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { p.serve(client) })
		}
	})
	return p
}

// URL leads a connection string through the cutter.
func (p *Cutter) URL(target string) string {
	_, port, _ := net.SplitHostPort(p.target)
	_, own, _ := net.SplitHostPort(p.listener.Addr().String())
	return strings.Replace(target, ":"+port+"/", ":"+own+"/", 1)
}

// CutAfter orders one cut: when the client next sends word. The server gets the word, and the client no reply; or with
// before the server does not get it either.
func (p *Cutter) CutAfter(word string, before bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.word, p.before = []byte(word), before
}

// Cuts counts the cuts made.
func (p *Cutter) Cuts() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.done
}

func (p *Cutter) due(data []byte) (cut, before bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.word == nil || !bytes.Contains(data, p.word) {
		return false, false
	}
	p.word = nil
	p.done++
	return true, p.before
}

func (p *Cutter) serve(client net.Conn) {
	defer client.Close()
	server, err := (&net.Dialer{}).DialContext(p.ctx, "tcp", p.target)
	if err != nil {
		return
	}
	defer server.Close()
	var replies sync.WaitGroup
	defer replies.Wait()
	replies.Go(func() {
		_, _ = io.Copy(client, server)
		client.Close()
	})
	buf := make([]byte, 64<<10)
	for {
		n, err := client.Read(buf)
		if cut, before := p.due(buf[:n]); cut {
			client.Close()
			if !before {
				_, _ = server.Write(buf[:n])
				// The server works on; what it answers reaches nobody.
				_, _ = io.Copy(io.Discard, server)
			}
			return
		}
		if _, werr := server.Write(buf[:n]); err != nil || werr != nil {
			server.Close()
			return
		}
	}
}
