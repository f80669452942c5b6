package bus_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/meshtest"
	"weir.dev/weir/pkg/plan"
)

// B1
func TestRowsArriveInOrder(t *testing.T) {
	t.Parallel()
	_, c := mesh(t)
	createData(t, c, "shop", 1)
	r := receiver(t, c, writer)
	p := publisher(t, c, bus.PublisherConfig{MaxInFlight: 64})
	// More than the default of 1000 unacknowledged messages: with it the barrier behind them would never arrive.
	const n = 3000
	subject := bus.DataSubject("shop", 1, writer, reader)
	go func() {
		for i := range n {
			if _, err := p.Publish(t.Context(), subject, bus.Header{"Weir-Seq": {strconv.Itoa(i)}}, []byte("row")); err != nil {
				t.Errorf("publish %d: %v", i, err)
				return
			}
		}
	}()
	all := make([]*bus.Delivery, n)
	for i := range n {
		d, err := r.Next(within(t, patience))
		if err != nil {
			t.Fatalf("receive %d: %v", i, err)
		}
		if got := d.Header.Get("Weir-Seq"); got != strconv.Itoa(i) || d.Subject != subject || d.Redelivered {
			t.Fatalf("message %d: seq %q on %s, redelivered %t", i, got, d.Subject, d.Redelivered)
		}
		all[i] = d
	}
	if err := p.Flush(within(t, patience)); err != nil {
		t.Fatal(err)
	}
	if p.AckedThrough() != n || p.Sent() != n {
		t.Fatalf("acked through %d of %d, want %d", p.AckedThrough(), p.Sent(), n)
	}
	for _, d := range all {
		d.Ack()
	}
	waitUntil(t, func() bool {
		st, err := c.DataState(t.Context(), "shop", 1)
		return err == nil && st.Msgs == 0 && st.LastSeq == n
	})
}

// waitUntil polls a server for something it does on its own.
func waitUntil(t testing.TB, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	ctx := within(t, patience)
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("condition not met within %s", patience)
		}
	}
}

// B5: a message as big as the server accepts, behind smaller ones that leave part of a pull.
func TestBiggestMessagesArrive(t *testing.T) {
	t.Parallel()
	_, c := mesh(t)
	createData(t, c, "shop", 1)
	r := receiver(t, c, writer)
	p := publisher(t, c, bus.PublisherConfig{MaxInFlightBytes: 1 << 30})
	subject := bus.DataSubject("shop", 1, writer, reader)
	sizes := []int{100, 3 << 20, int(c.MaxPayload()), 5 << 20, int(c.MaxPayload()), 1}
	for _, size := range sizes {
		if _, err := p.Publish(t.Context(), subject, nil, make([]byte, size)); err != nil {
			t.Fatal(err)
		}
	}
	for i, size := range sizes {
		d, err := r.Next(within(t, patience))
		if err != nil {
			t.Fatalf("receive %d: %v", i, err)
		}
		if len(d.Data) != size {
			t.Fatalf("message %d has %d bytes, want %d", i, len(d.Data), size)
		}
		d.Ack()
	}
	_, err := p.Publish(t.Context(), subject, nil, make([]byte, c.MaxPayload()+1))
	if !errors.Is(err, bus.ErrTooBig) || !errors.Is(err, fault.Permanent) {
		t.Fatalf("oversized publish: %v, want ErrTooBig", err)
	}
	if p.Err() != nil {
		t.Fatalf("nothing was sent, yet the publisher ended: %v", p.Err())
	}
}

