package cdcpostgres

import (
	"net"
	"net/url"
	"sync"
	"testing"
	"time"
)

// gag stands between a job and its server. When it is closed one direction of the connections of that moment delivers nothing
// more, although they stay open; later ones are whole.
type gag struct {
	listener net.Listener
	target   string

	mu     sync.Mutex
	silent chan struct{} // closed when the connections that have it fall silent
}

// muted is a direction.
type muted bool

const (
	fromServer muted = true
	fromClient muted = false
)

// startGag puts a proxy before the server of a job.
func startGag(t *testing.T, j *job, direction muted) *gag {
	t.Helper()
	u, err := url.Parse(j.url)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gag{listener: l, target: u.Host, silent: make(chan struct{})}
	u.Host = l.Addr().String()
	j.url = u.String()
	var all sync.WaitGroup
	t.Cleanup(func() { l.Close(); all.Wait() })
	all.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { g.serve(client, direction) })
		}
	})
	return g
}

// close silences the connections that there are.
func (g *gag) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.silent)
	g.silent = make(chan struct{})
}

func (g *gag) serve(client net.Conn, direction muted) {
	defer client.Close()
	server, err := net.Dial("tcp", g.target)
	if err != nil {
		return
	}
	defer server.Close()
	g.mu.Lock()
	silent := g.silent
	g.mu.Unlock()
	never := make(chan struct{})
	toServer, toClient := never, silent
	if direction == fromClient {
		toServer, toClient = silent, never
	}
	var both sync.WaitGroup
	both.Go(func() { pass(server, client, toServer) })
	both.Go(func() { pass(client, server, toClient) })
	both.Wait()
}

// pass copies until one end closes, and closes the other; what comes after silent was closed is swallowed.
func pass(to, from net.Conn, silent <-chan struct{}) {
	defer to.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		select {
		case <-silent:
		default:
			if _, werr := to.Write(buf[:n]); werr != nil {
				from.Close()
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// O49: a connection that is open and delivers in one direction only is found out, idle and under load, and the next attempt
// goes on where the last epoch ended.
func TestOneWaySilence(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		direction muted
		load      bool
		alter     bool // the catalog is asked in the silence
	}{
		"server is not heard, idle":       {fromServer, false, false},
		"server is not heard, under load": {fromServer, true, false},
		"client is not heard, idle":       {fromClient, false, false},
		"client is not heard, under load": {fromClient, true, false},
		"client is not heard, altered":    {fromClient, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, server, "public.*")
			g := startGag(t, j, c.direction)
			j.exec(t, "CREATE TABLE t (id int PRIMARY KEY)")
			a := j.start(t)
			j.exec(t, "INSERT INTO t VALUES (1)")
			wantRows(t, a.take(t, 1), "insert public.t id=1")
			a.takeEpoch(t)
			g.close()
			began := time.Now()
			if c.alter {
				j.exec(t, "ALTER TABLE t ADD v int")
			}
			if c.load {
				j.exec(t, "INSERT INTO t SELECT generate_series(100, 20000); DELETE FROM t WHERE id >= 100")
			}
			err := a.failure(t)
			t.Logf("found out after %s", time.Since(began).Round(time.Millisecond))
			wantFault(t, err, "WEIR-PG-024")
			a.stop()
			a = j.start(t)
			j.exec(t, "INSERT INTO t VALUES (2)")
			last := "insert public.t id=2"
			if c.alter {
				last += " v=NULL"
			}
			a.takeUntil(t, last)
		})
	}
}
