package bus_test

import (
	"errors"
	"testing"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/meshtest"
)

func TestFacts(t *testing.T) {
	t.Parallel()
	_, c := mesh(t)
	ctx := t.Context()
	ready := bus.AckSubject("shop", 1, "ready", reader)
	for _, v := range []string{"1", "2"} {
		if err := c.PutFact(ctx, ready, bus.Header{"Weir-Kind": {"ready"}}, []byte(v)); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.PutFact(ctx, bus.AckSubject("shop-2", 1, "ready", reader), nil, nil); err != nil {
		t.Fatal(err)
	}
	w := c.WatchFacts(ctx, "shop")
	defer w.Close()
	u := expect(t, w, bus.Put, ready)
	if string(u.Entry.Value) != "2" || u.Entry.Header.Get("Weir-Kind") != "ready" {
		t.Fatalf("fact %q with %v, want the last", u.Entry.Value, u.Entry.Header)
	}
	expect(t, w, bus.CaughtUp, "")
	es, err := c.Facts(ctx, "shop", 1)
	if err != nil || len(es) != 1 || es[0].Header.Get("Weir-Kind") != "ready" {
		t.Fatalf("facts %v, %v", es, err)
	}
	if err := c.PurgeFacts(ctx, "shop", 1); err != nil {
		t.Fatal(err)
	}
	if es, err := c.Facts(ctx, "shop", 1); err != nil || len(es) != 0 {
		t.Fatalf("facts after purge %v, %v", es, err)
	}
}

// Facts of a dead attempt go away by age; one that is repeated stays.
func TestFactsAge(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, _ *meshtest.Server, c *bus.Conn) {
		t.Helper()
		if err := c.PutFact(t.Context(), bus.AckSubject("shop", 1, "ready", reader), nil, nil); err != nil {
			t.Fatal(err)
		}
		for range 12 {
			if err := c.PutFact(t.Context(), bus.AckSubject("shop", 2, "ready", reader), nil, nil); err != nil {
				t.Fatal(err)
			}
			<-time.After(time.Minute)
		}
		old, err1 := c.Facts(t.Context(), "shop", 1)
		kept, err2 := c.Facts(t.Context(), "shop", 2)
		if err := errors.Join(err1, err2); err != nil || len(old) != 0 || len(kept) != 1 {
			t.Fatalf("old %v, repeated %v, %v", old, kept, err)
		}
	})
}

func TestFactWithoutStream(t *testing.T) {
	t.Parallel()
	c := connect(t, meshtest.StartServer(t, meshtest.ServerOptions{}))
	err := c.PutFact(t.Context(), bus.AckSubject("shop", 1, "ready", reader), nil, nil)
	if !errors.Is(err, bus.ErrNoResponders) {
		t.Fatalf("put: %v, want ErrNoResponders", err)
	}
}

func TestReportsAndEvents(t *testing.T) {
	t.Parallel()
	_, c := mesh(t)
	ctx := t.Context()
	for _, v := range []string{"1", "2"} {
		if err := c.PublishReport(ctx, "n1", []byte(v)); err != nil {
			t.Fatal(err)
		}
		if err := c.PublishEvent(ctx, "shop", "recovery", []byte(v)); err != nil {
			t.Fatal(err)
		}
	}
	rs, err := c.Reports(ctx)
	if err != nil || len(rs) != 1 || rs[0].Key != "n1" || string(rs[0].Value) != "2" {
		t.Fatalf("reports %v, %v", rs, err)
	}
	rw := c.WatchReports(ctx)
	defer rw.Close()
	expect(t, rw, bus.Put, "n1")
	ew := c.WatchEvents(ctx, "shop", time.Time{})
	defer ew.Close()
	for _, want := range []string{"1", "2"} {
		if u := expect(t, ew, bus.Put, bus.EventSubject("shop", "recovery")); string(u.Entry.Value) != want {
			t.Fatalf("event %q, want %q", u.Entry.Value, want)
		}
	}
	expect(t, ew, bus.CaughtUp, "")
	later := c.WatchEvents(ctx, "*", time.Now().Add(time.Hour))
	defer later.Close()
	expect(t, later, bus.CaughtUp, "")
}

func TestPing(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, s *meshtest.Server, c *bus.Conn) {
		t.Helper()
		start := time.Now()
		if err := c.Ping(t.Context(), "n1"); !errors.Is(err, bus.ErrNoResponders) {
			t.Fatalf("ping nobody: %v, want ErrNoResponders", err)
		}
		if took := time.Since(start); took > 0 {
			t.Errorf("no responders after %s, want at once", took)
		}
		node := connect(t, s)
		if err := node.ServePing("n1", bus.Discovery{Service: "sink", Version: "0.1.0"}); err != nil {
			t.Fatal(err)
		}
		waitUntil(t, func() bool { return c.Ping(t.Context(), "n1") == nil })
		node.Close()
		waitUntil(t, func() bool { return errors.Is(c.Ping(t.Context(), "n1"), bus.ErrNoResponders) })
	})
}

func TestTap(t *testing.T) {
	t.Parallel()
	_, c := mesh(t)
	createData(t, c, "shop", 1)
	tap, err := c.Tap(t.Context(), bus.DataAll("shop", 1))
	if err != nil {
		t.Fatal(err)
	}
	defer tap.Close()
	p := publisher(t, c, bus.PublisherConfig{})
	subject := bus.DataSubject("shop", 1, writer, reader)
	if _, err := p.Publish(t.Context(), subject, bus.Header{"Weir-Seq": {"1"}}, []byte("x")); err != nil {
		t.Fatal(err)
	}
	m, err := tap.Next(within(t, patience))
	if err != nil || m.Subject != subject || m.Header.Get("Weir-Seq") != "1" || string(m.Data) != "x" || tap.Dropped() != 0 {
		t.Fatalf("tap %+v, %v", m, err)
	}
}
