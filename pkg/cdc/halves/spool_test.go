package halves

import (
	"encoding/json"
	"strings"
	"testing"

	"weir.dev/weir/pkg/bus"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/plan"
)

// The largest spool still fits into the message that hands it out, and the names of its segments into an ack.
func TestLargestSpoolFitsAMessage(t *testing.T) {
	t.Parallel()
	s := Spool{Version: spoolVersion, Form: strings.Repeat("f", 64), Mark: make([]byte, 1000), Emitted: 1 << 40}
	for i := range SpoolSegments {
		subject := bus.StateSubject("0123456789abcdef", 123456, epoch.ID(1234567+i), plan.SubtaskID{Vertex: "a_long_name_of_a_source", Index: 12}, i)
		s.Segments = append(s.Segments, Segment{epoch.Object{Subject: subject, Size: 16 << 20, Digest: strings.Repeat("d", 64)}, 123456789})
	}
	const most = bus.MinPayload - 64<<10
	if n := len(s.encode()); n > most {
		t.Errorf("the state of a spool has %d bytes, want at most %d", n, most)
	}
	names, err := json.Marshal(s.objects(nil))
	if n := len(names); err != nil || n > most {
		t.Errorf("the names of its objects have %d bytes (%v), want at most %d", n, err, most)
	}
}
