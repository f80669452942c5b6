package sinkmysql_test

import (
	"bytes"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// proxy stands between a sink and its target and cuts a connection at a word of the client's, once for each order.
type proxy struct {
	listener net.Listener
	target   string

	mu     sync.Mutex
	word   []byte
	before bool
	done   int
}

func startProxy(t *testing.T, port int) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, target: net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}
	var all sync.WaitGroup
	t.Cleanup(func() { l.Close(); all.Wait() })
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

// url leads a connection string through the proxy.
func (p *proxy) url(target string) string {
	_, port, _ := net.SplitHostPort(p.target)
	_, own, _ := net.SplitHostPort(p.listener.Addr().String())
	return strings.Replace(target, ":"+port+"/", ":"+own+"/", 1)
}

// cutAfter orders one cut: when the client next sends word. The server gets the word, and the client no reply; or with
// before the server does not get it either.
func (p *proxy) cutAfter(word string, before bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.word, p.before = []byte(word), before
}

// cuts counts the cuts made.
func (p *proxy) cuts() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.done
}

func (p *proxy) due(data []byte) (cut, before bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.word == nil || !bytes.Contains(data, p.word) {
		return false, false
	}
	p.word = nil
	p.done++
	return true, p.before
}

func (p *proxy) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	var replies sync.WaitGroup
	var swallow atomic.Bool
	replies.Go(func() {
		defer client.Close()
		buf := make([]byte, 64<<10)
		for {
			n, err := server.Read(buf)
			if err != nil || swallow.Load() {
				return
			}
			if _, err := client.Write(buf[:n]); err != nil {
				return
			}
		}
	})
	defer replies.Wait()
	defer server.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := client.Read(buf)
		if cut, before := p.due(buf[:n]); cut {
			if !before {
				swallow.Store(true)
				_, _ = server.Write(buf[:n])
				replies.Wait() // the server has answered, and the client does not hear it
			}
			return
		}
		if _, werr := server.Write(buf[:n]); err != nil || werr != nil {
			return
		}
	}
}
