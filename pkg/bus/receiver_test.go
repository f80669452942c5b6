package bus_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/meshtest"
)

// A silence without loss: the receiver says so and then reads on, with nothing missing and nothing twice.
func TestReceiverSurvivesSilence(t *testing.T) {
	t.Parallel()
	disturbed(t, func(t *testing.T, l *meshtest.Link, good, bad *bus.Conn) {
		t.Helper()
		createData(t, good, "shop", 1)
		r := alert(t, bad, writer)
		defer r.Close()
		p := publisher(t, good, bus.PublisherConfig{})
		defer p.Close()
		if _, err := r.Next(within(t, time.Second)); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("next of an idle channel: %v", err)
		}
		l.HoldReplies()
		stalls(t, r)
		for _, v := range []string{"1", "2"} {
			if _, err := p.Publish(t.Context(), bus.DataSubject("shop", 1, writer, reader), nil, []byte(v)); err != nil {
				t.Fatal(err)
			}
		}
		l.Release()
		for _, want := range []string{"1", "2"} {
			d, err := r.Next(within(t, 10*time.Second))
			if err != nil || string(d.Data) != want {
				t.Fatalf("next after silence: %v, %v, want %q", d, err, want)
			}
		}
	})
}

// stalls reads from a server that has fallen silent. The receiver says so while its connection still counts as alive.
func stalls(t testing.TB, r *bus.Receiver) {
	t.Helper()
	start := time.Now()
	if _, err := r.Next(t.Context()); !errors.Is(err, bus.ErrStalled) || time.Since(start) > 4*time.Second {
		t.Fatalf("next: %v after %s, want ErrStalled", err, time.Since(start))
	}
}

// Messages delivered into a connection that broke never arrive and are not repeated: the receiver must say so.
func TestReceiverNoticesLostDelivery(t *testing.T) {
	t.Parallel()
	for name, silent := range map[string]bool{"at once": false, "behind a silence": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			disturbed(t, func(t *testing.T, l *meshtest.Link, good, bad *bus.Conn) {
				t.Helper()
				createData(t, good, "shop", 1)
				r := alert(t, bad, writer)
				defer r.Close()
				p := publisher(t, good, bus.PublisherConfig{})
				defer p.Close()
				if _, err := r.Next(within(t, time.Second)); !errors.Is(err, context.DeadlineExceeded) {
					t.Fatal(err)
				}
				l.HoldReplies()
				if _, err := p.Publish(t.Context(), bus.DataSubject("shop", 1, writer, reader), nil, []byte("1")); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if silent {
					stalls(t, r)
				}
				l.Cut()
				l.Release()
				for range 2 { // and keep saying so
					if _, err := r.Next(within(t, time.Minute)); !errors.Is(err, bus.ErrStreamGone) {
						t.Fatalf("next: %v, want ErrStreamGone", err)
					}
				}
			})
		})
	}
}

// An acknowledgement that goes down with a connection leaves its message in the stream, where the sender takes it for unread
// and stops at the end of its window: the receiver must say so.
func TestReceiverNoticesLostAcknowledgements(t *testing.T) {
	t.Parallel()
	disturbed(t, func(t *testing.T, l *meshtest.Link, good, bad *bus.Conn) {
		t.Helper()
		createData(t, good, "shop", 1)
		r := receiver(t, bad, writer)
		defer r.Close()
		p := publisher(t, good, bus.PublisherConfig{})
		defer p.Close()
		var open []*bus.Delivery
		for range 3 {
			if _, err := p.Publish(t.Context(), bus.DataSubject("shop", 1, writer, reader), nil, []byte("1")); err != nil {
				t.Fatal(err)
			}
			d, err := r.Next(within(t, time.Second))
			if err != nil {
				t.Fatal(err)
			}
			open = append(open, d)
		}
		open[0].Ack()
		synctest.Wait()
		l.HoldRequests()
		open[1].Ack()
		l.Cut()
		l.Release()
		if _, err := r.Next(within(t, time.Minute)); !errors.Is(err, bus.ErrStreamGone) {
			t.Fatalf("next: %v, want ErrStreamGone", err)
		}
	})
}

// With nothing lost a new connection is not an incident.
func TestReceiverSurvivesReconnect(t *testing.T) {
	t.Parallel()
	disturbed(t, func(t *testing.T, l *meshtest.Link, good, bad *bus.Conn) {
		t.Helper()
		createData(t, good, "shop", 1)
		r := receiver(t, bad, writer)
		defer r.Close()
		p := publisher(t, good, bus.PublisherConfig{})
		defer p.Close()
		subject := bus.DataSubject("shop", 1, writer, reader)
		for _, want := range []string{"1", "2"} {
			if _, err := p.Publish(t.Context(), subject, nil, []byte(want)); err != nil {
				t.Fatal(err)
			}
			d, err := r.Next(within(t, 10*time.Second))
			if err != nil || string(d.Data) != want {
				t.Fatalf("next: %v, %v, want %q", d, err, want)
			}
			l.Cut()
			synctest.Wait()
		}
	})
}
