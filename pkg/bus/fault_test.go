package bus_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/meshtest"
)

// disturbed runs f in a bubble with one good connection and one over a link that can be disturbed.
func disturbed(t *testing.T, f func(t *testing.T, l *meshtest.Link, good, bad *bus.Conn)) {
	t.Helper()
	bubble(t, func(t *testing.T, s *meshtest.Server, good *bus.Conn) {
		t.Helper()
		l := meshtest.NewLink(s)
		bad := connectAs(t, bus.Options{Name: "bad", InProcess: l})
		defer bad.Close()
		f(t, l, good, bad)
	})
}

// B2: the answer to a compare-and-swap is lost, the write is not.
func TestSwapOfUnknownResult(t *testing.T) {
	t.Parallel()
	disturbed(t, func(t *testing.T, l *meshtest.Link, good, bad *bus.Conn) {
		t.Helper()
		b, g := bucket(t, bad, bus.RegistryBucket), bucket(t, good, bus.RegistryBucket)
		rev, err := b.Create(t.Context(), bus.HeadKey("a"), []byte("1"))
		if err != nil {
			t.Fatal(err)
		}
		l.HoldReplies()
		_, err = b.Update(t.Context(), bus.HeadKey("a"), []byte("2"), rev)
		if !errors.Is(err, bus.ErrUnknown) || !errors.Is(err, fault.Transient) {
			t.Fatalf("update: %v, want ErrUnknown", err)
		}
		if e, err := g.Get(t.Context(), bus.HeadKey("a")); err != nil || string(e.Value) != "2" {
			t.Fatalf("read back %q, %v; want the value whose writer was told nothing", e.Value, err)
		}
		l.Release()
		if _, err := b.Update(t.Context(), bus.HeadKey("a"), []byte("3"), rev); !errors.Is(err, bus.ErrConflict) {
			t.Fatalf("blind repeat: %v, want ErrConflict", err)
		}
	})
}

// B2: the write itself is delayed, reported as unknown, and stored later.
func TestSwapStoredAfterItsTimeout(t *testing.T) {
	t.Parallel()
	disturbed(t, func(t *testing.T, l *meshtest.Link, good, bad *bus.Conn) {
		t.Helper()
		b, g := bucket(t, bad, bus.RegistryBucket), bucket(t, good, bus.RegistryBucket)
		l.HoldRequests()
		if _, err := b.Create(within(t, time.Second), bus.HeadKey("a"), nil); !errors.Is(err, bus.ErrUnknown) {
			t.Fatalf("create: %v, want ErrUnknown", err)
		}
		if _, err := g.Get(t.Context(), bus.HeadKey("a")); !errors.Is(err, bus.ErrNotFound) {
			t.Fatalf("get: %v, want ErrNotFound for now", err)
		}
		l.Release()
		synctest.Wait()
		if _, err := g.Get(t.Context(), bus.HeadKey("a")); err != nil {
			t.Fatalf("the late write is missing: %v", err)
		}
	})
}

// The answer went down with the connection: unknown at once, not after the time-out.
func TestRequestEndsWithItsConnection(t *testing.T) {
	t.Parallel()
	disturbed(t, func(t *testing.T, l *meshtest.Link, _, bad *bus.Conn) {
		t.Helper()
		b := bucket(t, bad, bus.RegistryBucket)
		l.HoldReplies()
		got := make(chan error, 1)
		start := time.Now()
		go func() {
			_, err := b.Put(t.Context(), bus.HeadKey("a"), nil)
			got <- err
		}()
		synctest.Wait()
		l.Cut()
		if err := <-got; !errors.Is(err, bus.ErrUnknown) || time.Since(start) > time.Second {
			t.Fatalf("put: %v after %s, want ErrUnknown at once", err, time.Since(start))
		}
		l.Release()
	})
}

