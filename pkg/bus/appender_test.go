package bus_test

import (
	"errors"
	"testing"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/meshtest"
)

// An appender whose place is taken writes nothing any more, not even where its later messages would fit.
func TestAppenderIsFenced(t *testing.T) {
	t.Parallel()
	srv := meshtest.StartServer(t, meshtest.ServerOptions{})
	conn, err := bus.Connect(t.Context(), bus.Options{Name: "test", InProcess: srv})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	if _, err := conn.OpenOutlet(t.Context(), bus.OutletConfig{Stream: "S", Prefix: "s"}); !errors.Is(err, bus.ErrNotFound) {
		t.Errorf("a stream that is not there: %v", err)
	}
	o, err := conn.OpenOutlet(t.Context(), bus.OutletConfig{Stream: "S", Prefix: "s", Create: true})
	if err != nil {
		t.Fatal(err)
	}
	appender := func() *bus.Appender {
		a, err := o.Append(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(a.Close)
		return a
	}
	put := func(a *bus.Appender, n int) error {
		for range n {
			if err := a.Put(t.Context(), "s.x", bus.Header{"By": {"test"}}, []byte("data")); err != nil {
				return err
			}
		}
		_, err := a.Flush(t.Context())
		return err
	}
	zombie, successor := appender(), appender()
	if err := put(successor, 1); err != nil {
		t.Fatal(err)
	}
	if err := put(zombie, 3*1000); !errors.Is(err, bus.ErrConflict) {
		t.Errorf("the zombie: %v, want a conflict", err)
	}
	if err := put(zombie, 1); !errors.Is(err, bus.ErrConflict) {
		t.Errorf("the zombie again: %v, want a conflict", err)
	}
	if err := put(successor, 2*1000+3); err != nil {
		t.Fatal(err)
	}
	tail, err := o.Tail(t.Context(), "s.x")
	if err != nil || tail.Seq != 2*1000+4 || tail.Last.Revision != tail.Seq || tail.Mark.Header.Get("By") != "test" {
		t.Errorf("%+v, %v", tail, err)
	}
	all, err := o.Read(t.Context(), "s.x", time.Time{})
	if err != nil || len(all) != int(tail.Seq) {
		t.Errorf("%d messages, %v", len(all), err)
	}
}