func TestPublisherEndsWithItsStream(t *testing.T) {
	t.Parallel()
	_, c := mesh(t)
	createData(t, c, "shop", 1)
	p := publisher(t, c, bus.PublisherConfig{})
	subject := bus.DataSubject("shop", 1, writer, reader)
	if _, err := p.Publish(t.Context(), subject, nil, []byte("1")); err != nil {
		t.Fatal(err)
	}
	if err := p.Flush(within(t, patience)); err != nil {
		t.Fatal(err)
	}
	if err := c.DeleteData(t.Context(), "shop", 1); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Publish(t.Context(), subject, nil, []byte("2")); err != nil {
		t.Fatal(err)
	}
	if err := p.Flush(within(t, patience)); !errors.Is(err, bus.ErrStreamGone) {
		t.Fatalf("flush: %v, want ErrStreamGone", err)
	}
	// Sticky: also when the stream is there again.
	createData(t, c, "shop", 1)
	if _, err := p.Publish(t.Context(), subject, nil, []byte("3")); !errors.Is(err, bus.ErrStreamGone) {
		t.Fatalf("publish after failure: %v, want ErrStreamGone", err)
	}
	if p.AckedThrough() != 1 {
		t.Fatalf("acked through %d, want 1", p.AckedThrough())
	}
}

