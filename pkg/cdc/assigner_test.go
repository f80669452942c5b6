package cdc

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// duo is an assigner with one reader's share, wired to each other without epochs in between.
type duo struct {
	tb    testing.TB
	a     *Assigner
	share *Share
	asks  []AskBounds
	round int
}

func newDuo(tb testing.TB, a *Assigner) *duo {
	tb.Helper()
	d := &duo{tb: tb, a: a, share: NewShare(2)}
	d.settle()
	return d
}

// exchange carries messages until there are none.
func (d *duo) exchange() {
	d.tb.Helper()
	for {
		out := d.share.Outbox()
		for _, m := range out {
			if err := d.a.Receive(LogReader, m); err != nil {
				d.tb.Fatal(err)
			}
		}
		effects := d.a.Effects()
		for _, e := range effects {
			switch e := e.(type) {
			case Tell:
				if err := d.share.Receive(e.Payload); err != nil {
					d.tb.Fatal(err)
				}
			case AskBounds:
				d.asks = append(d.asks, e)
			case Settle:
				d.round = e.Round
			}
		}
		if len(out)+len(effects) == 0 {
			return
		}
	}
}

func (d *duo) settle() {
	d.tb.Helper()
	d.exchange()
	d.a.Settled(d.round)
	d.exchange()
}

// bound answers the question that is open.
func (d *duo) bound(last bool, bounds ...Key) {
	d.tb.Helper()
	if len(d.asks) != 1 {
		d.tb.Fatalf("%d questions are open", len(d.asks))
	}
	q := d.asks[0]
	d.asks = nil
	if err := d.a.Bounded(q.Table, q.After, bounds, last); err != nil {
		d.tb.Fatal(err)
	}
	d.exchange()
}

// read finishes every chunk at hand and returns them.
func (d *duo) read() (chunks []Chunk) {
	d.tb.Helper()
	for {
		w, ok := d.share.Next()
		if !ok {
			return chunks
		}
		chunks = append(chunks, w.Chunk)
		d.share.Finish(w.ChunkID, []byte{byte(len(chunks))}, 10, nil)
		d.exchange()
	}
}

// cover makes an epoch durable and committed.
func (d *duo) cover() {
	d.tb.Helper()
	d.a.Snapshot(1)
	d.a.Committed(1)
	d.exchange()
}

func orders() Table { return Table{ID: 7, Name: "public.orders", RowBytes: 100} }

// snapshotted is a source whose one table was copied in three chunks and whose log is with the reader.
func snapshotted(tb testing.TB) *duo {
	tb.Helper()
	d := newDuo(tb, NewAssigner(Config{Mode: Initial, Readers: 1}, []Table{orders()}))
	d.bound(true, intKey(10), intKey(20))
	d.read()
	d.cover()
	return d
}

func TestFromSnapshotToIncremental(t *testing.T) {
	t.Parallel()
	d := newDuo(t, NewAssigner(Config{Mode: Initial, Readers: 1}, []Table{orders()}))
	if got := d.a.Counts(); got != (Counts{Unsplit: 1}) || d.a.Lifecycle() != Snapshot {
		t.Errorf("before bounds: %+v, %s", got, d.a.Lifecycle())
	}
	if q := d.asks[0]; q.Rows != DefaultChunkRows || q.After != nil || q.Table != 7 {
		t.Errorf("asked %+v", q)
	}
	d.bound(false, intKey(10), intKey(20), intKey(30))
	if got := d.a.Counts(); got != (Counts{Assigned: 2, Running: 2, Prepared: 1, Unsplit: 1}) {
		t.Errorf("with three chunks: %+v", got)
	}
	if p := d.a.Progress()[0]; p.Chunks != 0 || p.Running != 2 || p.Prepared != 1 || p.Split || p.Lifecycle != Snapshot {
		t.Errorf("with three chunks: %+v", p)
	}
	d.bound(true)
	chunks := d.read()
	if len(chunks) != 4 || chunks[0].Low != nil || chunks[3].High != nil || !chunks[3].Low.Equal(intKey(30)) {
		t.Errorf("chunks are %+v", chunks)
	}
	if _, ok := d.share.Follow(); ok {
		t.Fatal("the log is handed out before an epoch is committed")
	}
	d.a.Snapshot(3)
	d.a.Committed(2)
	d.exchange()
	if _, ok := d.share.Follow(); ok {
		t.Fatal("the log is handed out after an epoch that does not have the chunks")
	}
	d.a.Committed(4) // 3 was skipped
	d.exchange()
	split, ok := d.share.Follow()
	if !ok || len(split.Tables) != 1 || len(split.Tables[0].Chunks) != 4 || split.Log != nil || split.Only {
		t.Fatalf("the log is %+v, %t", split, ok)
	}
	if d.a.Lifecycle() != CatchUp || d.a.Progress()[0].Lifecycle != CatchUp || d.a.Progress()[0].Rows != 40 {
		t.Errorf("%s, %+v", d.a.Lifecycle(), d.a.Progress())
	}
	if p := d.a.Progress()[0]; p.Chunks != 4 || p.Running+p.Prepared != 0 || !p.Split {
		t.Errorf("copied: %+v", p)
	}
	d.share.Passed(7)
	d.exchange()
	if d.a.Lifecycle() != Incremental || len(d.a.Snapshot(5).Segments) != 0 || len(d.a.tail) != 0 {
		t.Error("marks are kept behind the catch-up")
	}
}