func TestPublisherAckTimeout(t *testing.T) {
	t.Parallel()
	disturbed(t, func(t *testing.T, l *meshtest.Link, good, bad *bus.Conn) {
		t.Helper()
		createData(t, good, "shop", 1)
		p := publisher(t, bad, bus.PublisherConfig{MaxInFlight: 2, AckTimeout: 4 * time.Second})
		defer p.Close()
		subject := bus.DataSubject("shop", 1, writer, reader)
		l.HoldReplies()
		for range 2 {
			if _, err := p.Publish(t.Context(), subject, nil, []byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		// No room: an impatient caller leaves and nothing is sent.
		if _, err := p.Publish(within(t, time.Second), subject, nil, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("publish beyond the bound: %v", err)
		}
		if n, size := p.InFlight(); n != 2 || size != 2 || p.Sent() != 2 || p.Err() != nil {
			t.Fatalf("%d messages, %d bytes under way, %d sent, %v", n, size, p.Sent(), p.Err())
		}
		start := time.Now()
		if err := p.Flush(t.Context()); !errors.Is(err, bus.ErrUnknown) || time.Since(start) != 3*time.Second {
			t.Fatalf("flush: %v after %s, want ErrUnknown after the rest of 4 s", err, time.Since(start))
		}
		l.Release()
		synctest.Wait()
		if p.AckedThrough() != 0 {
			t.Fatalf("a late acknowledgement moved an ended publisher to %d", p.AckedThrough())
		}
	})
}

func TestPublisherReportsProgress(t *testing.T) {
	t.Parallel()
	disturbed(t, func(t *testing.T, l *meshtest.Link, good, bad *bus.Conn) {
		t.Helper()
		createData(t, good, "shop", 1)
		p := publisher(t, bad, bus.PublisherConfig{})
		defer p.Close()
		l.HoldReplies()
		n, err := p.Publish(t.Context(), bus.DataSubject("shop", 1, writer, reader), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		select {
		case <-p.Advanced():
			t.Fatal("advanced without an acknowledgement")
		default:
		}
		l.Release()
		<-p.Advanced()
		if p.AckedThrough() != n {
			t.Fatalf("acked through %d, want %d", p.AckedThrough(), n)
		}
	})
}

// B3: a watch whose server falls silent says so within three heartbeats, and misses nothing afterwards.
func TestWatchDoesNotGoStale(t *testing.T) {
	t.Parallel()
	disturbed(t, func(t *testing.T, l *meshtest.Link, good, bad *bus.Conn) {
		t.Helper()
		w := bucket(t, bad, bus.RegistryBucket).Watch(t.Context(), bus.HeadPattern)
		defer w.Close()
		expect(t, w, bus.CaughtUp, "")
		<-time.After(time.Minute) // heartbeats and expired pulls are no reason to start again
		l.HoldReplies()
		if _, err := bucket(t, good, bus.RegistryBucket).Put(t.Context(), bus.HeadKey("a"), nil); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		expect(t, w, bus.Resync, "")
		if d := time.Since(start); d > 3*time.Second {
			t.Fatalf("resync after %s", d)
		}
		l.Release()
		for {
			u := next(t, w)
			if u.Kind == bus.Put {
				break
			}
			if u.Kind != bus.Resync {
				t.Fatalf("update %s, want the value", u.Kind)
			}
		}
		expect(t, w, bus.CaughtUp, "")
		w.Close()
	})
}

// lines collects log output.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// A denied subject looks like a time-out; the caller must learn the difference.
func TestDenied(t *testing.T) {
	t.Parallel()
	synctest.Test(t, denied)
}

func denied(t *testing.T) {
	s := meshtest.StartServer(t, meshtest.ServerOptions{Configure: func(o *server.Options) {
		o.Users = []*server.User{
			{Username: "root", Password: "x"},
			{Username: "sink", Password: "x", Permissions: &server.Permissions{
				Publish: &server.SubjectPermission{
					Deny: []string{"$KV.weir_registry.>", "weir.data.shop.>", "$JS.API.STREAM.PURGE.>"},
				},
			}},
		}
	}})
	defer s.Shutdown()
	root := connectAs(t, bus.Options{Name: "root", URL: "nats://root:x@mesh", InProcess: s})
	defer root.Close()
	base(t, root)
	createData(t, root, "shop", 1)
	log := new(lines)
	c := connectAs(t, bus.Options{
		Name: "sink", URL: "nats://sink:x@mesh", InProcess: s, Logger: slog.New(slog.NewTextHandler(log, nil)),
	})
	defer c.Close()
	_, err := bucket(t, c, bus.RegistryBucket).Put(within(t, 300*time.Millisecond), bus.HeadKey("a"), nil)
	if !errors.Is(err, bus.ErrDenied) || fault.ClassOf(err) != fault.Permanent {
		t.Errorf("put: %v, want ErrDenied", err)
	}
	if _, err := c.PurgeState(within(t, 300*time.Millisecond), "weir.state.x"); !errors.Is(err, bus.ErrDenied) {
		t.Errorf("purge: %v, want ErrDenied", err)
	}
	p := publisher(t, c, bus.PublisherConfig{AckTimeout: time.Minute})
	defer p.Close()
	if _, err := p.Publish(t.Context(), bus.DataSubject("shop", 1, writer, reader), nil, nil); err != nil {
		t.Fatal(err)
	}
	if err := p.Flush(within(t, patience/2)); !errors.Is(err, bus.ErrDenied) {
		t.Errorf("flush: %v, want ErrDenied long before the time-out", err)
	}
	if !strings.Contains(log.String(), "subject="+"$KV.weir_registry."+bus.HeadKey("a")) {
		t.Errorf("the log does not name the subject: %s", log)
	}
}

func TestConnectErrors(t *testing.T) {
	t.Parallel()
	s := meshtest.StartServer(t, meshtest.ServerOptions{TCP: true, Configure: func(o *server.Options) {
		o.Username, o.Password = "u", "p"
	}})
	for url, want := range map[string]fault.Code{
		s.URL():                      fault.BusAuth,
		"nats://u:no@127.0.0.1:1":    fault.BusUnreachable,
		"nats://u:p@" + s.URL()[7:]:  "",
		"nats://u:no@" + s.URL()[7:]: fault.BusAuth,
	} {
		c, err := bus.Connect(within(t, patience), bus.Options{URL: url, Name: "test"})
		if want == "" {
			if err != nil {
				t.Errorf("connect: %v", err)
				continue
			}
			c.Close()
			continue
		}
		f, ok := errors.AsType[*fault.Error](err)
		if !ok || f.Code != want {
			t.Errorf("connect to %s: %v, want %s", url, err, want)
		}
		if err != nil && strings.Contains(err.Error(), ":no@") || ok && strings.Contains(f.Remedy, ":no@") {
			t.Errorf("the error shows the password: %v %s", err, f.Remedy)
		}
	}
}