func TestPublisherRefusedWhenFull(t *testing.T) {
	t.Parallel()
	_, c := mesh(t)
	cfg := bus.DataConfig{Job: "shop", Fence: 1, MaxMsgsPerSubject: 3}
	if err := c.CreateData(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	p := publisher(t, c, bus.PublisherConfig{})
	for range 5 {
		if _, err := p.Publish(t.Context(), bus.DataSubject("shop", 1, writer, reader), nil, nil); err != nil {
			break
		}
	}
	if err := p.Flush(within(t, patience)); !errors.Is(err, bus.ErrFull) {
		t.Fatalf("flush: %v, want ErrFull", err)
	}
	if p.AckedThrough() != 3 {
		t.Fatalf("acked through %d, want 3", p.AckedThrough())
	}
	counts, err := c.SubjectCounts(t.Context(), "shop", 1, "")
	if err != nil || counts[bus.DataSubject("shop", 1, writer, reader)] != 3 {
		t.Fatalf("counts %v, %v", counts, err)
	}
}

func TestPublisherBlocksAtItsBound(t *testing.T) {
	t.Parallel()
	s, c := mesh(t)
	createData(t, c, "shop", 1)
	p := publisher(t, c, bus.PublisherConfig{MaxInFlightBytes: 100, AckTimeout: time.Minute})
	subject := bus.DataSubject("shop", 1, writer, reader)
	// One message bigger than the bound is sent alone.
	if _, err := p.Publish(t.Context(), subject, nil, make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	if err := p.WaitAcked(within(t, patience), 1); err != nil {
		t.Fatal(err)
	}
	_ = s
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.WaitAcked(ctx, 2); !errors.Is(err, context.Canceled) {
		t.Fatalf("wait for a message not sent: %v", err)
	}
	if p.Err() != nil {
		t.Fatalf("an impatient waiter ended the publisher: %v", p.Err())
	}
}

func TestPublisherEndsAtLostConnection(t *testing.T) {
	t.Parallel()
	s, c := mesh(t)
	createData(t, c, "shop", 1)
	p := publisher(t, c, bus.PublisherConfig{MaxInFlight: 8})
	subject := bus.DataSubject("shop", 1, writer, reader)
	sent := make(chan error, 1)
	go func() {
		for {
			if _, err := p.Publish(t.Context(), subject, nil, make([]byte, 64<<10)); err != nil {
				sent <- err
				return
			}
		}
	}()
	if err := p.WaitAcked(within(t, patience), 20); err != nil {
		t.Fatal(err)
	}
	s.Restart()
	err := <-sent
	// Lost with messages under way, not connected any more, or back on a server without the stream: never success.
	if !errors.Is(err, bus.ErrUnknown) && !errors.Is(err, bus.ErrDisconnected) && !errors.Is(err, bus.ErrStreamGone) {
		t.Fatalf("publish after restart: %v", err)
	}
	if sticky := p.Err(); sticky != nil && !errors.Is(err, sticky) || sticky == nil && !errors.Is(err, bus.ErrDisconnected) {
		t.Fatalf("publish: %v, then %v", err, sticky)
	}
}

func TestReceiverNoticesTheEnd(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(t *testing.T, s *meshtest.Server, c *bus.Conn){
		"deleted": func(t *testing.T, _ *meshtest.Server, c *bus.Conn) {
			t.Helper()
			if err := c.DeleteData(t.Context(), "shop", 1); err != nil {
				t.Fatal(err)
			}
		},
		"restarted": func(_ *testing.T, s *meshtest.Server, _ *bus.Conn) { s.Restart() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, c := mesh(t)
			createData(t, c, "shop", 1)
			r := receiver(t, c, writer)
			got := make(chan error, 1)
			go func() {
				var err error
				for err == nil || errors.Is(err, bus.ErrStalled) {
					_, err = r.Next(t.Context())
				}
				got <- err
			}()
			end(t, s, c)
			select {
			case err := <-got:
				if !errors.Is(err, bus.ErrStreamGone) {
					t.Fatalf("next: %v, want ErrStreamGone", err)
				}
			case <-within(t, patience).Done():
				t.Fatal("receiver did not notice")
			}
		})
	}
}

// A stream made anew under the same name must not be read as if it were the old one.
func TestReceiverRefusesStreamMadeAnew(t *testing.T) {
	t.Parallel()
	s, c := mesh(t)
	createData(t, c, "shop", 1)
	r := receiver(t, c, writer)
	s.Restart()
	waitUntil(t, func() bool { return c.CreateData(t.Context(), bus.DataConfig{Job: "shop", Fence: 1}) == nil })
	receiver(t, c, writer)
	var err error
	for err == nil || errors.Is(err, bus.ErrStalled) {
		_, err = r.Next(within(t, patience))
	}
	if !errors.Is(err, bus.ErrStreamGone) {
		t.Fatalf("next: %v, want ErrStreamGone", err)
	}
}

func TestOpenReceiverWithoutStream(t *testing.T) {
	t.Parallel()
	_, c := mesh(t)
	_, err := c.OpenReceiver(t.Context(), bus.ReceiverConfig{Job: "shop", Fence: 9, Subtask: writer})
	if !errors.Is(err, bus.ErrStreamGone) {
		t.Fatalf("open: %v, want ErrStreamGone", err)
	}
	if _, err := c.DataState(t.Context(), "shop", 9); !errors.Is(err, bus.ErrStreamGone) {
		t.Fatalf("state: %v, want ErrStreamGone", err)
	}
}

// Jobs whose names begin with another's must survive its recovery.
func TestDeleteDataBelowKeepsOthers(t *testing.T) {
	t.Parallel()
	_, c := mesh(t)
	for _, job := range []string{"a", "a-1", "a_1", "a.b", "A"} {
		for f := range fence.Token(3) {
			createData(t, c, job, f+1)
		}
	}
	if err := c.DeleteDataBelow(t.Context(), "a", 3); err != nil {
		t.Fatal(err)
	}
	for job, want := range map[string][]fence.Token{"a": {3}, "a-1": {1, 2, 3}, "a_1": {1, 2, 3}, "a.b": {1, 2, 3}, "A": {1, 2, 3}} {
		got, err := c.DataFences(t.Context(), job)
		slices.Sort(got)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("job %s has data streams %v (%v), want %v", job, got, err, want)
		}
	}
	if err := c.DeleteDataBelow(t.Context(), "a", 3); err != nil {
		t.Fatalf("again: %v", err)
	}
	if err := c.DeleteData(t.Context(), "none", 1); err != nil {
		t.Fatalf("delete what is not there: %v", err)
	}
}

// More receivers than one connection carries, all with full-size messages under way.
func TestManyReceiversShareConnections(t *testing.T) {
	t.Parallel()
	_, c := mesh(t)
	createData(t, c, "shop", 1)
	p := publisher(t, c, bus.PublisherConfig{})
	const n = 8
	for i := range n {
		r := receiver(t, c, plan.SubtaskID{Vertex: "out", Index: i})
		subject := bus.DataSubject("shop", 1, plan.SubtaskID{Vertex: "out", Index: i}, reader)
		if _, err := p.Publish(t.Context(), subject, nil, fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
		d, err := r.Next(within(t, patience))
		if err != nil || string(d.Data) != strconv.Itoa(i) {
			t.Fatalf("receiver %d got %v, %v", i, d, err)
		}
	}
}
