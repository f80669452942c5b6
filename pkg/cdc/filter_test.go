package cdc

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// upto is a mark of events and positions that are numbers.
type upto uint64

func (m upto) Contains(e uint64) bool { return e <= uint64(m) }
func (m upto) PassedBy(p uint64) bool { return p >= uint64(m) }

func readUpto(b []byte) (Mark[uint64, uint64], error) {
	if len(b) != 1 {
		return nil, fmt.Errorf("%w: a mark of %d bytes", ErrMalformed, len(b))
	}
	return upto(b[0]), nil
}

func intKey(v int64) Key { return Key{AppendInt(nil, v)} }

// splitOf is a table in chunks between bounds, with a mark for each.
func splitOf(id TableID, bounds []Key, marks ...byte) TableSplit {
	s := TableSplit{ID: id}
	for i, m := range marks {
		c := Finished{Chunk: Chunk{ChunkID: ChunkID{id, uint32(i)}}, Mark: []byte{m}}
		if i > 0 {
			c.Low = bounds[i-1]
		}
		if i < len(bounds) {
			c.High = bounds[i]
		}
		s.Chunks = append(s.Chunks, c)
	}
	return s
}

func mustFilter(tb testing.TB, order func(TableID) Order, tables ...TableSplit) *Filter[uint64, uint64] {
	tb.Helper()
	f, err := NewFilter(&LogSplit{Tables: tables}, order, readUpto)
	if err != nil {
		tb.Fatal(err)
	}
	return f
}

func bytewise(TableID) Order { return Bytewise{} }

func ask(TableID) Order { return nil }

// generic hides that an order is Bytewise.
type generic struct{ Bytewise }

func TestJudge(t *testing.T) {
	t.Parallel()
	bounds := []Key{intKey(0), intKey(10), intKey(20)}
	for name, order := range map[string]func(TableID) Order{
		"by numbers": bytewise, "by the order": func(TableID) Order { return generic{} },
	} {
		f := mustFilter(t, order, splitOf(1, bounds, 50, 10, 30, 20))
		table := f.Table(1)
		for _, c := range []struct {
			key   int64
			event uint64
			want  Verdict
		}{
			{-1, 50, Drop},
			{-1, 51, Emit},
			{0, 10, Drop},
			{0, 11, Emit},
			{9, 11, Emit},
			{10, 30, Drop},
			{10, 31, Emit},
			{19, 30, Drop},
			{20, 20, Drop},
			{20, 21, Emit},
			{1 << 40, 20, Drop},
		} {
			if got := table.Judge(c.event, intKey(c.key)); got != c.want {
				t.Errorf("%s: event %d of key %d: %d, want %d", name, c.event, c.key, got, c.want)
			}
		}
	}
}

// A key change is two verdicts: the row leaves one chunk and comes into another.
func TestJudgeHalvesOfAKeyChange(t *testing.T) {
	t.Parallel()
	table := mustFilter(t, bytewise, splitOf(1, []Key{intKey(10)}, 5, 50)).Table(1)
	if table.Judge(20, intKey(1)) != Emit || table.Judge(20, intKey(11)) != Drop {
		t.Error("the halves are not judged by their own chunks")
	}
}

// Keys of fixed widths are sought as numbers, and found where the order has them.
func TestWordsAreTheOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		widths := rapid.SliceOfN(rapid.SampledFrom([]int{8, 16, 8, 5}), 1, 3).Draw(t, "widths")
		key := rapid.Custom(func(t *rapid.T) Key {
			var k Key
			for _, n := range widths {
				k = append(k, rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 0x80, 0xff}), n, n).Draw(t, "cell"))
			}
			return k
		})
		bounds := rapid.SliceOfN(key, 1, 20).Draw(t, "bounds")
		slices.SortFunc(bounds, Bytewise{}.Compare)
		x := newWordIndex(bounds)
		wide := 0
		for _, n := range widths {
			wide += n
		}
		if (x != nil) != (wide <= 8*maxWords && !slices.Contains(widths, 5)) {
			t.Fatalf("widths %v have an index: %t", widths, x != nil)
		}
		if x == nil {
			return
		}
		k := rapid.OneOf(key, rapid.SampledFrom(bounds)).Draw(t, "key")
		want := 0
		for want < len(bounds) && (Bytewise{}).Compare(bounds[want], k) <= 0 {
			want++
		}
		if got, ok := x.seek(k); !ok || got != want {
			t.Fatalf("found in chunk %d, %t, want %d", got, ok, want)
		}
		if _, ok := x.seek(append(k, nil)); ok {
			t.Fatal("a key of another shape is found")
		}
	})
}

func TestOrderOfTheServer(t *testing.T) {
	t.Parallel()
	f := mustFilter(t, ask, splitOf(1, []Key{{[]byte("b")}, {[]byte("A")}}, 10, 30, 20))
	table := f.Table(1)
	for event, want := range map[uint64]Verdict{5: Drop, 10: Drop, 11: Locate, 30: Locate, 31: Emit} {
		if got := table.Judge(event, Key{[]byte("x")}); got != want {
			t.Errorf("event %d: %d, want %d", event, got, want)
		}
	}
	if len(table.Bounds()) != 2 {
		t.Errorf("%d bounds", len(table.Bounds()))
	}
	for chunk, want := range map[int]Verdict{-1: Drop, 0: Emit, 1: Drop, 2: Emit, 3: Drop} {
		if got := table.JudgeAt(25, chunk); got != want {
			t.Errorf("chunk %d: %d, want %d", chunk, got, want)
		}
	}
}

