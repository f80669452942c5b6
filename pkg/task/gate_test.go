package task

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"weir.dev/weir/pkg/envelope"
	"weir.dev/weir/pkg/epoch"
	"weir.dev/weir/pkg/fault"
	"weir.dev/weir/pkg/fence"
	"weir.dev/weir/pkg/plan"
)

func subtask(vertex string, i int) plan.SubtaskID {
	return plan.SubtaskID{Vertex: plan.VertexID(vertex), Index: i}
}

func testGate() *Gate {
	return NewGate(7,
		[]plan.Channel{{From: subtask("a", 0), To: subtask("w", 0)}, {From: subtask("a", 1), To: subtask("w", 0)}},
		[]plan.Channel{{From: subtask("r", 0), To: subtask("w", 0)}},
		func(c plan.Channel) string { return c.From.String() })
}

func rowsOf(f fence.Token, seq uint64, payload string) envelope.Envelope {
	return envelope.Envelope{Kind: envelope.Rows, Fence: f, Seq: seq, Table: "t", RowCount: 1, Payload: []byte(payload)}
}

func offer(g *Gate, src string, e envelope.Envelope) (Passage, error) {
	return g.Admit(src, e.Header(), e.Payload)
}

func TestGateFences(t *testing.T) {
	t.Parallel()
	g := testGate()
	for _, tc := range []struct {
		fence fence.Token
		want  Admission
	}{{6, Older}, {8, Newer}, {7, Accept}} {
		p, err := offer(g, "a-0", rowsOf(tc.fence, 1, "x"))
		if err != nil || p.Admission != tc.want {
			t.Errorf("fence %d: %d, %v; want %d", tc.fence, p.Admission, err, tc.want)
		}
	}
}

// T2: whatever the order of arrival, the gate accepts each channel's numbers 1, 2, 3, ... or ends the attempt.
func TestGateAcceptsContiguousNumbersOnly(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g := testGate()
		next := map[string]uint64{"a-0": 1, "a-1": 1, "r-0": 1}
		for range rapid.IntRange(1, 60).Draw(t, "messages") {
			src := rapid.SampledFrom([]string{"a-0", "a-1", "r-0"}).Draw(t, "source")
			seq := rapid.Uint64Range(max(1, next[src]-min(next[src], 3)), next[src]+1).Draw(t, "seq")
			p, err := offer(g, src, rowsOf(7, seq, "same"))
			switch {
			case seq > next[src]:
				if fault.CodeOf(err) != fault.JobDataLost {
					t.Fatalf("gap before %d of %s: %v", seq, src, err)
				}
				return
			case err != nil:
				t.Fatalf("message %d of %s: %v", seq, src, err)
			case seq == next[src] && p.Admission == Accept:
				next[src]++
			case seq < next[src] && p.Admission == Repeat:
			default:
				t.Fatalf("message %d of %s, next %d: admission %d", seq, src, next[src], p.Admission)
			}
		}
	})
}

func TestGateRefusesWhatIsNotTheSameMessage(t *testing.T) {
	t.Parallel()
	g := testGate()
	if _, err := offer(g, "a-0", rowsOf(7, 1, "x")); err != nil {
		t.Fatal(err)
	}
	if _, err := offer(g, "a-0", rowsOf(7, 1, "y")); fault.CodeOf(err) != fault.JobDataLost {
		t.Errorf("another message with the same number: %v", err)
	}
	if _, err := offer(g, "b-0", rowsOf(7, 1, "x")); fault.CodeOf(err) != fault.BusCodec {
		t.Errorf("unknown channel: %v", err)
	}
	if _, err := g.Admit("a-0", map[string][]string{"Weir-V": {"9"}}, nil); !errors.Is(err, envelope.ErrMalformed) {
		t.Errorf("unknown version: %v", err)
	}
	if p, err := offer(g, "r-0", rowsOf(7, 1, "x")); err != nil || !p.Feedback {
		t.Errorf("feedback: %+v, %v", p, err)
	}
}

// The tally of an epoch holds what came before its barrier, whatever came between the barriers of two channels.
func TestGateCutsTalliesAtTheBarrier(t *testing.T) {
	t.Parallel()
	g := testGate()
	bar := func(seq uint64, n epoch.ID) envelope.Envelope {
		return envelope.Envelope{Kind: envelope.Barrier, Fence: 7, Epoch: n, Seq: seq}
	}
	for _, m := range []struct {
		src string
		e   envelope.Envelope
	}{
		{"a-0", rowsOf(7, 1, "x")},
		{"a-0", bar(2, 5)},
		{"a-0", rowsOf(7, 3, "late")},
		{"a-1", bar(1, 5)},
		{"a-0", bar(4, 5)}, // a second barrier of the epoch does not move its cut
	} {
		if _, err := offer(g, m.src, m.e); err != nil {
			t.Fatal(err)
		}
	}
	cut := g.Cut(5)
	first := plan.Channel{From: subtask("a", 0), To: subtask("w", 0)}
	meter := epoch.NewMeter(first)
	meter.Count(meter.Digest(1, "rows", "t", []byte("x")), 1)
	if len(cut) != 2 || cut[first] != meter.Total() {
		t.Errorf("cut %+v, want %+v and one empty channel", cut, meter.Total())
	}
	if len(g.Cut(6)) != 0 {
		t.Error("a cut of an epoch nobody ended")
	}
}
