package epoch

import (
	"testing"

	"weir.dev/weir/pkg/plan"
)

func toChannel(to string) plan.Channel {
	return plan.Channel{From: plan.SubtaskID{Vertex: "db"}, To: plan.SubtaskID{Vertex: plan.VertexID(to)}}
}

// Whatever differs between the two ends must show in the tally; a digest that ignores one field would let that
// difference be committed.
func TestDigestCoversEveryField(t *testing.T) {
	t.Parallel()
	m := NewMeter(toChannel("pg"))
	base := m.Digest(1, "rows", "t", []byte("x"))
	for name, other := range map[string]uint64{
		"channel":    NewMeter(toChannel("pf")).Digest(1, "rows", "t", []byte("x")),
		"number":     m.Digest(2, "rows", "t", []byte("x")),
		"kind":       m.Digest(1, "status", "t", []byte("x")),
		"table":      m.Digest(1, "rows", "u", []byte("x")),
		"payload":    m.Digest(1, "rows", "t", []byte("y")),
		"boundaries": m.Digest(1, "row", "st", []byte("x")),
		"emptiness":  m.Digest(1, "rows", "t", nil),
	} {
		if other == base {
			t.Errorf("digest does not cover %s", name)
		}
	}
	if again := NewMeter(toChannel("pg")).Digest(1, "rows", "t", []byte("x")); again != base {
		t.Error("digest differs between two meters of one channel")
	}
}

func TestTallyIsASumThatSubtracts(t *testing.T) {
	t.Parallel()
	a, b := NewMeter(toChannel("pg")), NewMeter(toChannel("pg"))
	a.Count(1<<63, 3)
	early := a.Total()
	a.Count(1<<63+5, 4)
	b.Count(1<<63+5, 4)
	if want := (Tally{Messages: 2, Rows: 7, Hash: 5}); a.Total() != want {
		t.Errorf("Total = %+v, want %+v", a.Total(), want)
	}
	if got, want := a.Total().Since(early), b.Total(); got != want {
		t.Errorf("Since = %+v, want %+v", got, want)
	}
}

func BenchmarkDigest(b *testing.B) {
	m := NewMeter(toChannel("pg"))
	body := make([]byte, 128<<10)
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		m.Digest(1, "rows", "public.orders", body)
	}
}
