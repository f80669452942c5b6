package bench

import (
	"fmt"
	"time"

	"weir.dev/weir/itest/harness"
	"weir.dev/weir/pkg/bus"
)

// events is a sink that publishes a change as a message, into a stream of its own on another server than the job's.
func (s *stand) events(server *harness.NATS) (sink, stream string) {
	s.counter++
	stream = fmt.Sprintf("EVENTS_%d", s.counter)
	return fmt.Sprintf("    type: nats\n    url: %s\n    stream: %s\n    prefix: %[2]s\n    create: true", server.URL, stream), stream
}

// drainEvents is drainSlot into messages, each counted.
func (s *stand) drainEvents(server *harness.NATS, from string, n int) time.Duration {
	s.Helper()
	sink, stream := s.events(server)
	took := s.drainSlot(from, n, "postgres", sink)
	conn, err := bus.Connect(s.Context(), bus.Options{URL: server.URL, Name: "bench"})
	if err != nil {
		s.Fatal(err)
	}
	defer conn.Close()
	outlet, err := conn.OpenOutlet(s.Context(), bus.OutletConfig{Stream: stream, Prefix: stream})
	if err != nil {
		s.Fatal(err)
	}
	tail, err := outlet.Tail(s.Context(), stream+"._weir")
	if err != nil || tail.Seq < uint64(n) {
		s.Fatalf("the stream has %d messages, want at least %d: %v", tail.Seq, n, err)
	}
	return took
}