func TestChunkRows(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ rows, bytes, row, want int64 }{
		{8192, 32 << 20, 0, 8192}, {8192, 32 << 20, 100, 8192}, {8192, 32 << 20, 8192, 4096}, {8192, 32 << 20, 1 << 30, 1},
	} {
		if got := ChunkRows(c.rows, c.bytes, c.row); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

// A chunk that has grown too large is halved, or ends early; either way nothing is lost or read twice.
func TestChunksAreCut(t *testing.T) {
	t.Parallel()
	d := newDuo(t, NewAssigner(Config{Mode: Initial, Readers: 1}, []Table{orders()}))
	d.bound(true, intKey(10))
	w, _ := d.share.Next()
	d.share.Halve(w.ChunkID, intKey(5))
	d.exchange()
	w, _ = d.share.Next() // the chunk behind 10
	d.share.Finish(w.ChunkID, []byte("m"), 1, intKey(15))
	d.exchange()
	d.read()
	d.cover()
	split, ok := d.share.Follow()
	if !ok {
		t.Fatal("no log")
	}
	var bounds []string
	for _, c := range split.Tables[0].Chunks {
		bounds = append(bounds, fmt.Sprintf("%x-%x", c.Low, c.High))
	}
	want := []string{"[]-[8000000000000005]", "[8000000000000005]-[800000000000000a]", "[800000000000000a]-[800000000000000f]", "[800000000000000f]-[]"}
	if !slices.Equal(bounds, want) {
		t.Errorf("chunks are %v", bounds)
	}
}

func TestMisuseIsRefused(t *testing.T) {
	t.Parallel()
	d := newDuo(t, NewAssigner(Config{Mode: Initial, Readers: 1}, []Table{orders()}))
	for name, bounds := range map[string][]Key{
		"equal": {intKey(1), intKey(1)}, "nil": {nil}, "none": {},
	} {
		if err := d.a.Bounded(7, nil, bounds, false); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s bounds: %v", name, err)
		}
	}
	d.bound(true, intKey(1))
	w, _ := d.share.Next()
	for name, m := range map[string]message{
		"a cut at a bound":           finishMessage{report{chunk: w.ChunkID, cut: intKey(1)}},
		"a message of an enumerator": acceptMessage{},
	} {
		if err := d.a.Receive(0, encodeMessage(m)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := d.share.Receive(encodeMessage(wantMessage{1})); !errors.Is(err, ErrMalformed) {
		t.Errorf("a message of a reader: %v", err)
	}
	if err := d.a.Receive(1, nil); err == nil {
		t.Error("a message of a reader that is not there")
	}
}

// An answer that comes late, for a table or a moment that no longer stands, changes nothing.
func TestLateAnswers(t *testing.T) {
	t.Parallel()
	d := newDuo(t, NewAssigner(Config{Mode: Initial, Readers: 1}, []Table{orders()}))
	d.bound(false, intKey(10))
	before := d.a.Snapshot(1).Head
	if err := d.a.Bounded(7, nil, []Key{intKey(5)}, true); err != nil {
		t.Fatal(err)
	}
	if err := d.a.Bounded(8, intKey(10), nil, true); err != nil {
		t.Fatal(err)
	}
	d.a.Settled(d.round)
	if !bytes.Equal(before, d.a.Snapshot(2).Head) {
		t.Error("the state has changed")
	}
}

// FLINK-38334: a table may go in every state, and nothing waits for it.
func TestTablesGoInEveryState(t *testing.T) {
	t.Parallel()
	other := Table{ID: 8, Name: "public.items"}
	begin := func(t *testing.T) *duo {
		t.Helper()
		return &duo{tb: t, a: NewAssigner(Config{Mode: Initial, Readers: 1}, []Table{other, orders()}), share: NewShare(1)}
	}
	for name, prepare := range map[string]func(d *duo){
		"before settling": func(d *duo) { d.exchange() },
		"while asking":    func(d *duo) { d.settle() },
		"split in part":   func(d *duo) { d.settle(); d.bound(false, intKey(1), intKey(2)) },
		"running":         func(d *duo) { d.settle(); d.bound(true, intKey(1)); d.share.Next() },
		"finished":        func(d *duo) { d.settle(); d.bound(true); d.read() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := begin(t)
			prepare(d)
			d.a.Tables([]Table{orders()})
			d.asks = slices.DeleteFunc(d.asks, func(q AskBounds) bool { return q.Table == 8 })
			d.settle()
			for _, w := range slices.Clone(d.share.open) { // a chunk of the table that is gone, read and not counted
				d.share.Finish(w.ChunkID, nil, 1, nil)
			}
			d.exchange()
			d.read()
			if len(d.asks) > 0 {
				d.bound(true, intKey(3))
			}
			d.read()
			d.cover()
			split, ok := d.share.Follow()
			if !ok || len(split.Tables) != 1 || split.Tables[0].ID != 7 || len(split.Tables[0].Chunks) != 2 {
				t.Fatalf("the log is %+v, %t; stage %d", split, ok, d.a.stage)
			}
		})
	}
}

// The plain form: the log pauses, the table is emptied and read, the log goes on.
func TestAgain(t *testing.T) {
	t.Parallel()
	d := snapshotted(t)
	d.share.Follow()
	d.share.Passed(7)
	d.exchange()
	if d.a.Again(9) || !d.a.Again(7) || !d.a.Again(7) {
		t.Error("Again does not know its tables")
	}
	d.exchange()
	truncate, asked := d.share.Pausing()
	if !asked || !slices.Equal(truncate, []TableID{7}) {
		t.Fatalf("asked to pause: %t, %v", asked, truncate)
	}
	d.share.Paused()
	d.exchange()
	if d.a.Lifecycle() != Snapshot || len(d.asks) > 0 {
		t.Fatal("chunks are asked for before the truncate is in a committed epoch")
	}
	d.cover()
	d.settle()
	d.bound(true)
	d.read()
	d.cover()
	split, ok := d.share.Follow()
	if !ok || split.Log != nil || len(split.Tables[0].Chunks) != 1 {
		t.Fatalf("the log goes on with %+v, %t", split, ok)
	}
}

// I6: an epoch between the decision to hand the log back and the message that does so finds the reader still standing from
// before. That is not another pause: the table was copied, and its rows are at the sinks.
func TestLogThatStoodIsNotPausedAgain(t *testing.T) {
	t.Parallel()
	d := snapshotted(t)
	d.share.Follow()
	d.a.Again(7)
	d.exchange()
	d.share.Paused()
	d.exchange()
	d.cover()
	d.settle()
	d.bound(true)
	d.read()
	d.a.Snapshot(5)
	d.a.Committed(5)
	a, err := RestoreAssigner(Config{Mode: Initial, Readers: 1}, d.a.Snapshot(6).Head, inline{}, [][]byte{d.share.State([]byte("log"))})
	if err != nil {
		t.Fatal(err)
	}
	e := &duo{tb: t, a: a, share: NewShare(1)}
	e.exchange()
	split, ok := e.share.Follow()
	if !ok || string(split.Log) != "log" || len(split.Tables[0].Chunks) != 1 {
		t.Fatalf("the log is %+v, %t; stage %d", split, ok, a.stage)
	}
}

// A table that is added is copied while the log stands still, and is not emptied.
func TestTableAdded(t *testing.T) {
	t.Parallel()
	d := snapshotted(t)
	d.share.Follow()
	d.a.Tables([]Table{orders(), {ID: 9, Name: "public.new", Keyless: true}})
	d.exchange()
	if truncate, asked := d.share.Pausing(); !asked || len(truncate) > 0 {
		t.Fatalf("asked to pause: %t, %v", asked, truncate)
	}
	d.share.Paused()
	d.exchange()
	d.cover()
	d.settle()
	if chunks := d.read(); len(chunks) != 1 || chunks[0].Table != 9 || chunks[0].Low != nil || chunks[0].High != nil {
		t.Fatalf("read %+v", chunks)
	}
	d.cover()
	split, _ := d.share.Follow()
	if split == nil || len(split.Tables) != 2 || len(split.Tables[0].Chunks) != 3 || len(split.Tables[1].Chunks) != 1 {
		t.Fatalf("the log goes on with %+v", split)
	}
}

func TestModes(t *testing.T) {
	t.Parallel()
	never := newDuo(t, NewAssigner(Config{Mode: Never, Readers: 1}, []Table{orders()}))
	split, ok := never.share.Follow()
	if !ok || len(split.Tables) != 1 || split.Tables[0].Chunks != nil || never.a.Lifecycle() != Incremental {
		t.Errorf("never: %+v, %t", split, ok)
	}
	only := newDuo(t, NewAssigner(Config{Mode: Only, Readers: 1}, []Table{orders()}))
	only.bound(true)
	only.read()
	only.cover()
	if split, _ = only.share.Follow(); split == nil || !split.Only || only.a.Ended() {
		t.Errorf("only: %+v, ended %t", split, only.a.Ended())
	}
	only.share.Passed(7)
	only.exchange()
	if !only.a.Ended() || !only.share.Ended() || never.share.Ended() {
		t.Error("only: not ended behind the catch-up")
	}
}

// Segments do not change once sealed; the state names them, and reads back with them.
func TestSegments(t *testing.T) {
	t.Parallel()
	d := newDuo(t, NewAssigner(Config{Mode: Initial, Readers: 1}, []Table{orders()}))
	for i := range int64(40) {
		var bounds []Key
		for j := range int64(64) {
			bounds = append(bounds, intKey(i*64+j))
		}
		d.bound(i == 39, bounds...)
		d.read()
	}
	s := d.a.Snapshot(1)
	if len(s.Segments) != 2 || len(d.a.tail) != 561 {
		t.Fatalf("%d segments and %d chunks", len(s.Segments), len(d.a.tail))
	}
	head, segments, err := OpenInline(s.Inline())
	if err != nil {
		t.Fatal(err)
	}
	a, err := RestoreAssigner(Config{Mode: Initial, Readers: 1}, head, segments, [][]byte{d.share.State(nil)})
	if err != nil {
		t.Fatal(err)
	}
	e := newDuo(t, a)
	if split, ok := e.share.Follow(); !ok || len(split.Tables[0].Chunks) != 2561 {
		t.Fatal("the log does not have all chunks")
	}
	if _, err := RestoreAssigner(Config{Readers: 1}, head, inline{}, nil); !errors.Is(err, ErrMalformed) {
		t.Errorf("without segments: %v", err)
	}
	if _, err := RestoreAssigner(Config{Readers: 1}, head, wrongSegments{}, nil); !errors.Is(err, ErrMalformed) {
		t.Errorf("with other segments: %v", err)
	}
}

type wrongSegments struct{}

func (wrongSegments) Segment(Digest) ([]byte, error) { return []byte("else"), nil }

func TestRestoreRefuses(t *testing.T) {
	t.Parallel()
	d := snapshotted(t)
	head := d.a.Snapshot(2).Head
	log := d.share.State([]byte("log"))
	for name, parts := range map[string][][]byte{
		"no log": {nil}, "two logs": {log, log}, "no part": {[]byte("x")},
	} {
		if _, err := RestoreAssigner(Config{Mode: Initial, Readers: 1}, head, inline{}, parts); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	a, err := RestoreAssigner(Config{Mode: Initial, Readers: 3}, head, inline{}, [][]byte{nil, log})
	if err != nil || string(a.Log()) != "log" {
		t.Errorf("log is %q, %v", a.Log(), err)
	}
}

// The bytes of states are the same in every build: old ones are read for ever.
func TestStateBytes(t *testing.T) {
	t.Parallel()
	d := newDuo(t, NewAssigner(Config{Mode: Initial, Readers: 1}, []Table{orders(), {ID: 9, Name: "public.log", Keyless: true}}))
	d.bound(true, intKey(10), intKey(20))
	w, _ := d.share.Next()
	d.share.Finish(w.ChunkID, []byte("mark"), 12, nil)
	d.exchange()
	w, _ = d.share.Next()
	d.share.Finish(w.ChunkID, []byte("mark 2"), 3, nil) // not yet known to the enumerator
	got := fmt.Sprintf("head %s\npart %s\n", hex.EncodeToString(d.a.Snapshot(1).Head), hex.EncodeToString(d.share.State(nil)))
	file := filepath.Join("testdata", "state.golden")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || string(want) != got {
		t.Errorf("states are\n%s, %v, want\n%s", got, err, want)
	}
}

// I1: what does not cover every key exactly once is not handed out.
func TestChain(t *testing.T) {
	t.Parallel()
	c := func(n uint32, low, high Key) Finished {
		return Finished{Chunk: Chunk{ChunkID: ChunkID{1, n}, Low: low, High: high}}
	}
	a, b := intKey(1), intKey(2)
	got, err := chain([]Finished{c(0, b, nil), c(1, nil, a), c(2, a, b)})
	if err != nil || got[0].Number != 1 || got[1].Number != 2 || got[2].Number != 0 {
		t.Errorf("chain is %v, %v", got, err)
	}
	for name, chunks := range map[string][]Finished{
		"none":      {},
		"no first":  {c(0, a, nil)},
		"no last":   {c(0, nil, a)},
		"a hole":    {c(0, nil, a), c(1, b, nil)},
		"two":       {c(0, nil, a), c(1, a, nil), c(2, a, nil)},
		"two first": {c(0, nil, a), c(1, nil, nil)},
		"a circle":  {c(0, nil, a), c(1, a, b), c(2, b, a)},
		"beside":    {c(0, nil, nil), c(1, a, b)},
	} {
		if _, err := chain(chunks); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A table that comes back is emptied before it is copied, in whatever stage it comes: its old rows are nobody else's to
// remove, and the truncate needs the reader of the log.
func TestTableComesBack(t *testing.T) {
	t.Parallel()
	back := Table{ID: 8, Name: "public.items", Sent: true}
	for name, prepare := range map[string]func(d *duo){
		"while others are copied": func(*duo) {},
		"while the log is followed": func(d *duo) {
			d.settle()
			d.bound(true)
			d.read()
			d.cover()
			d.share.Follow()
			d.share.Passed(7)
			d.exchange()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &duo{tb: t, a: NewAssigner(Config{Mode: Initial, Readers: 1}, []Table{orders()}), share: NewShare(1)}
			prepare(d)
			if !d.a.Tables([]Table{orders(), back}) {
				t.Error("the log need not stand still")
			}
			d.exchange()
			if d.a.stage != stagePause {
				d.settle()
				d.bound(true)
				d.read()
				d.cover()
				if split, ok := d.share.Follow(); !ok || len(split.Tables) != 1 {
					t.Fatalf("the log is %+v, %t", split, ok)
				}
			}
			truncate, asked := d.share.Pausing()
			if !asked || !slices.Equal(truncate, []TableID{8}) {
				t.Fatalf("asked to pause: %t, to empty %v", asked, truncate)
			}
		})
	}
}

// Another log in place of one that is lost: every table is emptied and copied, whatever was under way, and the log goes on
// from its own beginning.
func TestRenew(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(d *duo){
		"before anything was read": func(*duo) {},
		"while tables are copied":  func(d *duo) { d.settle(); d.bound(false, intKey(1), intKey(2)); d.share.Next() },
		"while the log is followed": func(d *duo) {
			d.settle()
			d.bound(true)
			d.read()
			d.cover()
			d.share.Follow()
		},
		"while it stands": func(d *duo) {
			d.settle()
			d.bound(true)
			d.read()
			d.cover()
			d.share.Follow()
			d.a.Again(7)
			d.exchange()
			d.share.Paused()
			d.exchange()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &duo{tb: t, a: NewAssigner(Config{Mode: Initial, Readers: 1}, []Table{orders()}), share: NewShare(1)}
			prepare(d)
			var log []byte
			if d.share.Following() {
				log = []byte("old")
			}
			state := d.a.Snapshot(9)
			head, segments, err := OpenInline(state.Inline())
			if err != nil {
				t.Fatal(err)
			}
			a, err := RestoreAssigner(Config{Mode: Initial, Readers: 1}, head, segments, [][]byte{d.share.State(log)})
			if err != nil {
				t.Fatal(err)
			}
			a.Renew([]byte("new"))
			if !a.Tables([]Table{orders()}) {
				t.Error("the new log need not stand still")
			}
			e := &duo{tb: t, a: a, share: NewShare(1)}
			e.exchange()
			split, ok := e.share.Follow()
			if !ok || string(split.Log) != "new" || len(split.Tables) != 0 {
				t.Fatalf("the log is %+v, %t", split, ok)
			}
			if truncate, asked := e.share.Pausing(); !asked || !slices.Equal(truncate, []TableID{7}) {
				t.Fatalf("asked to pause: %t, to empty %v", asked, truncate)
			}
			e.share.Paused()
			e.exchange()
			e.cover()
			e.settle()
			e.bound(true, intKey(5))
			e.read()
			e.read()
			e.cover()
			if split, ok = e.share.Follow(); !ok || split.Log != nil || len(split.Tables[0].Chunks) != 2 {
				t.Fatalf("the log goes on with %+v, %t; stage %d", split, ok, a.stage)
			}
		})
	}
}
