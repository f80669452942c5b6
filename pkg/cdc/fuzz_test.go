package cdc

import (
	"bytes"
	"errors"
	"testing"

	"pgregory.net/rapid"
)

func drawKey(t *rapid.T, name string) Key {
	if rapid.Bool().Draw(t, name+" none") {
		return nil
	}
	return Key(rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 4), 0, 3).Draw(t, name))
}

func drawChunk(t *rapid.T) Chunk {
	return Chunk{
		ChunkID: ChunkID{TableID(rapid.Uint64().Draw(t, "table")), rapid.Uint32().Draw(t, "number")},
		Low:     drawKey(t, "low"), High: drawKey(t, "high"),
	}
}

func drawFinished(t *rapid.T) Finished {
	return Finished{Chunk: drawChunk(t), Mark: rapid.SliceOfN(rapid.Byte(), 0, 2).Draw(t, "mark"), Rows: rapid.Uint64().Draw(t, "rows")}
}

// I7: what was written reads back and is written the same.
func TestSegmentRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		chunks := rapid.SliceOfN(rapid.Custom(drawFinished), 0, 20).Draw(t, "chunks")
		data := encodeSegment(chunks)
		got, err := decodeSegment(data)
		if err != nil || len(got) != len(chunks) {
			t.Fatalf("%d chunks read back as %d, %v", len(chunks), len(got), err)
		}
		for i, c := range chunks {
			g := got[i]
			if g.ChunkID != c.ChunkID || !g.Low.Equal(c.Low) || !g.High.Equal(c.High) || !bytes.Equal(g.Mark, c.Mark) || g.Rows != c.Rows {
				t.Fatalf("chunk %d is %+v, was %+v", i, g, c)
			}
		}
		if !bytes.Equal(encodeSegment(got), data) {
			t.Fatal("written again it differs")
		}
	})
}

// states returns states of assigners and readers in the middle of histories, and the messages between them.
func states(tb testing.TB) (heads, parts, messages [][]byte) {
	tb.Helper()
	for seed := range uint64(40) {
		w, err := newWorld(seeded(seed), sound)
		for step := 0; err == nil && step < 400; step++ {
			err = w.step()
			if step%20 != 0 {
				continue
			}
			heads = append(heads, w.a.Snapshot(0).Head)
			for i, r := range w.readers {
				parts = append(parts, r.state())
				for _, l := range w.down[i] {
					if l.barrier == 0 {
						messages = append(messages, l.payload)
					}
				}
			}
			for _, n := range w.up {
				messages = append(messages, n.payload)
			}
		}
		if err != nil {
			tb.Fatal(err)
		}
	}
	return heads, parts, messages
}

// recode decodes and encodes; ok is false when the bytes are refused.
func recodeHead(tb testing.TB, data []byte) (again []byte, ok bool) {
	tb.Helper()
	a := newAssigner(Config{Readers: 1})
	digests, err := a.decodeHead(data)
	if err != nil {
		mustBeMalformed(tb, err)
		return nil, false
	}
	for _, d := range digests {
		a.sealed = append(a.sealed, Segment{Digest: d})
	}
	return a.head(), true
}

func recodePart(tb testing.TB, data []byte) (again []byte, ok bool) {
	tb.Helper()
	p, err := decodePart(data)
	if err != nil || len(data) == 0 {
		mustBeMalformed(tb, err)
		return nil, false
	}
	return p.encode(), true
}

func recodeMessage(tb testing.TB, data []byte) (again []byte, ok bool) {
	tb.Helper()
	m, err := decodeMessage(data)
	if err != nil {
		mustBeMalformed(tb, err)
		return nil, false
	}
	return encodeMessage(m), true
}

func recodeSegment(tb testing.TB, data []byte) (again []byte, ok bool) {
	tb.Helper()
	s, err := decodeSegment(data)
	if err != nil {
		mustBeMalformed(tb, err)
		return nil, false
	}
	return encodeSegment(s), true
}

func mustBeMalformed(tb testing.TB, err error) {
	tb.Helper()
	if err != nil && !errors.Is(err, ErrMalformed) {
		tb.Fatalf("%v is not ErrMalformed", err)
	}
}

// Every state and message of real histories is read whole, and every cut of it is refused.
func TestStatesRoundTrip(t *testing.T) {
	t.Parallel()
	heads, parts, messages := states(t)
	for name, c := range map[string]struct {
		all    [][]byte
		recode func(testing.TB, []byte) ([]byte, bool)
	}{
		"head": {heads, recodeHead}, "part": {parts, recodePart}, "message": {messages, recodeMessage},
	} {
		if len(c.all) < 100 {
			t.Errorf("%s: only %d examples", name, len(c.all))
		}
		for i, data := range c.all {
			if again, ok := c.recode(t, data); !ok || !bytes.Equal(again, data) {
				t.Fatalf("%s %x reads back as %x, %t", name, data, again, ok)
			}
			if i%10 > 0 {
				continue
			}
			for n := range data {
				if _, ok := c.recode(t, data[:n]); ok {
					t.Fatalf("%s %x cut to %d bytes is accepted", name, data, n)
				}
			}
		}
	}
}

func fuzz(f *testing.F, recode func(testing.TB, []byte) ([]byte, bool)) {
	f.Helper()
	f.Fuzz(func(t *testing.T, data []byte) {
		if again, ok := recode(t, data); ok && !bytes.Equal(again, data) {
			t.Fatalf("%x reads back as %x", data, again)
		}
	})
}

func FuzzHead(f *testing.F) {
	heads, _, _ := states(f)
	for _, d := range heads[:50] {
		f.Add(d)
	}
	fuzz(f, recodeHead)
}

func FuzzPart(f *testing.F) {
	_, parts, _ := states(f)
	for _, d := range parts[:50] {
		f.Add(d)
	}
	fuzz(f, recodePart)
}

func FuzzMessage(f *testing.F) {
	_, _, messages := states(f)
	for _, d := range messages[:50] {
		f.Add(d)
	}
	fuzz(f, recodeMessage)
}

func FuzzSegment(f *testing.F) {
	f.Add(encodeSegment(nil))
	f.Add(encodeSegment([]Finished{
		{Chunk: Chunk{ChunkID: ChunkID{1, 0}, High: Key{AppendInt(nil, 5)}}, Mark: []byte("a"), Rows: 3},
		{Chunk: Chunk{ChunkID: ChunkID{1, 1}, Low: Key{AppendInt(nil, 5)}}, Mark: []byte("b"), Rows: 1},
		{Chunk: Chunk{ChunkID: ChunkID{2, 2}}, Mark: []byte("a")},
	}))
	fuzz(f, recodeSegment)
}

// Whole states of any bytes are refused or restored, never a panic, whatever the parts.
func FuzzRestore(f *testing.F) {
	heads, parts, _ := states(f)
	for i := range 50 {
		f.Add(State{Head: heads[i]}.Inline(), parts[i])
	}
	f.Fuzz(func(t *testing.T, data, part []byte) {
		head, segments, err := OpenInline(data)
		if err != nil {
			mustBeMalformed(t, err)
			return
		}
		a, err := RestoreAssigner(Config{Mode: Initial, Readers: 2}, head, segments, [][]byte{part})
		if err != nil {
			mustBeMalformed(t, err)
			return
		}
		a.Effects()
		a.Snapshot(1)
		a.Committed(1)
		a.Effects()
	})
}
