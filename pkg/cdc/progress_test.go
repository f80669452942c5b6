package cdc

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// STIP-30 validation 2: whatever the order in which chunks of two tables are finished, each is shown with its own mark, and with
// none once the log has passed it.
func TestEachChunkHasItsOwnMark(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	users := Table{ID: 9, Name: "public.users"}
	d := newDuo(t, NewAssigner(Config{Mode: Initial, Readers: 1}, []Table{orders(), users}))
	marks, finished := make(map[string]string), 0
	check := func(limit int) {
		t.Helper()
		got := d.a.Newest(limit)
		if len(got) != min(limit, finished) {
			t.Errorf("%d chunks of %d", len(got), finished)
		}
		for i, c := range got {
			if string(c.Mark) != marks[c.ID] || i > 0 && got[i-1].ID >= c.ID {
				t.Errorf("chunk %s of %s has mark %q, want %q", c.ID, c.Table, c.Mark, marks[c.ID])
			}
		}
	}
	for range 2 {
		var bounds []Key
		for i := range int64(11) {
			bounds = append(bounds, intKey(i))
		}
		d.bound(true, bounds...)
		for {
			var open []Work // two are at the reader
			for w, ok := d.share.Next(); ok; w, ok = d.share.Next() {
				open = append(open, w)
			}
			if len(open) == 0 {
				break
			}
			random.Shuffle(len(open), func(i, j int) { open[i], open[j] = open[j], open[i] })
			for _, w := range open {
				mark := fmt.Sprintf("mark of %s", w.ChunkID)
				marks[w.String()], finished = mark, finished+1
				d.share.Finish(w.ChunkID, []byte(mark), 1, nil)
			}
			d.exchange()
			check(5)
		}
	}
	check(100)
	if finished != 24 {
		t.Fatalf("%d chunks", finished)
	}
	d.cover()
	if _, ok := d.share.Follow(); !ok {
		t.Fatal("the log is not handed out")
	}
	d.share.Passed(7)
	d.exchange()
	for _, c := range d.a.Newest(100) {
		if c.Table != users.Name {
			t.Errorf("a mark that the log has passed: %+v", c)
		}
	}
	d.share.Passed(9)
	d.exchange()
	if got := d.a.Newest(100); got != nil {
		t.Errorf("marks that the log has passed: %+v", got)
	}
}

// More chunks at readers than a report names are counted, and cut off in the order of their ids.
func TestManyActiveChunksAreCutOff(t *testing.T) {
	t.Parallel()
	a := NewAssigner(Config{Mode: Initial, Readers: 1}, []Table{orders()})
	for i := range uint32(150) {
		c := Chunk{ChunkID: ChunkID{Table: 7, Number: i}}
		a.running[c.ChunkID] = assigned{work: work{chunk: c}}
	}
	got, cut := a.Active(100)
	if len(got) != 100 || !cut || got[0].ID != "7#0" || a.Counts().Running != 150 {
		t.Errorf("%d chunks, cut off: %t, %+v", len(got), cut, a.Counts())
	}
	for i := range got[1:] {
		if got[i].ID >= got[i+1].ID || got[i].Table != "public.orders" {
			t.Errorf("%+v before %+v", got[i], got[i+1])
		}
	}
	if got, cut := a.Active(150); len(got) != 150 || cut {
		t.Errorf("%d chunks, cut off: %t", len(got), cut)
	}
}