func TestTruncate(t *testing.T) {
	t.Parallel()
	table := mustFilter(t, bytewise, splitOf(1, []Key{intKey(0)}, 10, 20)).Table(1)
	for event, want := range map[uint64]Verdict{10: Drop, 11: Again, 20: Again, 21: Emit} {
		if got := table.Truncate(event); got != want {
			t.Errorf("event %d: %d, want %d", event, got, want)
		}
	}
}

func TestCatchUpEnds(t *testing.T) {
	t.Parallel()
	f := mustFilter(t, bytewise, splitOf(1, []Key{intKey(0)}, 10, 30), splitOf(2, nil, 20), TableSplit{ID: 3})
	for _, c := range []struct {
		at   uint64
		want string
		done bool
	}{{9, "[]", false}, {10, "[]", false}, {20, "[2]", false}, {29, "[]", false}, {31, "[1]", true}} {
		if got := fmt.Sprint(f.Passed(c.at)); got != c.want || f.Done() != c.done {
			t.Errorf("at %d: %s ended, done %t", c.at, got, f.Done())
		}
	}
	// Behind it everything counts, whatever its number; what is not in the log never does.
	for id, want := range map[TableID]Verdict{1: Emit, 2: Emit, 3: Emit, 4: Drop} {
		table := f.Table(id)
		if table.Judge(1, intKey(0)) != want || table.JudgeAt(1, 0) != want || table.Truncate(1) != want {
			t.Errorf("table %d: not %d", id, want)
		}
	}
}

func TestFilterRefuses(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]TableSplit{
		"bounds in another order than ours": splitOf(1, []Key{intKey(10), intKey(5)}, 1, 2, 3),
		"equal bounds":                      splitOf(1, []Key{intKey(5), intKey(5)}, 1, 2, 3),
		"a mark that does not read":         {ID: 1, Chunks: []Finished{{}}},
	} {
		if _, err := NewFilter(&LogSplit{Tables: []TableSplit{s}}, bytewise, readUpto); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// O03, O04: composite keys are ordered as tuples, integers by value.
func TestBytewise(t *testing.T) {
	t.Parallel()
	tuple := func(a, b int64) Key { return Key{AppendInt(nil, a), AppendInt(nil, b)} }
	ordered := []Key{tuple(-5, 7), tuple(-1, 0), tuple(1, 9), tuple(2, 1), tuple(2, 2), tuple(3, 0)}
	for i, a := range ordered {
		for j, b := range ordered {
			if got := (Bytewise{}).Compare(a, b); (got < 0) != (i < j) || (got == 0) != (i == j) {
				t.Errorf("%d to %d: %d", i, j, got)
			}
		}
	}
	for _, v := range []int64{-1 << 63, -1, 0, 1, 1<<63 - 1} {
		if got, ok := Int(AppendInt(nil, v)); !ok || got != v {
			t.Errorf("%d reads back as %d, %t", v, got, ok)
		}
	}
	if _, ok := Int([]byte("short")); ok {
		t.Error("a cell of another width reads as a number")
	}
}

// The loop over the log allocates nothing.
func TestJudgeAllocatesNothing(t *testing.T) { // not parallel: allocations are counted for the whole process
	var marks []byte
	var bounds []Key
	for i := range 200 {
		marks = append(marks, byte(i))
		if i > 0 {
			bounds = append(bounds, intKey(int64(i)))
		}
	}
	for name, order := range map[string]func(TableID) Order{"words": bytewise, "generic": func(TableID) Order { return generic{} }, "the server's": ask} {
		table := mustFilter(t, order, splitOf(1, bounds, marks...)).Table(1)
		key := intKey(77)
		if n := testing.AllocsPerRun(100, func() { table.Judge(90, key) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// 12,207 chunks are those of 100,000,000 rows.
func BenchmarkJudge(b *testing.B) {
	const chunks = 12_207
	var marks []byte
	var bounds, pairs []Key
	for i := range chunks {
		marks = append(marks, byte(i))
		if i > 0 {
			bounds = append(bounds, intKey(int64(i)*8192))
			pairs = append(pairs, Key{AppendInt(nil, int64(i/100)), AppendInt(nil, int64(i%100))})
		}
	}
	f := mustFilter(b, func(id TableID) Order { return []Order{nil, Bytewise{}, Bytewise{}, nil}[id] },
		splitOf(1, bounds, marks...), splitOf(2, pairs, marks...), splitOf(3, bounds, marks...), TableSplit{ID: 4})
	for _, c := range []struct {
		name string
		id   TableID
		key  func(i int) Key
	}{
		{"integer", 1, func(i int) Key { return intKey(int64(i) * 97_003 % (chunks * 8192)) }},
		{"composite", 2, func(i int) Key { return Key{AppendInt(nil, int64(i%123)), AppendInt(nil, int64(i*7%100))} }},
		{"server", 3, func(int) Key { return intKey(5) }},
		{"pure", 4, func(int) Key { return intKey(5) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			keys := make([]Key, 1024)
			for i := range keys {
				keys[i] = c.key(i)
			}
			table, i := f.Table(c.id), 0
			b.ReportAllocs()
			for b.Loop() {
				table.Judge(uint64(i>>6), keys[i&1023]) // 64 changes per transaction
				i++
			}
		})
	}
}
