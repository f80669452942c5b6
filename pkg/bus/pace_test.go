package bus_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/meshtest"
)

// A receiver that has nothing to read asks once a minute, reads at once what comes then, and finds out in seconds that the server
// has fallen silent: by the pings of its connection.
func TestReceiverRests(t *testing.T) {
	t.Parallel()
	disturbed(t, func(t *testing.T, l *meshtest.Link, good, bad *bus.Conn) {
		t.Helper()
		createData(t, good, "shop", 1)
		asked, err := good.Tap(t.Context(), "$JS.API.CONSUMER.MSG.NEXT."+bus.DataStream("shop", 1)+".>")
		if err != nil {
			t.Fatal(err)
		}
		defer asked.Close()
		r := receiver(t, bad, writer)
		defer r.Close()
		if _, err := r.Next(within(t, 10*time.Minute)); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("next of an idle channel: %v", err)
		}
		pulls := 0
		for {
			if _, err := asked.Next(within(t, time.Second)); err != nil {
				break
			}
			pulls++
		}
		if pulls < 2 || pulls > 11 {
			t.Errorf("%d pulls in ten minutes, want one each minute behind the first", pulls)
		}
		p := publisher(t, good, bus.PublisherConfig{})
		defer p.Close()
		if _, err := p.Publish(t.Context(), bus.DataSubject("shop", 1, writer, reader), nil, []byte("1")); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		d, err := r.Next(within(t, time.Minute))
		if err != nil || time.Since(start) > time.Second {
			t.Fatalf("next: %v after %s", err, time.Since(start))
		}
		d.Ack()
		if _, err := r.Next(within(t, 10*time.Minute)); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("next of an idle channel: %v", err)
		}
		l.HoldReplies()
		start = time.Now()
		if _, err := r.Next(t.Context()); !errors.Is(err, bus.ErrStalled) || time.Since(start) > 10*time.Second {
			t.Fatalf("next: %v after %s, want ErrStalled", err, time.Since(start))
		}
		l.Release()
	})
}
